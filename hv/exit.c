/* SPDX-License-Identifier: Apache-2.0 */
/* An exit's way from entry.S to its handler and back; the table of handlers for L1. */
#include "hv/exit.h"
#include "hv/apicv.h"
#include "hv/cpu.h"
#include "hv/insn_len.h"
#include "hv/print.h"
#include "hv/sched.h"

static enum exit_action exit_unknown(struct vcpu *v)
{
	return exit_unexpected(v, vmcs_read32(VMCS_EXIT_REASON));
}

/* Complete: an entry that is missing would be NULL. */
static exit_fn *const exit_table[EXIT_REASONS] = {
	[EXIT_EXCEPTION_NMI] = exit_exception,
	[EXIT_EXT_INTR] = exit_external_interrupt,
	[EXIT_TRIPLE_FAULT] = exit_triple_fault,
	[EXIT_INIT... EXIT_INTR_WINDOW - 1] = exit_unknown,
	[EXIT_INTR_WINDOW] = exit_intr_window,
	[EXIT_NMI_WINDOW] = exit_nmi_window,
	[EXIT_TASK_SWITCH] = exit_task_switch,
	[EXIT_CPUID] = exit_cpuid,
	[EXIT_GETSEC] = exit_ud, /* SMX is not offered */
	[EXIT_HLT] = exit_hlt,
	[EXIT_INVD] = exit_skip, /* guest RAM is coherent: nothing to throw away */
	[EXIT_INVLPG] = exit_unknown,
	[EXIT_RDPMC] = exit_rdpmc,
	[EXIT_RDTSC... EXIT_RSM] = exit_unknown,
	[EXIT_VMCALL] = exit_vmcall,
	[EXIT_VMCLEAR... EXIT_VMXON] = exit_vmx_insn,
	[EXIT_CR_ACCESS] = exit_cr,
	[EXIT_MOV_DR] = exit_unknown,
	[EXIT_IO] = exit_io,
	[EXIT_RDMSR] = exit_rdmsr,
	[EXIT_WRMSR] = exit_wrmsr,
	[EXIT_WRMSR + 1 ... EXIT_MWAIT - 1] = exit_unknown,
	[EXIT_MWAIT] = exit_ud, /* MONITOR/MWAIT are not offered */
	[EXIT_MTF... EXIT_MONITOR - 1] = exit_unknown,
	[EXIT_MONITOR] = exit_ud,
	[EXIT_MONITOR + 1 ... EXIT_TPR_THRESHOLD - 1] = exit_unknown,
	[EXIT_TPR_THRESHOLD] = exit_tpr_threshold,
	[EXIT_APIC_ACCESS] = exit_apic_access,
	[EXIT_VIRTUALIZED_EOI] = exit_virtualized_eoi,
	[EXIT_GDTR_IDTR... EXIT_LDTR_TR] = exit_unknown,
	[EXIT_EPT_VIOLATION] = exit_ept_violation,
	[EXIT_EPT_MISCONFIG] = exit_ept_misconfig,
	[EXIT_INVEPT] = exit_vmx_insn,
	[EXIT_RDTSCP] = exit_unknown,
	[EXIT_TIMER] = exit_slice_over,
	[EXIT_INVVPID] = exit_vmx_insn,
	[EXIT_WBINVD] = exit_skip,
	[EXIT_XSETBV] = exit_xsetbv,
	[EXIT_APIC_WRITE] = exit_apic_write,
	[EXIT_RDRAND... EXIT_INVPCID] = exit_unknown,
	[EXIT_VMFUNC] = exit_ud,
	[EXIT_ENCLS... EXIT_XRSTORS] = exit_unknown,
};

/* The processor did what L0's controls do not allow, or has a feature L0 does not know: the guest cannot go
 * on, the others can. */
enum exit_action exit_unexpected(struct vcpu *v, u32 reason)
{
	log_error("guest %s vcpu %u: unexpected exit %#x qualification %#llx rip %#llx", v->guest->name,
		  v->index, reason, (unsigned long long)vmcs_read_nw(VMCS_EXIT_QUAL),
		  (unsigned long long)vmcs_read_nw(VMCS_GUEST_RIP));
	guest_end(v->guest, "killed: unexpected exit %#x", reason);
	return RESUME;
}

enum exit_action exit_l1(struct vcpu *v, u32 reason)
{
	if (unlikely(reason >= ARRAY_SIZE(exit_table)))
		return exit_unexpected(v, reason);
	v->exits[reason]++;
	return exit_table[reason](v);
}

/* The gate, while there is something for it. Then whoever runs next. */
static __attribute__((noinline)) struct vcpu *pass_gate(struct vcpu *v)
{
	do {
		if (unlikely(v->level->gate(v) == RESCHEDULE))
			return sched_next(v);
	} while (unlikely(v->pending));
	return v;
}

struct vcpu *vcpu_exit(struct vcpu *v)
{
	enum exit_action a = v->level->exit(v, (u32)vmcs_read_sure(VMCS_EXIT_REASON));

	if (likely(a == RESUME_NEXT))
		insn_advance_inline(vmcs_read_sure(VMCS_EXIT_INSN_LEN));
	v = cpu_running();
	if (unlikely(a == RESCHEDULE))
		return sched_next(v);
	return likely(!v->pending) ? v : pass_gate(v);
}

/*
 * Called by entry.S when VMLAUNCH or VMRESUME fails early, and not for the launch state. In VMCS01 a control
 * or host field that L0 wrote is wrong. In the VMCS of an L2 it may also be the virtual TPR, which stands in
 * L1's memory and changed since the check: that guest ends.
 */
struct vcpu *vcpu_entry_failed(void);
struct vcpu *vcpu_entry_failed(void)
{
	struct vcpu *v = cpu_running();
	u32 error = vmcs_read32(VMCS_INSN_ERROR);

	if (v->vmcs == &v->vmcs01)
		panic("VM entry failed, error %u", error);
	guest_end(v->guest, "killed: VM entry of L2 failed, error %u", error);
	return v->pending ? pass_gate(v) : v;
}
