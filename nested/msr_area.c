/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSR load and store lists of VMCS12, and single MSR accesses of L2 that L0 carries out. Each list entry is
 * copied once, checked and used before the next is looked at, as the processor does. SDM "Loading MSRs",
 * "Saving MSRs".
 */
#include "mm/guest_copy.h"
#include "nested/internal.h"

u32 msr_area_load(struct vcpu *v, u64 list, u32 count, msr_write_fn *write)
{
	const struct l1mem *mem = &v->guest->mem;

	for (u32 i = 0; i < count; i++) {
		struct msr_entry m;

		if (i == MSR_LIST_MAX || !guest_read(mem, GPA(list + i * sizeof(m)), &m, sizeof(m)))
			return i + 1;
		if (check_msr_load(&m).err || !write(v, m.index, m.value))
			return i + 1;
	}
	return 0;
}

/* IA32_TSC is stored as L1 sees it: the exit comes before the store. */
static bool store_value(struct vcpu *v, u32 msr, u64 *value)
{
	return msr == MSR_TSC ? msr_read(v, msr, value) : l2_msr_read(v, msr, value);
}

bool msr_area_store(struct vcpu *v, u64 list, u32 count)
{
	const struct l1mem *mem = &v->guest->mem;

	for (u32 i = 0; i < count; i++) {
		gpa_t at = GPA(list + i * sizeof(struct msr_entry));
		struct msr_entry m;

		if (i == MSR_LIST_MAX || !guest_read(mem, at, &m, sizeof(m)))
			return false;
		if (check_msr_store(&m).err || !store_value(v, m.index, &m.value))
			return false;
		at.v += offsetof(struct msr_entry, value);
		if (!guest_write(mem, at, &m.value, sizeof(m.value)))
			return false;
	}
	return true;
}

bool l2_msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	if (!msr_read(v, msr, value))
		return false;
	if (msr == MSR_TSC)
		*value = merge_l2_tsc(&v->nested->current->v12, *value);
	return true;
}

/* SDM "IA32_EFER": LMA is the processor's; LME may not change while paging is on. The mode is L2's, not what
 * L2 reads of it. */
static bool write_efer(struct vcpu *v, u64 value)
{
	u64 old = vmcs_read64(VMCS_GUEST_EFER);

	if (value & ~(v->nested->facts.efer_bits))
		return false;
	if ((value ^ old) & EFER_LME && vmcs_read_nw(VMCS_GUEST_CR0) & CR0_PG)
		return false;
	v->kept_written = true;
	vmcs_write64(VMCS_GUEST_EFER, (value & ~EFER_LMA) | (old & EFER_LMA));
	return true;
}

/* hv/ wrote L1's new offset into the current VMCS, which is VMCS02: put the sum there, and L1's own into
 * VMCS01 when L1 runs again. */
static void restore_tsc_offset(struct vcpu *v)
{
	struct vmcs02 *e = v->nested->current;
	struct merged m;

	v->nested->needs.tsc_offset = e->seen.tsc_offset = v->tsc_offset;
	merge_controls(&m, &e->v12, &v->nested->needs);
	e->m.tsc_offset = m.tsc_offset;
	e->known &= ~BIT(MIRROR_TSC_OFFSET);
	vmcs02_put(e, MIRROR_TSC_OFFSET, m.tsc_offset);
}

bool l2_msr_write(struct vcpu *v, u32 msr, u64 value)
{
	if (msr == MSR_EFER)
		return write_efer(v, value);
	if (!msr_write(v, msr, value))
		return false;
	if (v->tsc_offset != v->nested->current->seen.tsc_offset)
		restore_tsc_offset(v);
	return true;
}
