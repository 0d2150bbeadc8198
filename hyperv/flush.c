/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLB flush calls of L1 for its own address spaces. L0 flushes all that a vCPU's tag holds, or a few pages of
 * it: more than asked for is allowed. TLFS "Virtual MMU".
 */
#include "hv/tlb.h"
#include "hyperv/hypercall.h"

#define FLUSH_ALL_PROCESSORS BIT(0)
#define FLUSH_ALL_SPACES     BIT(1)
#define FLUSH_NON_GLOBAL     BIT(2)
#define FLUSH_EXTENDED_RANGE BIT(3)
#define FLUSH_FLAGS          MASK(4)

/* Flushing more pages one by one costs more than the whole tag. */
#define PAGES_MAX 16u

struct flush {
	u64 vps;
	const u64 *list; /* NULL: everything */
	unsigned count;
};

/* --- this CPU --- */

static bool canonical(u64 a)
{
	return (u64)((s64)(a << 16) >> 16) == a;
}

/* One element: address of a page, and in the low bits how many follow it. */
static bool flush_pages(struct vcpu *v, u64 element, unsigned *budget)
{
	u64 pages = (element & ~PAGE_MASK) + 1;

	if (pages > *budget || !canonical(element) || !canonical(element + pages * PAGE_SIZE))
		return false;
	*budget -= (unsigned)pages;
	for (u64 i = 0; i < pages; i++)
		invvpid_address(v->vpid, (element & PAGE_MASK) + i * PAGE_SIZE);
	return true;
}

static void flush_self(struct vcpu *v, const struct flush *f)
{
	unsigned budget = f->list ? PAGES_MAX : 0;

	for (unsigned i = 0; budget && i < f->count; i++)
		if (!flush_pages(v, f->list[i], &budget))
			budget = 0;
	if (!budget)
		invvpid_single(v->vpid);
}

static enum hv_status flush(struct vcpu *v, const struct flush *f, bool *again)
{
	u64 vps = f->vps & all_vps(v);

	if (!wait_is_repeated(v, f->vps)) {
		if (vps >> v->index & 1)
			flush_self(v, f);
		wait_ask(v, vps, PEND_VPID);
	}
	*again = !wait_is_over(v);
	return HV_SUCCESS;
}

/* --- the calls --- */

static bool flags_ok(u64 flags, bool list)
{
	return !(flags & ~FLUSH_FLAGS) && !(list && flags & FLUSH_NON_GLOBAL);
}

enum hv_status flush_of_l2(const struct call *c, const u64 *in, u64 *vps)
{
	const struct call_form *f = call_form(c->code);
	enum hv_status s = HV_SUCCESS;

	if (!flags_ok(in[1], f->list))
		return HV_INVALID_PARAMETER;
	*vps = in[2] ? in[2] : ~0ull;
	if (f->variable)
		s = call_vp_set_folded(in + 2, c->variable, vps);
	if (in[1] & FLUSH_ALL_PROCESSORS)
		*vps = ~0ull;
	return s;
}

/* Ranges in another format than pages are flushed with everything else. */
static void set_list(struct flush *f, const struct call *c, const u64 *list, u64 flags)
{
	if (flags & FLUSH_EXTENDED_RANGE)
		return;
	f->list = list + c->start;
	f->count = (unsigned)(c->reps - c->start);
}

/* An empty mask names everybody, as older guests expect. */
static u64 plain_mask(const struct vcpu *v, u64 flags, u64 mask)
{
	return flags & FLUSH_ALL_PROCESSORS || !mask ? all_vps(v) : mask;
}

enum hv_status flush_space(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	struct flush f = {.vps = plain_mask(v, in[1], in[2])};

	(void)c;
	return flags_ok(in[1], false) ? flush(v, &f, again) : HV_INVALID_PARAMETER;
}

enum hv_status flush_list(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	struct flush f = {.vps = plain_mask(v, in[1], in[2])};

	set_list(&f, c, in + 3, in[1]);
	return flags_ok(in[1], true) ? flush(v, &f, again) : HV_INVALID_PARAMETER;
}

static enum hv_status flush_ex(struct vcpu *v, const struct call *c, const u64 *in, bool list, bool *again)
{
	struct flush f = {0};
	enum hv_status s;

	if (!flags_ok(in[1], list))
		return HV_INVALID_PARAMETER;
	s = call_vp_set(in + 2, c->variable, all_vps(v), &f.vps);
	if (s != HV_SUCCESS)
		return s;
	if (in[1] & FLUSH_ALL_PROCESSORS)
		f.vps = all_vps(v);
	if (list)
		set_list(&f, c, in + 4 + c->variable, in[1]);
	return flush(v, &f, again);
}

enum hv_status flush_space_ex(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	return flush_ex(v, c, in, false, again);
}

enum hv_status flush_list_ex(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	return flush_ex(v, c, in, true, again);
}
