/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear addresses of L2 for what L0 does on its behalf: L2's own page tables, which lie in L2's physical
 * memory, and EPT12 behind each step. A missing translation in EPT12 becomes L1's EPT violation, as if the
 * processor had made the access. Pre, everywhere: VMCS02 is current.
 */
#include "mm/guest_copy.h"
#include "mm/guest_walk.h"
#include "mm/pte.h"
#include "nested/internal.h"

struct l2_walk {
	struct vcpu *v;
	u64 linear;
	struct l2_exit exit; /* with `failed`: the exit this is for L1; reason 0: try again */
	bool failed;
};

static void describe(struct l2_walk *w, u64 ngpa, const struct ept12_result *r)
{
	w->failed = true;
	w->exit = (struct l2_exit){.linear = w->linear, .phys = ngpa, .qual = r->qual, .from_hardware = true};
	if (r->status == EPT12_VIOLATION)
		w->exit.reason = EXIT_EPT_VIOLATION;
	else if (r->status == EPT12_MISCONFIG)
		w->exit.reason = EXIT_EPT_MISCONFIG;
	else if (r->status == EPT12_LOG_FULL)
		w->exit = (struct l2_exit){.reason = EXIT_PML_FULL, .from_hardware = true};
	if (r->status == EPT12_VIOLATION && raise_ve(w->v, r, r->qual, w->linear, ngpa))
		w->exit.reason = 0;
}

/* L2's physical address to L1's. Without EPT12 they are the same. */
static bool to_l1(struct l2_walk *w, u64 ngpa, u64 qual, gpa_t *out)
{
	struct vcpu *v = w->v;
	const struct nested *n = v->nested;
	struct ept12_log log;
	struct ept12 ept = {.mem = &v->guest->mem,
			    .eptp = n->current->eptp,
			    .ept_vpid = n->caps.ept_vpid,
			    .phys_bits = n->facts.phys_bits,
			    .log = l1_log(v, &log)};
	struct ept12_result r;

	if (!v12_sec(n->current, SEC_EPT)) {
		*out = GPA(ngpa);
		return true;
	}
	ept12_walk(&ept, NGPA(ngpa), qual | EPT_QUAL_LINEAR, &r);
	*out = r.gpa;
	if (r.status != EPT12_OK)
		describe(w, ngpa, &r);
	return r.status == EPT12_OK;
}

static bool read_entry(void *ctx, u64 ngpa, unsigned size, u64 *out)
{
	struct l2_walk *w = ctx;
	gpa_t gpa;

	if (!to_l1(w, ngpa, EPT_QUAL_READ, &gpa))
		return false;
	*out = ~0ull; /* a table in device space */
	if (size == 8)
		return guest_read64(&w->v->guest->mem, gpa, out) || true;
	*out = 0xffffffff;
	guest_read(&w->v->guest->mem, gpa, out, size);
	return true;
}

static bool cmpxchg_entry(void *ctx, u64 ngpa, unsigned size, u64 old, u64 new)
{
	struct l2_walk *w = ctx;
	const struct l1mem *mem = &w->v->guest->mem;
	gpa_t gpa;
	u64 whole;

	if (!to_l1(w, ngpa, EPT_QUAL_READ | EPT_QUAL_WRITE, &gpa))
		return false;
	if (size == 8)
		return guest_cmpxchg64(mem, gpa, old, new);
	/* A 4-byte entry is half of an aligned u64. */
	unsigned shift = gpa.v & 4 ? 32 : 0;

	gpa.v &= ~7ull;
	if (!guest_read64(mem, gpa, &whole) || (u32)(whole >> shift) != (u32)old)
		return false;
	return guest_cmpxchg64(mem, gpa, whole,
			       (whole & ~(0xffffffffull << shift)) | (u64)(u32) new << shift);
}

/* `page`: as paging_walk says what it is. */
static u64 access_qual(unsigned access, u32 page)
{
	u64 qual = EPT_QUAL_FINAL | (page & PF_USER ? EPT_QUAL_USER : 0) |
		   (page & PF_WRITE ? EPT_QUAL_WRITABLE : 0) | (page & PF_FETCH ? EPT_QUAL_NO_EXEC : 0);

	if (access == ACCESS_FETCH)
		return qual | EPT_QUAL_FETCH;
	return qual | (access == ACCESS_WRITE ? EPT_QUAL_WRITE : EPT_QUAL_READ);
}

/* L1 gets the exit in the gate, when nothing is half done any more; without one the instruction is simply
 * executed again. */
static bool give_up(struct l2_walk *w)
{
	if (w->exit.reason)
		queue_exit(w->v, &w->exit);
	return false;
}

bool translate_l2(struct vcpu *v, u64 linear, unsigned access, gpa_t *out)
{
	struct l2_walk w = {.v = v, .linear = linear};
	const struct walk_source source = {.read = read_entry, .cmpxchg = cmpxchg_entry, .ctx = &w};
	struct page_fault fault;
	enum walk_result r;
	struct paging p;
	u64 ngpa;

	vcpu_paging(v, &p);
	r = paging_walk(&source, &p, linear, (enum access)access, &ngpa, &fault);
	if (w.failed)
		return give_up(&w);
	if (r == WALK_FAULT)
		inject_page_fault(v, fault.linear, fault.error);
	if (r != WALK_OK)
		return false;
	return to_l1(&w, ngpa, access_qual(access, fault.page), out) || give_up(&w);
}

bool l2_read_physical(struct vcpu *v, ngpa_t a, void *buf, size_t n)
{
	struct l2_walk w = {.v = v};
	gpa_t gpa;

	return to_l1(&w, a.v, EPT_QUAL_READ | EPT_QUAL_FINAL, &gpa) &&
	       guest_read(&v->guest->mem, gpa, buf, n);
}
