/* SPDX-License-Identifier: Apache-2.0 */
/* The Hyper-V personality: what `hyperv=on` gives an L1. Its parts are the other files of this folder. */
#include "hyperv/hyperv.h"
#include "hv/print.h"
#include "hyperv/internal.h"
#include "hyperv/stimer.h"
#include "hyperv/synic.h"
#include "mm/palloc.h"
#include "nested/enlightened.h"

#define VP_ORDER 1
_Static_assert(sizeof(struct hv_vp) <= PAGE_SIZE << VP_ORDER, "struct hv_vp fits its pages");
_Static_assert(sizeof(struct hv_partition) <= PAGE_SIZE, "struct hv_partition fits its page");

static bool create(struct vcpu *v)
{
	if (!v->index)
		v->guest->partition = page_alloc();
	v->vp = pages_alloc(VP_ORDER);
	if (!v->vp || !v->guest->partition)
		return false;
	stimer_init(v);
	assist_reset(v);
	if (v->nested)
		nested_enlighten(v, &hv_enlightened);
	return true;
}

static void destroy(struct vcpu *v)
{
	if (v->vp)
		pfree(ptr_hpa(v->vp), VP_ORDER);
	v->vp = NULL;
	if (v->index || !v->guest->partition)
		return;
	page_free(v->guest->partition);
	v->guest->partition = NULL;
}

/* The partition starts anew with its first VP. INIT leaves what L1 told Hyper-V alone, but the enlightened
 * VMCS goes with the rest of VMX operation (nested_reset). */
static void reset(struct vcpu *v, bool init)
{
	struct hv_partition *p = hv_partition(v);

	hv_vp(v)->wait_vps = 0;
	if (init)
		return;
	assist_reset(v);
	stimer_reset(v);
	synic_reset(v);
	if (v->index)
		return;
	hypercall_page_reset(v->guest);
	p->reference_tsc = 0;
	p->crash_reported = false;
	for (unsigned i = 0; i < ARRAY_SIZE(p->crash); i++)
		p->crash[i] = 0;
}

/* Over all lives of the guest. */
static void report(const struct guest *g)
{
	unsigned long long s[COUNTERS] = {0};

	for (unsigned i = 0; i < g->nr_vcpus; i++)
		for (unsigned n = 0; n < COUNTERS; n++)
			s[n] += hv_vp(g->vcpu[i])->count[n];
	log_info(
		"guest %s hyperv: %llu evmcs entries, %llu clean groups, %llu msr bitmaps kept, %llu merged, "
		"%llu space flushes, %llu list flushes, %llu mapping flushes, %llu ipis, %llu other calls, "
		"%llu direct flushes",
		g->name, s[COUNT_ENTRIES], s[COUNT_CLEAN_GROUPS], s[COUNT_BITMAPS_KEPT],
		s[COUNT_ENTRIES] - s[COUNT_BITMAPS_KEPT], s[COUNT_SPACE_FLUSH], s[COUNT_LIST_FLUSH],
		s[COUNT_MAPPING_FLUSH], s[COUNT_IPI], s[COUNT_OTHER], s[COUNT_DIRECT_FLUSH]);
}

const struct personality hyperv = {
	.create = create,
	.destroy = destroy,
	.reset = reset,
	.cpuid = hv_cpuid,
	.msr_read = hv_msr_read,
	.msr_write = hv_msr_write,
	.vmcall = hypercall,
	.tsc_moved = reference_tsc_moved,
	.report = report,
};
