/* SPDX-License-Identifier: Apache-2.0 */
/* RIP behind an instruction that L0 carried out, with what the processor does at an instruction's end. Inline
 * for the exit path; others call insn_advance. */
#ifndef NIDUS_HV_INSN_LEN_H
#define NIDUS_HV_INSN_LEN_H

#include "hv/vcpu.h"

/*
 * Outside of 64-bit mode RIP wraps at 4 GiB. In it the sum may leave the canonical range by one instruction:
 * the entry takes that (bits 63:48 are all equal), and the guest gets #GP on its next fetch as on hardware.
 */
static inline u64 next_rip(u32 length)
{
	u64 rip = vmcs_read_nw(VMCS_GUEST_RIP);
	u64 next = rip + length;

	if (unlikely((rip ^ next) >> 32) && !vcpu_64bit())
		next &= 0xffffffff;
	return next;
}

/*
 * Pre: the current VMCS is that of what runs. SDM "Single-Step Exception Condition"; "Guest Non-Register
 * State": blocking by STI and MOV SS lasts for one instruction.
 */
static inline void insn_advance_inline(u32 length)
{
	u32 state = vmcs_read32(VMCS_GUEST_INTR_STATE);

	vmcs_write_nw(VMCS_GUEST_RIP, next_rip(length));
	if (unlikely(state & (INTR_STATE_STI | INTR_STATE_MOV_SS)))
		vmcs_write32(VMCS_GUEST_INTR_STATE, state & ~(INTR_STATE_STI | INTR_STATE_MOV_SS));
	if (unlikely(vmcs_read_nw(VMCS_GUEST_RFLAGS) & RFLAGS_TF))
		vmcs_write_nw(VMCS_GUEST_PENDING_DBG, vmcs_read_nw(VMCS_GUEST_PENDING_DBG) | BIT(14));
}

#endif
