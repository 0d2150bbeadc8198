/* SPDX-License-Identifier: Apache-2.0 */
/* RIP behind an instruction that L0 carried out, with what the processor does at an instruction's end. Inline
 * for the exit path; others call insn_advance. */
#ifndef NIDUS_HV_INSN_LEN_H
#define NIDUS_HV_INSN_LEN_H

#include "hv/vcpu.h"

/* The rare parts of insn_advance_inline. `next`: RIP that crossed a multiple of 4 GiB. `state`: the
 * interruptibility with blocking by STI or MOV SS. */
u64 insn_wrapped_rip(u64 next);
void insn_end_blocking(u64 state);
void insn_single_step(void);

/*
 * Pre: the current VMCS is that of what runs; length is 1 to 15. SDM "Single-Step Exception Condition";
 * "Guest Non-Register State": blocking by STI and MOV SS lasts for one instruction.
 */
static inline void insn_advance_inline(u64 length)
{
	u64 rip = VMCS_GUEST_RIP, next, state;

	asm("" : "+r"(rip)); /* the number is loaded once */
	next = vmcs_read_sure_by(rip, VMCS_GUEST_RIP) + length;

	if (unlikely((u32)next < (u32)length)) {
		next = insn_wrapped_rip(next);
		rip = VMCS_GUEST_RIP;
	}
	vmcs_write_sure_by(rip, VMCS_GUEST_RIP, next);
	state = vmcs_read_sure(VMCS_GUEST_INTR_STATE);
	if (unlikely(state & (INTR_STATE_STI | INTR_STATE_MOV_SS)))
		insn_end_blocking(state);
	if (unlikely(vmcs_read_sure(VMCS_GUEST_RFLAGS) & RFLAGS_TF))
		insn_single_step();
}

#endif
