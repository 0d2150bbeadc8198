/* SPDX-License-Identifier: Apache-2.0 */
/* Exit handlers that more than one table or level uses. A handler works on the current VMCS. */
#ifndef NIDUS_HV_EXIT_H
#define NIDUS_HV_EXIT_H

#include "hv/vcpu.h"

/* hv/exit.c: L1's table. An exit no handler knows ends the guest. */
enum exit_action exit_l1(struct vcpu *v, u32 reason);
enum exit_action exit_unexpected(struct vcpu *v, u32 reason);

/* hv/exit_event.c: the host's business, whatever level runs. */
exit_fn exit_external_interrupt; /* acknowledged by the exit: its vector is in the exit information */
exit_fn exit_host_nmi;           /* also lets further NMIs in again */
exit_fn exit_slice_over;         /* the preemption timer armed by vmcs_arm_slice */
exit_fn exit_exception;
exit_fn exit_intr_window, exit_nmi_window, exit_triple_fault, exit_tpr_threshold;

exit_fn exit_rdpmc; /* hv/pmu.c */
exit_fn exit_cpuid, exit_rdmsr, exit_wrmsr, exit_cr, exit_io, exit_ept_violation, exit_ept_misconfig;
exit_fn exit_hlt, exit_xsetbv, exit_vmcall, exit_ud, exit_skip, exit_task_switch, exit_rdtsc, exit_rdtscp;

/* hv/exit_mem.c: carry out the instruction at RIP, which accesses L1's device at `gpa`. `fetch` gets its
 * bytes and `read`/`write` its memory for the level that runs. */
enum exit_action mmio_emulate(struct vcpu *v, gpa_t gpa);
/* The same where it is L1 that runs. */
enum exit_action mmio_emulate_l1(struct vcpu *v, gpa_t gpa);
/* struct level's translate for L1. */
bool translate_l1(struct vcpu *v, u64 linear, unsigned access, gpa_t *out);

/* hv/event.c: event gate of L1; the parts L2's gate shares. */
enum exit_action gate_l1(struct vcpu *v);
/* PEND_STOP, PEND_TLB, PEND_VPID, PEND_RESCHED: true when the vCPU must not go on (return RESCHEDULE). */
bool gate_common(struct vcpu *v);
/* Put an event into the entry fields of the current VMCS. */
void event_write(const struct event *e);
/* An event whose delivery the exit interrupted goes back into v->inject (unless something is there). Call
 * from handlers of exits that can interrupt a delivery. */
void event_requeue(struct vcpu *v);
/* Debug traps wait in the current VMCS that the next entry delivers, if it injects nothing. */
bool event_trap_due(void);
/* Set or clear interrupt-window (PROC_INTR_WINDOW) or NMI-window exiting in the current VMCS. */
void event_window(u32 control, bool on);

#endif
