/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MTRRs of an L1: kept for the guest to read back. Its RAM is WB in EPT whatever they say; its PAT
 * combines with that. SDM "Memory Type Range Registers (MTRRs)".
 */
#include "hv/msr.h"
#include "hv/vcpu.h"

bool mtrr_type_valid(u8 t)
{
	return t <= 1 || (t >= 4 && t <= 6);
}

static bool types_valid(u64 value)
{
	for (unsigned i = 0; i < 8; i++)
		if (!mtrr_type_valid((u8)(value >> (8 * i))))
			return false;
	return true;
}

bool mtrr_read_cap(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = MTRR_VAR_COUNT | BIT(8) | BIT(10); /* fixed ranges, WC */
	return true;
}

bool mtrr_read_var(struct vcpu *v, u32 msr, u64 *value)
{
	*value = v->mtrr_var[msr - MSR_MTRR_PHYSBASE0];
	return true;
}

bool mtrr_write_var(struct vcpu *v, u32 msr, u64 value)
{
	u64 width = MASK(vcpu_cpuid(v, 0x80000008, 0).eax & 0xff);
	bool mask = msr & 1;

	if (value & ~width || (mask ? value & 0x7ff : value & 0xf00 || !mtrr_type_valid((u8)value)))
		return false;
	v->mtrr_var[msr - MSR_MTRR_PHYSBASE0] = value;
	return true;
}

static unsigned fixed_index(u32 msr)
{
	return msr == MSR_MTRR_FIX64K ? 0
	       : msr < MSR_MTRR_FIX4K ? 1 + msr - MSR_MTRR_FIX16K
				      : 3 + msr - MSR_MTRR_FIX4K;
}

bool mtrr_read_fixed(struct vcpu *v, u32 msr, u64 *value)
{
	*value = v->mtrr_fixed[fixed_index(msr)];
	return true;
}

bool mtrr_write_fixed(struct vcpu *v, u32 msr, u64 value)
{
	if (!types_valid(value))
		return false;
	v->mtrr_fixed[fixed_index(msr)] = value;
	return true;
}

bool mtrr_read_def(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = v->mtrr_def;
	return true;
}

bool mtrr_write_def(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (value & ~0xcffull || !mtrr_type_valid((u8)value))
		return false;
	v->mtrr_def = value;
	return true;
}
