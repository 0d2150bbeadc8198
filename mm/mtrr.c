/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "Memory Type Range Registers (MTRRs)". All but mtrr_read is pure. */
#include "mm/mtrr.h"
#include "hv/x86.h"

#define DEF_FIXED_ENABLE BIT(10)
#define DEF_ENABLE       BIT(11)
#define MASK_VALID       BIT(11)
#define CAP_FIXED        BIT(8)

struct mtrrs host_mtrrs;

static void read_fixed(struct mtrrs *m)
{
	m->fixed[0] = rdmsr(MSR_MTRR_FIX64K);
	m->fixed[1] = rdmsr(MSR_MTRR_FIX16K);
	m->fixed[2] = rdmsr(MSR_MTRR_FIX16K + 1);
	for (u32 i = 0; i < 8; i++)
		m->fixed[3 + i] = rdmsr(MSR_MTRR_FIX4K + i);
}

/* Without MTRRs (no known VMX CPU) everything below is UC: slow, but right. */
void mtrr_read(void)
{
	struct mtrrs *m = &host_mtrrs;
	u32 width = cpuid(0x80000000, 0).eax >= 0x80000008 ? cpuid(0x80000008, 0).eax & 0xff : 36;
	u64 cap;

	m->phys_mask = MASK(width) & PAGE_MASK;
	if (!(cpuid(1, 0).edx & BIT32(12)))
		return;
	cap = rdmsr(MSR_MTRRCAP);
	m->def = rdmsr(MSR_MTRR_DEF_TYPE);
	m->fixed_ok = cap & CAP_FIXED;
	if (m->fixed_ok)
		read_fixed(m);
	m->nr_var = MIN((unsigned)(cap & 0xff), (unsigned)MTRR_VARIABLE_MAX);
	for (u32 i = 0; i < m->nr_var; i++) {
		m->base[i] = rdmsr(MSR_MTRR_PHYSBASE0 + 2 * i);
		m->mask[i] = rdmsr(MSR_MTRR_PHYSBASE0 + 2 * i + 1);
	}
}

/* Fixed registers: eight ranges each of 64K, 16K or 4K. */
static enum memory_type fixed_type(const struct mtrrs *m, u64 a)
{
	unsigned range; /* counted over all 88 ranges */

	if (a < 0x80000)
		range = (unsigned)(a >> 16);
	else if (a < 0xc0000)
		range = 8 + (unsigned)((a - 0x80000) >> 14);
	else
		range = 24 + (unsigned)((a - 0xc0000) >> 12);
	return (enum memory_type)(m->fixed[range / 8] >> range % 8 * 8 & 0xff);
}

/* Where variable ranges overlap: UC wins, then WT over WB; anything else is undefined and taken as UC. */
static enum memory_type overlap(enum memory_type a, enum memory_type b)
{
	if (a == b)
		return a;
	if ((a == MT_WT && b == MT_WB) || (a == MT_WB && b == MT_WT))
		return MT_WT;
	return MT_UC;
}

enum memory_type mtrr_type_at(const struct mtrrs *m, u64 a)
{
	bool hit = false;
	enum memory_type type = MT_UC;

	if (!(m->def & DEF_ENABLE))
		return MT_UC;
	if (a < MIB && m->fixed_ok && (m->def & DEF_FIXED_ENABLE))
		return fixed_type(m, a);
	for (unsigned i = 0; i < m->nr_var; i++) {
		u64 mask = m->mask[i] & m->phys_mask;
		enum memory_type t = (enum memory_type)(m->base[i] & 0xff);

		if (!(m->mask[i] & MASK_VALID) || (a & mask) != (m->base[i] & mask))
			continue;
		type = hit ? overlap(type, t) : t;
		hit = true;
	}
	return hit ? type : (enum memory_type)(m->def & 0xff);
}

/*
 * The type can change only where a range begins or ends: inside the first MiB at every 4 KiB, above it where
 * the lowest set bit of some mask says. Stepping by the smallest such size visits every change.
 */
static u64 granularity(const struct mtrrs *m)
{
	u64 step = GIB;

	for (unsigned i = 0; i < m->nr_var; i++) {
		u64 mask = m->mask[i] & m->phys_mask;

		if ((m->mask[i] & MASK_VALID) && mask)
			step = MIN(step, mask & -mask);
	}
	return step;
}

bool mtrr_uniform(const struct mtrrs *m, u64 a, u64 size, enum memory_type *type)
{
	u64 step = granularity(m), at = a;

	*type = mtrr_type_at(m, a);
	while (at < a + size) {
		if (mtrr_type_at(m, at) != *type)
			return false;
		at = at < MIB ? at + PAGE_SIZE : ALIGN_DOWN(at, step) + step;
	}
	return true;
}
