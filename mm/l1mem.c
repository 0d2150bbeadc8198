/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The RAM of an L1 guest: taken in large chunks, never moved. Decides what is RAM and what is not; the tables
 * it fills are the caller's, and so is flushing.
 */
#include "mm/l1mem.h"
#include "hv/lib.h"
#include "mm/hostpt.h"
#include "mm/palloc.h"

#define CHUNK_ORDER_MIN 9 /* 2 MiB */
#define CHUNK_SIZE_MIN  (PAGE_SIZE << CHUNK_ORDER_MIN)

/* Largest order that fits `size` and keeps gpa aligned to it, so that EPT leaves can be as large as the
 * chunk. */
static unsigned fitting_order(u64 gpa, u64 size, unsigned max)
{
	unsigned order = max;

	while (order > CHUNK_ORDER_MIN && ((PAGE_SIZE << order) > size || (gpa & ((PAGE_SIZE << order) - 1))))
		order--;
	return order;
}

/* Part of what was taken as one block, or all of it. */
static void give_back(hpa_t block, u64 from, u64 to)
{
	while (from < to) {
		unsigned order = fitting_order(from, to - from, PALLOC_ORDER_MAX);

		pfree(HPA(block.v + from), order);
		from += PAGE_SIZE << order;
	}
}

static void add_chunk(struct l1mem *m, u64 gpa, hpa_t hpa, u64 size)
{
	/* Zero it before it becomes a user page: L0 may not touch those outside of mm/guest_copy. */
	memset(hpa_ptr(hpa), 0, size);
	hostpt_set_guest(hpa, size, true);
	m->chunk[m->count++] = (struct l1mem_chunk){.gpa = gpa, .hpa = hpa.v, .size = size};
}

/* All of a range as one chunk, of any size: the rest of a larger block is given back. Most of what looks for
 * guest memory finds the first chunk faster than others. */
static bool take_whole(struct l1mem *m, u64 gpa, u64 size, u16 id)
{
	unsigned order = CHUNK_ORDER_MIN;
	hpa_t hpa;

	while (PAGE_SIZE << order < size)
		if (++order > PALLOC_ORDER_MAX)
			return false;
	if (!size || !palloc(order, (u16)(PAGE_GUEST0 + id), &hpa))
		return false;
	give_back(hpa, size, PAGE_SIZE << order);
	add_chunk(m, gpa, hpa, size);
	return true;
}

/* Take one chunk of at most `max` (in: largest order worth trying; out: what the allocator still had). */
static bool take_chunk(struct l1mem *m, u64 gpa, u64 size, unsigned *max, u16 id)
{
	unsigned order = fitting_order(gpa, size, *max);
	hpa_t hpa;

	if (m->count == L1MEM_CHUNKS_MAX)
		return false;
	while (!palloc(order, (u16)(PAGE_GUEST0 + id), &hpa)) {
		if (order == CHUNK_ORDER_MIN)
			return false;
		*max = --order;
	}
	add_chunk(m, gpa, hpa, PAGE_SIZE << order);
	return true;
}

/* gpa is a multiple of the largest block. */
static bool take_range(struct l1mem *m, u64 gpa, u64 size, u16 id)
{
	unsigned max = PALLOC_ORDER_MAX;

	if (take_whole(m, gpa, size, id))
		return true;
	while (size) {
		u64 done;

		if (!take_chunk(m, gpa, size, &max, id))
			return false;
		done = m->chunk[m->count - 1].size;
		gpa += done;
		size -= done;
	}
	return true;
}

bool l1mem_create(struct l1mem *m, u64 bytes, u16 id)
{
	m->count = 0;
	m->ram = m->low = m->high = 0;
	/* More than the allocator can hold also keeps the sums below from overflow. */
	if (!bytes || bytes > palloc_free_bytes())
		return false;
	m->ram = ALIGN_UP(bytes, CHUNK_SIZE_MIN);
	m->low = MIN(m->ram, L1MEM_LOW_MAX);
	m->high = m->ram - m->low;
	if (take_range(m, 0, m->low, id) && take_range(m, L1MEM_HIGH, m->high, id))
		return true;
	l1mem_destroy(m);
	return false;
}

