/* SPDX-License-Identifier: Apache-2.0 */
/* The registers of the architectural PMU: which exist, what may stand in them, which differ. Pure. */
#include "hv/pmu.h"

#define SELECT_BITS 0xffd7ffffull /* all but pin control and AnyThread, which looks at the other thread */
#define FIXED_BITS  0xbull        /* of each counter: ring 0, ring 3, PMI; not AnyThread */

struct pmu_caps pmu_caps_of(const struct cpuid *leaf)
{
	struct pmu_caps c = {
		.counters = (u8)MIN(leaf->eax >> 8 & 0xff, (u32)PMU_COUNTERS),
		.width = (u8)(leaf->eax >> 16),
		.events = (u8)MIN(leaf->eax >> 24, 32u),
		.fixed = (u8)MIN(leaf->edx & 31, (u32)PMU_FIXED),
		.fixed_width = (u8)(leaf->edx >> 5),
		.unavailable = leaf->ebx,
	};

	/* Version 2 brings the global control; widths are what masks are made of. */
	if ((leaf->eax & 0xff) < 2 || c.width < 32 || c.width > 63 ||
	    (c.fixed && (c.fixed_width < 32 || c.fixed_width > 63)))
		c.counters = 0;
	return c;
}

struct cpuid pmu_leaf(const struct pmu_caps *c)
{
	if (!c->counters)
		return (struct cpuid){0};
	return (struct cpuid){.eax = 2 | (u32)c->counters << 8 | (u32)c->width << 16 | (u32)c->events << 24,
			      .ebx = c->unavailable,
			      .edx = c->fixed | (u32)c->fixed_width << 5};
}

u64 pmu_global_bits(const struct pmu_caps *c)
{
	return MASK(c->counters) | MASK(c->fixed) << 32;
}

u64 *pmu_slot(struct pmu *p, const struct pmu_caps *c, u32 msr, u64 *writable)
{
	if (msr == MSR_PERF_GLOBAL_CTRL || msr == MSR_PERF_GLOBAL_STATUS || msr == MSR_PERF_GLOBAL_OVF) {
		*writable = msr == MSR_PERF_GLOBAL_STATUS ? 0 : pmu_global_bits(c);
		return msr == MSR_PERF_GLOBAL_CTRL ? &p->global : &p->status;
	}
	if (msr == MSR_FIXED_CTR_CTRL) {
		*writable = (FIXED_BITS | FIXED_BITS << 4 | FIXED_BITS << 8) & MASK(4 * c->fixed);
		return &p->fixed_ctrl;
	}
	if (msr - MSR_PERFEVTSEL0 < c->counters) {
		*writable = SELECT_BITS;
		return &p->select[msr - MSR_PERFEVTSEL0];
	}
	if (msr - MSR_FIXED_CTR0 < c->fixed) {
		*writable = MASK(c->fixed_width);
		return &p->fixed[msr - MSR_FIXED_CTR0];
	}
	*writable = MASK(c->width);
	return msr - MSR_PMC0 < c->counters ? &p->count[msr - MSR_PMC0] : NULL;
}

u32 pmu_rdpmc_msr(const struct pmu_caps *c, u32 index)
{
	u32 n = index & ~BIT32(30);

	if (index & BIT32(30))
		return n < c->fixed ? MSR_FIXED_CTR0 + n : 0;
	return n < c->counters ? MSR_PMC0 + n : 0;
}

/* Counts are written through the full-width MSRs: by the old ones 32 bits are sign-extended. */
unsigned pmu_plan(const struct pmu_caps *c, const struct pmu *have, const struct pmu *want,
		  struct pmu_write out[PMU_WRITES])
{
	struct pmu_write all[PMU_WRITES];
	u64 old[PMU_WRITES];
	unsigned n = 0, writes = 0;

	for (u32 i = 0; i < c->counters; i++) {
		old[n] = have->select[i];
		all[n++] = (struct pmu_write){MSR_PERFEVTSEL0 + i, want->select[i]};
		old[n] = have->count[i];
		all[n++] = (struct pmu_write){MSR_PMC0_FULL + i, want->count[i]};
	}
	for (u32 i = 0; i < c->fixed; i++) {
		old[n] = have->fixed[i];
		all[n++] = (struct pmu_write){MSR_FIXED_CTR0 + i, want->fixed[i]};
	}
	old[n] = have->fixed_ctrl;
	all[n++] = (struct pmu_write){MSR_FIXED_CTR_CTRL, want->fixed_ctrl};
	for (unsigned i = 0; i < n; i++)
		if (!have->known || old[i] != all[i].value)
			out[writes++] = all[i];
	return writes;
}
