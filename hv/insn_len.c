/* SPDX-License-Identifier: Apache-2.0 */
/* The callable forms of hv/insn_len.h, and its rare parts. */
#include "hv/insn_len.h"

/*
 * Outside of 64-bit mode RIP wraps at 4 GiB. In it the sum may leave the canonical range by one instruction:
 * the entry takes that (bits 63:48 are all equal), and the guest gets #GP on its next fetch as on hardware.
 */
u64 insn_wrapped_rip(u64 next)
{
	return vcpu_64bit() ? next : (u32)next;
}

void insn_end_blocking(u64 state)
{
	vmcs_write32(VMCS_GUEST_INTR_STATE, (u32)state & ~(INTR_STATE_STI | INTR_STATE_MOV_SS));
}

void insn_single_step(void)
{
	vmcs_write_nw(VMCS_GUEST_PENDING_DBG, vmcs_read_nw(VMCS_GUEST_PENDING_DBG) | BIT(14));
}

void insn_advance_by(struct vcpu *v, u32 length)
{
	(void)v;
	insn_advance_inline(length);
}

void insn_advance(struct vcpu *v)
{
	insn_advance_by(v, vmcs_read32(VMCS_EXIT_INSN_LEN));
}