/* One entry for each page number up to the end of RAM. */
static unsigned account_order(const struct l1mem *m)
{
	const struct l1mem_chunk *last = &m->chunk[m->count - 1];
	u64 bytes = (last->gpa + last->size) / PAGE_SIZE * sizeof(struct l1page);
	unsigned order = 0;

	while (PAGE_SIZE << order < bytes)
		order++;
	return order;
}

void l1mem_account(struct l1mem *m)
{
	m->page = pages_alloc(account_order(m));
}

void l1mem_destroy(struct l1mem *m)
{
	for (unsigned i = 0; i < m->count; i++) {
		const struct l1mem_chunk *c = &m->chunk[i];

		hostpt_set_guest(HPA(c->hpa), c->size, false);
		give_back(HPA(c->hpa), 0, c->size);
	}
	if (m->page)
		pfree(ptr_hpa(m->page), account_order(m));
	m->page = NULL;
	m->count = 0;
	m->chunk[0].size = 0; /* find_chunk looks there first */
	m->ram = m->low = m->high = 0;
}

/* The chunk that holds gpa, or NULL. */
static const struct l1mem_chunk *find_chunk(const struct l1mem *m, u64 gpa)
{
	unsigned from = 0, to = m->count;

	/* A guest that came early has one chunk for all of its low RAM. */
	if (likely(gpa - m->chunk[0].gpa < m->chunk[0].size))
		return &m->chunk[0];
	while (from < to) {
		unsigned mid = (from + to) / 2;
		const struct l1mem_chunk *c = &m->chunk[mid];

		if (gpa < c->gpa)
			to = mid;
		else if (gpa - c->gpa >= c->size)
			from = mid + 1;
		else
			return c;
	}
	return NULL;
}

bool l1mem_translate(const struct l1mem *m, gpa_t gpa, hpa_t *hpa, u64 *run)
{
	const struct l1mem_chunk *c = find_chunk(m, gpa.v);
	u64 end;

	if (!c || (gpa.v >= L1MEM_HOLE_START && gpa.v < L1MEM_HOLE_END))
		return false;
	end = gpa.v < L1MEM_HOLE_START ? L1MEM_HOLE_START : c->gpa + c->size;
	*hpa = HPA(c->hpa + (gpa.v - c->gpa));
	if (run)
		*run = end - gpa.v;
	return true;
}

struct l1page *l1mem_page(const struct l1mem *m, gpa_t gpa)
{
	return m->page && l1mem_translate(m, gpa, &(hpa_t){0}, NULL) ? &m->page[gpa.v >> PAGE_SHIFT] : NULL;
}

void l1mem_expose(const struct l1mem *m, gpa_t gpa)
{
	struct l1page *page = l1mem_page(m, gpa);

	if (page)
		l1page_expose(page);
}

static bool map_part(struct ept *ept01, const struct l1mem_chunk *c, u64 start, u64 end)
{
	const u64 flags = EPT_RWX | EPT_TYPE(MEMTYPE_WB) | EPT_ACCESSED | EPT_DIRTY;

	start = MAX(start, c->gpa);
	end = MIN(end, c->gpa + c->size);
	if (start >= end)
		return true;
	return ept_map(ept01, start, c->hpa + (start - c->gpa), end - start, flags);
}

bool l1mem_map(const struct l1mem *m, struct ept *ept01)
{
	for (unsigned i = 0; i < m->count; i++)
		if (!map_part(ept01, &m->chunk[i], 0, L1MEM_HOLE_START) ||
		    !map_part(ept01, &m->chunk[i], L1MEM_HOLE_END, ~0ull))
			return false;
	return true;
}

void l1mem_memmap(const struct l1mem *m, struct memmap *out)
{
	out->count = 0;
	memmap_add(out, 0, L1_EBDA, MEM_RAM);
	memmap_add(out, L1_EBDA, L1MEM_HOLE_START, MEM_RESERVED);
	memmap_add(out, L1_ACPI_BASE, MIB, MEM_RESERVED);
	memmap_add(out, MIB, m->low, MEM_RAM);
	memmap_add(out, L1_IOAPIC, L1MEM_HIGH, MEM_RESERVED);
	if (m->high)
		memmap_add(out, L1MEM_HIGH, L1MEM_HIGH + m->high, MEM_RAM);
}
