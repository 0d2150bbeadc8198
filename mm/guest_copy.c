/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest-physical and linear copies. Everything here works on values that were copied once; it never hands out
 * a pointer into guest RAM and never touches an address that l1mem did not confirm.
 */
#include "mm/guest_copy.h"
#include "hv/lib.h"
#include "mm/guest_access.h"
#include "mm/guest_walk.h"

/* All of [gpa, gpa + n) is RAM of this guest. Pieces that lie behind each other in guest memory may lie
 * anywhere in the machine. */
static bool all_ram(const struct l1mem *m, gpa_t gpa, size_t n)
{
	hpa_t hpa;
	u64 run;

	while (n) {
		if (!l1mem_translate(m, gpa, &hpa, &run))
			return false;
		if (n <= run)
			return true;
		n -= run;
		gpa.v += run;
	}
	return true;
}

/* One load or store where the size allows it, so that a guest's aligned value is never seen torn. */
static inline void copy_bytes(void *dst, const void *src, size_t n)
{
	switch (n) {
	case 1:
		*(volatile u8 *)dst = *(const volatile u8 *)src;
		break;
	case 2:
		__builtin_memcpy(dst, src, 2);
		break;
	case 4:
		__builtin_memcpy(dst, src, 4);
		break;
	case 8:
		__builtin_memcpy(dst, src, 8);
		break;
	default:
		memcpy(dst, src, n);
	}
}

static inline void copy_in(void *buf, hpa_t hpa, size_t n)
{
	guest_access_begin();
	copy_bytes(buf, hpa_ptr(hpa), n);
	guest_access_end();
}

static inline void copy_out(hpa_t hpa, const void *buf, size_t n)
{
	guest_access_begin();
	copy_bytes(hpa_ptr(hpa), buf, n);
	guest_access_end();
}

/* After the write: whoever clears the note first reads what was written. */
static __attribute__((cold, noinline)) void note_pages(const struct l1mem *m, gpa_t gpa, size_t n)
{
	for (u64 p = gpa.v >> PAGE_SHIFT; p <= (gpa.v + n - 1) >> PAGE_SHIFT; p++)
		__atomic_store_n(&m->page[p].wrote, 1, __ATOMIC_RELEASE);
}

static inline void note_write(const struct l1mem *m, gpa_t gpa, size_t n)
{
	if (m->page)
		note_pages(m, gpa, n);
}

static __attribute__((cold, noinline)) bool guest_read_pieces(const struct l1mem *m, gpa_t gpa, void *buf,
							      size_t n)
{
	char *to = buf;
	hpa_t hpa;
	u64 run;

	if (!n)
		return true;
	if (!l1mem_translate(m, gpa, &hpa, &run))
		return false;
	if (unlikely(n > run)) {
		if (!all_ram(m, GPA(gpa.v + run), n - run))
			return false;
		for (; n > run; l1mem_translate(m, gpa, &hpa, &run)) {
			copy_in(to, hpa, run);
			to += run;
			n -= run;
			gpa.v += run;
		}
	}
	copy_in(to, hpa, n);
	return true;
}

bool guest_read(const struct l1mem *m, gpa_t gpa, void *buf, size_t n)
{
	hpa_t hpa;

	if (unlikely(!l1mem_plain(m, gpa, n, &hpa)))
		return guest_read_pieces(m, gpa, buf, n);
	copy_in(buf, hpa, n);
	return true;
}

static __attribute__((cold, noinline)) bool guest_write_pieces(const struct l1mem *m, gpa_t gpa,
							       const void *buf, size_t n)
{
	const char *from = buf;
	hpa_t hpa;
	u64 run;

	if (!n)
		return true;
	if (!l1mem_translate(m, gpa, &hpa, &run))
		return false;
	if (unlikely(n > run)) {
		if (!all_ram(m, GPA(gpa.v + run), n - run))
			return false;
		for (; n > run; l1mem_translate(m, gpa, &hpa, &run)) {
			copy_out(hpa, from, run);
			note_write(m, gpa, run);
			from += run;
			n -= run;
			gpa.v += run;
		}
	}
	copy_out(hpa, from, n);
	note_write(m, gpa, n);
	return true;
}

