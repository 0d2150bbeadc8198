/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partition's reference time: 100 ns units since the guest started, by MSR and by a page with which L1
 * computes it from its own TSC. TLFS "Timers", "Partition Reference Time Enlightenment".
 */
#include "hv/cpu.h"
#include "hyperv/internal.h"
#include "hyperv/time.h"
#include "mm/guest_copy.h"

/* The page as L1 reads it. */
struct tsc_page {
	u32 sequence; /* 0: invalid, use the MSR */
	u32 reserved;
	u64 scale;
	u64 offset;
};

static u64 scaled(u64 tsc)
{
	return time_scaled(tsc, time_scale(tsc_hz));
}

/* By the page's formula, so that both never disagree. */
u64 reference_time(const struct guest *g)
{
	return scaled(rdtsc()) - scaled(g->started_tsc);
}

u64 vp_runtime(const struct vcpu *v)
{
	return scaled(v->ran + rdtsc() - v->cpu->since);
}

/* The formula holds while every vCPU shows the host's TSC. */
static bool tsc_is_common(const struct guest *g)
{
	for (unsigned i = 0; i < g->nr_vcpus; i++)
		if (g->vcpu[i]->tsc_offset)
			return false;
	return true;
}

/* The sequence number is written last: L1 reads it before and after the rest. */
static void fill_page(struct guest *g, u64 msr)
{
	struct tsc_page p = {.scale = time_scale(tsc_hz), .offset = 0 - scaled(g->started_tsc)};
	gpa_t at = GPA(HV_PAGE_GPA(msr));
	u32 sequence = tsc_is_common(g) ? 1 : 0;

	guest_write(&g->mem, at, &p, sizeof(p));
	guest_write(&g->mem, at, &sequence, sizeof(sequence));
}

bool reference_tsc_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_partition *p = hv_partition(v);
	hpa_t at;

	(void)msr;
	if (value & HV_PAGE_ENABLE && !hv_page_ok(v->guest, value, &at))
		return false;
	spin_lock(&p->lock);
	p->reference_tsc = value;
	if (value & HV_PAGE_ENABLE)
		fill_page(v->guest, value);
	spin_unlock(&p->lock);
	return true;
}

void reference_tsc_moved(struct vcpu *v)
{
	struct hv_partition *p = hv_partition(v);

	spin_lock(&p->lock);
	if (p->reference_tsc & HV_PAGE_ENABLE)
		fill_page(v->guest, p->reference_tsc);
	spin_unlock(&p->lock);
}
