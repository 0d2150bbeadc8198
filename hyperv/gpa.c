/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1 changed its EPT and says where. Two rounds: when every vCPU that runs on that EPT has been out of it
 * once, no fill goes on that began before the change; then the ranges are dropped, and each must have been
 * out again before the call ends. TLFS "Nested Virtualization", guest mapping flush.
 */
#include "hyperv/hypercall.h"
#include "nested/enlightened.h"

#define EVERYTHING ~0ull
/* More than this is dropped with everything else: 64 MiB. */
#define PAGES_MAX 16384u

#define LARGE      BIT(11)
#define LARGE_SIZE (2 * MIB)

struct range {
	u64 from, bytes;
};

/* TLFS HV_GPA_PAGE_RANGE: page number, a bit for large pages, how many more follow. */
static struct range range_of(u64 element)
{
	u64 size = element & LARGE ? LARGE_SIZE : PAGE_SIZE;

	return (struct range){element & ~(size - 1), ((element & MASK(11)) + 1) * size};
}

static bool is_small(const u64 *list, unsigned count)
{
	u64 pages = 0;

	for (unsigned i = 0; i < count; i++)
		pages += range_of(list[i]).bytes / PAGE_SIZE;
	return pages <= PAGES_MAX;
}

static void drop(struct vcpu *v, u64 eptp12, const u64 *list, unsigned count)
{
	if (!list || !is_small(list, count)) {
		nested_flush_gpa(v, eptp12, NGPA(0), EVERYTHING);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		struct range r = range_of(list[i]);

		nested_flush_gpa(v, eptp12, NGPA(r.from), r.bytes);
	}
}

static enum hv_status flush(struct vcpu *v, u64 eptp12, const u64 *list, unsigned count, bool *again)
{
	struct hv_vp *vp = hv_vp(v);

	if (!wait_is_repeated(v, eptp12)) {
		vp->wait_second = false;
		wait_ask(v, nested_inside(v, eptp12), PEND_VPID);
	}
	if (!vp->wait_second && wait_is_over(v)) {
		drop(v, eptp12, list, count);
		vp->wait_second = true;
		wait_ask(v, nested_inside(v, eptp12), PEND_VPID);
	}
	*again = !wait_is_over(v);
	return HV_SUCCESS;
}

enum hv_status flush_gpa_space(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	(void)c;
	if (!v->nested)
		return HV_INVALID_CODE;
	return in[1] ? HV_INVALID_PARAMETER : flush(v, in[0], NULL, 0, again);
}

enum hv_status flush_gpa_list(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	if (!v->nested)
		return HV_INVALID_CODE;
	if (in[1])
		return HV_INVALID_PARAMETER;
	return flush(v, in[0], in + 2 + c->start, (unsigned)(c->reps - c->start), again);
}