bool guest_write(const struct l1mem *m, gpa_t gpa, const void *buf, size_t n)
{
	hpa_t hpa;

	if (unlikely(!l1mem_plain(m, gpa, n, &hpa)))
		return guest_write_pieces(m, gpa, buf, n);
	copy_out(hpa, buf, n);
	note_write(m, gpa, n);
	return true;
}

bool guest_zero(const struct l1mem *m, gpa_t gpa, size_t n)
{
	hpa_t hpa;
	u64 run;

	if (!all_ram(m, gpa, n))
		return false;
	while (n) {
		size_t part;

		if (!l1mem_translate(m, gpa, &hpa, &run))
			return false;
		part = MIN(n, run);
		guest_access_begin();
		memset(hpa_ptr(hpa), 0, part);
		guest_access_end();
		note_write(m, gpa, part);
		gpa.v += part;
		n -= part;
	}
	return true;
}

bool guest_read64(const struct l1mem *m, gpa_t gpa, u64 *out)
{
	hpa_t hpa;

	if ((gpa.v & 7) || (!l1mem_plain(m, gpa, sizeof(*out), &hpa) && !l1mem_translate(m, gpa, &hpa, NULL)))
		return false;
	guest_access_begin();
	*out = __atomic_load_n((const u64 *)hpa_ptr(hpa), __ATOMIC_ACQUIRE);
	guest_access_end();
	return true;
}

bool guest_read64s(const struct l1mem *m, gpa_t gpa, u64 *out, unsigned n)
{
	const volatile u64 *from;
	hpa_t hpa;

	if ((gpa.v & 7) || (gpa.v & ~PAGE_MASK) + n * sizeof(u64) > PAGE_SIZE ||
	    !l1mem_translate(m, gpa, &hpa, NULL))
		return false;
	from = hpa_ptr(hpa);
	guest_access_begin();
	for (unsigned i = 0; i < n; i++)
		out[i] = from[i];
	guest_access_end();
	return true;
}

unsigned guest_differs(const struct l1mem *m, gpa_t gpa, const u64 *known, unsigned first)
{
	const unsigned entries = PAGE_SIZE / sizeof(u64);
	const volatile u64 *page;
	hpa_t hpa;

	if (!l1mem_translate(m, gpa, &hpa, NULL))
		return entries;
	page = hpa_ptr(hpa);
	guest_access_begin();
	for (; first < entries; first++) {
		u64 entry = __atomic_load_n(&known[first], __ATOMIC_RELAXED);

		if (entry != page[first] && entry)
			break;
	}
	guest_access_end();
	return first;
}

bool guest_and64(const struct l1mem *m, gpa_t gpa, u64 keep)
{
	hpa_t hpa;

	if ((gpa.v & 7) || !l1mem_translate(m, gpa, &hpa, NULL))
		return false;
	guest_access_begin();
	__atomic_and_fetch((u64 *)hpa_ptr(hpa), keep, __ATOMIC_SEQ_CST);
	guest_access_end();
	note_write(m, gpa, sizeof(keep));
	return true;
}

