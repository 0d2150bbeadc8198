/* SPDX-License-Identifier: Apache-2.0 */
/* Exits that come from outside of the instruction stream, and exceptions L0 intercepts. */
#include "hv/cpu.h"
#include "hv/exit.h"
#include "hv/print.h"
#include "hv/trap.h"
#include "hv/vmcs_init.h"

/* Acknowledge-on-exit: the vector is out of the host's APIC already. */
enum exit_action exit_external_interrupt(struct vcpu *v)
{
	host_interrupt(INTR_VECTOR(vmcs_read32(VMCS_EXIT_INTR_INFO)));
	return v->preempt ? RESCHEDULE : RESUME; /* what it woke may be a neighbour */
}

/* The exit blocks NMIs in root mode until an IRET: take the NMI through the host's own gate, which ends with
 * one. */
enum exit_action exit_host_nmi(struct vcpu *v)
{
	(void)v;
	host_nmi_take();
	return RESUME;
}

enum exit_action exit_slice_over(struct vcpu *v)
{
	vmcs_arm_slice(v, 0);
	return v->preempt ? RESCHEDULE : RESUME;
}

/*
 * SDM "Architectural State Before a VM Exit": a #DB that exits has not updated DR6 and DR7.GD; delivering it
 * must. It also ends blocking by STI and MOV SS, which with TF set and no single-step trap pending is no
 * state that can be entered. SDM "Checks on Guest Non-Register State".
 */
static void give_db(struct vcpu *v)
{
	u64 qual = vmcs_read_nw(VMCS_EXIT_QUAL), dr6;

	asm volatile("mov %%db6, %0" : "=r"(dr6));
	dr6 = (dr6 & ~0xfull) | (qual & 0x600f);
	asm volatile("mov %0, %%db6" : : "r"(dr6));
	vmcs_write_nw(VMCS_GUEST_DR7, vmcs_read_nw(VMCS_GUEST_DR7) & ~BIT(13));
	vmcs_write64(VMCS_GUEST_DEBUGCTL, vmcs_read64(VMCS_GUEST_DEBUGCTL) & ~3ull);
	vmcs_write32(VMCS_GUEST_INTR_STATE,
		     vmcs_read32(VMCS_GUEST_INTR_STATE) & ~(INTR_STATE_STI | INTR_STATE_MOV_SS));
	vmcs_write_nw(VMCS_GUEST_PENDING_DBG, 0);
	v->inject = (struct event){.info = vmcs_read32(VMCS_EXIT_INTR_INFO) & ~INTR_NMI_UNBLOCK,
				   .insn_len = vmcs_read32(VMCS_EXIT_INSN_LEN)};
	__atomic_fetch_or(&v->pending, PEND_INJECT, __ATOMIC_RELAXED);
}

/*
 * #DB and #AC are intercepted only so that a guest whose delivery of one raises the next cannot keep the CPU
 * in microcode for ever; they go to the guest as they came. SDM "Exception Bitmap"; CVE-2015-5307 and
 * CVE-2015-8104 are the story.
 */
enum exit_action exit_exception(struct vcpu *v)
{
	u32 info = vmcs_read32(VMCS_EXIT_INTR_INFO);

	if (INTR_TYPE(info) == INTR_TYPE_NMI)
		return exit_host_nmi(v);
	switch (INTR_VECTOR(info)) {
	case VEC_DB:
		give_db(v);
		return RESUME;
	case VEC_AC:
		inject_exception_error(v, VEC_AC, vmcs_read32(VMCS_EXIT_ERROR_CODE));
		return RESUME;
	case VEC_MC:
		guest_end(v->guest, "killed: machine check");
		return RESUME;
	default:
		return exit_unexpected(v, EXIT_EXCEPTION_NMI);
	}
}

/* The gate closes the window. */
enum exit_action exit_intr_window(struct vcpu *v)
{
	__atomic_fetch_or(&v->pending, PEND_INTR, __ATOMIC_RELAXED);
	return RESUME;
}

enum exit_action exit_nmi_window(struct vcpu *v)
{
	event_window(PROC_NMI_WINDOW, v->nmi_window = false);
	__atomic_fetch_or(&v->pending, PEND_NMI, __ATOMIC_RELAXED);
	return RESUME;
}

enum exit_action exit_tpr_threshold(struct vcpu *v)
{
	__atomic_fetch_or(&v->pending, PEND_INTR, __ATOMIC_RELAXED);
	return RESUME;
}

enum exit_action exit_triple_fault(struct vcpu *v)
{
	guest_end(v->guest, "triple-fault");
	return RESUME;
}