bool guest_cmpxchg64(const struct l1mem *m, gpa_t gpa, u64 old, u64 new)
{
	hpa_t hpa;
	bool done;

	if ((gpa.v & 7) || !l1mem_translate(m, gpa, &hpa, NULL))
		return false;
	guest_access_begin();
	done = __atomic_compare_exchange_n((u64 *)hpa_ptr(hpa), &old, new, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
	guest_access_end();
	note_write(m, gpa, sizeof(old));
	return done;
}

bool guest_cmpxchg32(const struct l1mem *m, gpa_t gpa, u32 old, u32 new)
{
	hpa_t hpa;
	bool done;

	if ((gpa.v & 3) || !l1mem_translate(m, gpa, &hpa, NULL))
		return false;
	guest_access_begin();
	done = __atomic_compare_exchange_n((u32 *)hpa_ptr(hpa), &old, new, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
	guest_access_end();
	note_write(m, gpa, sizeof(old));
	return done;
}

/* --- linear addresses --- */

/* Page tables that lie outside of RAM read as all ones, like an absent bus target. */
static bool l1_entry_read(void *ctx, u64 gpa, unsigned size, u64 *out)
{
	*out = ~0ull;
	guest_read(ctx, GPA(gpa), out, size);
	return true;
}

static bool l1_entry_cmpxchg(void *ctx, u64 gpa, unsigned size, u64 old, u64 new)
{
	if (size == 8)
		return guest_cmpxchg64(ctx, GPA(gpa), old, new);
	return guest_cmpxchg32(ctx, GPA(gpa), (u32)old, (u32) new);
}

bool guest_walk(const struct l1mem *m, const struct paging *p, u64 linear, enum access a, gpa_t *out,
		struct page_fault *fault)
{
	const struct walk_source source = {
		.read = l1_entry_read, .cmpxchg = l1_entry_cmpxchg, .ctx = (void *)(uintptr_t)m};

	if (likely(guest_walk_fast(m, p, linear, a, out)))
		return true;
	return paging_walk(&source, p, linear, a, &out->v, fault) == WALK_OK;
}

static u64 linear_add(const struct paging *p, u64 linear, size_t n)
{
	return paging_linear(p, linear + n);
}

/* Bytes from `linear` to the end of its page, at most n. */
static size_t page_part(u64 linear, size_t n)
{
	u64 rest = PAGE_SIZE - (linear & ~PAGE_MASK);

	return MIN(rest, n);
}

/* Translate the piece at `linear`, which lies in one page, and make sure that it is RAM. */
static bool piece(const struct l1mem *m, const struct paging *p, u64 linear, size_t n, enum access a,
		  gpa_t *gpa, struct page_fault *fault, bool *mmio)
{
	if (!guest_walk(m, p, linear, a, gpa, fault))
		return false;
	*mmio = !all_ram(m, *gpa, n);
	return !*mmio;
}

bool guest_read_linear(const struct l1mem *m, const struct paging *p, u64 linear, void *buf, size_t n,
		       enum access a, struct page_fault *fault, bool *mmio)
{
	char *to = buf;

	*mmio = false;
	linear = paging_linear(p, linear);
	while (n) {
		size_t part = page_part(linear, n);
		gpa_t gpa;

		if (!piece(m, p, linear, part, a, &gpa, fault, mmio))
			return false;
		guest_read(m, gpa, to, part);
		to += part;
		n -= part;
		linear = linear_add(p, linear, part);
	}
	return true;
}

/* All pages behind the first may be written. */
static bool may_write_rest(const struct l1mem *m, const struct paging *p, u64 linear, size_t n,
			   struct page_fault *fault, bool *mmio)
{
	size_t part = page_part(linear, n);
	gpa_t gpa;

	while (n > part) {
		n -= part;
		linear = linear_add(p, linear, part);
		part = page_part(linear, n);
		if (!piece(m, p, linear, part, ACCESS_WRITE, &gpa, fault, mmio))
			return false;
	}
	return true;
}

bool guest_write_linear(const struct l1mem *m, const struct paging *p, u64 linear, const void *buf, size_t n,
			struct page_fault *fault, bool *mmio)
{
	const char *from = buf;
	gpa_t gpa;

	*mmio = false;
	linear = paging_linear(p, linear);
	if (!n)
		return true;
	/* The first page's fault comes first, then the others', then the first byte is written. */
	if (!piece(m, p, linear, page_part(linear, n), ACCESS_WRITE, &gpa, fault, mmio) ||
	    !may_write_rest(m, p, linear, n, fault, mmio))
		return false;
	for (;;) {
		size_t part = page_part(linear, n);

		guest_write(m, gpa, from, part);
		from += part;
		n -= part;
		if (!n)
			return true;
		linear = linear_add(p, linear, part);
		/* Tables changed by another CPU since the check: the fault is a true one, too. */
		if (!piece(m, p, linear, page_part(linear, n), ACCESS_WRITE, &gpa, fault, mmio))
			return false;
	}
}
