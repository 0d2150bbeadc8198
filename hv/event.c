/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event gate: what an L1 vCPU is given before it is entered. Every return to a guest passes it while
 * v->pending is not zero. Order as in SDM "Priority Among Concurrent Events": faults of the instruction,
 * INIT/SIPI, NMI, maskable interrupts.
 */
#include "hv/apicv.h"
#include "hv/cpu.h"
#include "hv/dev/vlapic.h"
#include "hv/exit.h"
#include "hv/sched.h"
#include "hv/tlb.h"
#include "hv/vcpu_switch.h"

#define BLOCKED_STI_SS (INTR_STATE_STI | INTR_STATE_MOV_SS)

void event_write(const struct event *e)
{
	vmcs_write32(VMCS_ENTRY_INTR_INFO, e->info);
	if (e->info & INTR_ERROR_CODE)
		vmcs_write32(VMCS_ENTRY_ERROR_CODE, e->error);
	if (INTR_TYPE(e->info) >= INTR_TYPE_SOFT_INT)
		vmcs_write32(VMCS_ENTRY_INSN_LEN, e->insn_len);
}

static bool is_contributory(u8 vec)
{
	return vec == VEC_DE || (vec >= VEC_TS && vec <= VEC_GP);
}

/* SDM "Interrupt 8—Double Fault Exception (#DF)": a second fault while the first is being delivered. */
static enum { SERIAL, DOUBLE, TRIPLE } combine(const struct event *first, u8 second)
{
	u8 vec = INTR_VECTOR(first->info);

	if (INTR_TYPE(first->info) != INTR_TYPE_HW_EXC)
		return SERIAL;
	if (vec == VEC_DF)
		return is_contributory(second) || second == VEC_PF ? TRIPLE : SERIAL;
	if (is_contributory(vec) && is_contributory(second))
		return DOUBLE;
	if (vec == VEC_PF && (is_contributory(second) || second == VEC_PF))
		return DOUBLE;
	return SERIAL;
}

void fault_l1(struct vcpu *v, const struct event *e)
{
	struct event first = v->pending & PEND_INJECT ? v->inject : (struct event){0};

	v->inject = *e;
	__atomic_fetch_or(&v->pending, PEND_INJECT, __ATOMIC_RELAXED);
	if (!first.info)
		return;
	switch (combine(&first, INTR_VECTOR(e->info))) {
	case DOUBLE:
		v->inject =
			(struct event){.info = INTR_VALID | INTR_ERROR_CODE | INTR_TYPE_HW_EXC << 8 | VEC_DF};
		break;
	case TRIPLE:
		guest_end(v->guest, "triple-fault");
		break;
	case SERIAL:
		break;
	}
}

static void raise(struct vcpu *v, u32 info, u32 error)
{
	struct event e = {.info = INTR_VALID | INTR_TYPE_HW_EXC << 8 | info, .error = error};

	/* SDM "VM-Entry Controls for Event Injection": no error code in real mode. RF as for every fault. */
	if (!(vmcs_read_nw(VMCS_GUEST_CR0) & CR0_PE))
		e.info &= ~INTR_ERROR_CODE;
	vmcs_write_nw(VMCS_GUEST_RFLAGS, vmcs_read_nw(VMCS_GUEST_RFLAGS) | RFLAGS_RF);
	v->level->fault(v, &e);
}

void inject_exception(struct vcpu *v, enum vector vec)
{
	raise(v, vec, 0);
}

void inject_exception_error(struct vcpu *v, enum vector vec, u32 error)
{
	raise(v, vec | INTR_ERROR_CODE, error);
}

void inject_page_fault(struct vcpu *v, u64 linear, u32 error)
{
	v->cr2 = linear;
	write_cr2(linear);
	inject_exception_error(v, VEC_PF, error);
}

/* SDM "Information for VM Exits That Occur During Event Delivery". */
void event_requeue(struct vcpu *v)
{
	u32 info = vmcs_read32(VMCS_IDT_VECT_INFO);

	if (likely(!(info & INTR_VALID)) || v->pending & PEND_INJECT)
		return;
	v->inject =
		(struct event){.info = info & ~INTR_NMI_UNBLOCK, .insn_len = vmcs_read32(VMCS_EXIT_INSN_LEN)};
	if (info & INTR_ERROR_CODE)
		v->inject.error = vmcs_read32(VMCS_IDT_VECT_ERROR);
	/* The delivery of an NMI blocked further ones; injecting it again does so by itself and must not find
	 * the block set. */
	if (INTR_TYPE(info) == INTR_TYPE_NMI)
		vmcs_write32(VMCS_GUEST_INTR_STATE, vmcs_read32(VMCS_GUEST_INTR_STATE) & ~INTR_STATE_NMI);
	__atomic_fetch_or(&v->pending, PEND_INJECT, __ATOMIC_RELAXED);
}

void event_window(u32 control, bool on)
{
	u64 proc = vmcs_read_sure(VMCS_PROC_CTL);

	vmcs_write_sure(VMCS_PROC_CTL, on ? proc | control : proc & ~(u64)control);
}

/* The traps that wait are the last instruction's: they come before other events, and an entry that injects
 * one would lose them. SDM "Delivery of Pending Debug Exceptions after VM Entry". */
bool event_trap_due(void)
{
	const u64 causes = BIT(12) | BIT(14) | BIT(16); /* an enabled breakpoint, single-step, RTM */

	return vmcs_read_sure(VMCS_GUEST_PENDING_DBG) & causes &&
	       !(vmcs_read_sure(VMCS_GUEST_INTR_STATE) & INTR_STATE_MOV_SS);
}

/* No device is given to a guest, so no host NMI is a guest's; hv/idt has counted it. */
void host_nmi(void)
{
}

bool vcpu_intr_pending(struct vcpu *v)
{
	if (vlapic_pending(v) >= 0)
		return true;
	return vlapic_accepts_extint(v) && v->guest->pic_output;
}

/* With APICv the processor has the highest request in RVI; the page's IRR follows it. */
bool vcpu_intr_possible(const struct vcpu *v)
{
	if (v->apicv_mode ? (u8)vmcs_read16(VMCS_GUEST_INTR_STATUS) : vlapic_requested(v))
		return true;
	return v->guest->pic_output && vlapic_accepts_extint(v);
}

/* The PIC comes first: an APIC takes ExtINT without comparing priorities. */
u8 vcpu_intr_ack(struct vcpu *v)
{
	int vec;

	if (vlapic_accepts_extint(v) && v->guest->pic_output)
		return machine_pic_ack(v->guest->machine);
	vec = vlapic_take(v);
	/* The PIC's line fell since vcpu_intr_pending: it answers with its spurious vector. */
	return unlikely(vec < 0) ? machine_pic_ack(v->guest->machine) : (u8)vec;
}

bool gate_common(struct vcpu *v)
{
	u32 p = __atomic_fetch_and(&v->pending, ~(u32)(PEND_TLB | PEND_VPID | PEND_RESCHED),
				   __ATOMIC_SEQ_CST);

	if (p & PEND_TLB)
		invept_all();
	if (p & PEND_VPID)
		invvpid_single(v->vpid);
	if (p & PEND_STOP) {
		sched_vcpu_stopped(v);
		return true;
	}
	return p & PEND_RESCHED;
}

/* SDM "INIT Signal": held back in VMX root operation; ignored (not held) while waiting for SIPI changes
 * nothing visible. */
static void take_init(struct vcpu *v)
{
	if (v->nested && nested_vmxon(v)) {
		v->init_waiting = true;
		return;
	}
	vcpu_reset(v, true);
	v->state = v->index ? VCPU_WAIT_SIPI : VCPU_RUN;
	vcpu_load(v);
}

static void take_sipi(struct vcpu *v)
{
	if (v->state != VCPU_WAIT_SIPI)
		return;
	vmcs_write16(VMCS_GUEST_CS_SEL, (u16)(v->sipi_vector << 8));
	vmcs_write_nw(VMCS_GUEST_CS_BASE, (u64)v->sipi_vector << 12);
	vmcs_write_nw(VMCS_GUEST_RIP, 0);
	v->state = VCPU_RUN;
}

static void wake(struct vcpu *v)
{
	if (v->state == VCPU_HALT)
		v->state = VCPU_RUN;
}

static void set_nmi_window(struct vcpu *v, bool on)
{
	if (v->nmi_window != on)
		event_window(PROC_NMI_WINDOW, v->nmi_window = on);
}

static void set_intr_window(struct vcpu *v, bool on)
{
	if (v->intr_window != on)
		event_window(PROC_INTR_WINDOW, v->intr_window = on);
}

/* True: the entry's one event slot is taken. */
static bool try_nmi(struct vcpu *v)
{
	if (vmcs_read32(VMCS_GUEST_INTR_STATE) & (BLOCKED_STI_SS | INTR_STATE_NMI) || event_trap_due()) {
		set_nmi_window(v, true);
		return false;
	}
	v->nmi_waiting--;
	set_nmi_window(v, v->nmi_waiting);
	event_write(&(struct event){.info = INTR_VALID | INTR_TYPE_NMI << 8 | VEC_NMI});
	wake(v);
	return true;
}

/* The processor delivers what the APIC holds; HLT is L0's, so L0 wakes. */
static void sync_apicv(struct vcpu *v)
{
	apicv_sync(v);
	if (v->state == VCPU_HALT && v->apicv_mode && vmcs_read_nw(VMCS_GUEST_RFLAGS) & RFLAGS_IF &&
	    apicv_pending(v))
		wake(v);
}

static inline bool extint_pending(struct vcpu *v)
{
	return unlikely(v->guest->pic_output) && vlapic_accepts_extint(v);
}

/* The APIC has a request that it does not deliver by itself. */
static inline bool request_waits(const struct vcpu *v)
{
	return !v->apicv_mode && (v->apicv ? vlapic_requested(v) : vlapic_waits(v));
}

static inline bool takes_interrupt(void)
{
	return vmcs_read_sure(VMCS_GUEST_RFLAGS) & RFLAGS_IF &&
	       !(vmcs_read_sure(VMCS_GUEST_INTR_STATE) & BLOCKED_STI_SS) && !event_trap_due();
}

/* Behind an ExtINT. */
static __attribute__((cold, noinline)) bool more_to_come(struct vcpu *v)
{
	return (!v->apicv_mode && vlapic_pending(v) >= 0) || extint_pending(v);
}

/*
 * One interrupt, if there is one. Where none can be taken it does not matter which it would be: the window
 * opens for whatever is requested, and its exit decides. With the APIC's in service nothing more of it
 * follows before an EOI or a new request; the PIC may have more at once.
 */
static inline __attribute__((always_inline)) void try_intr(struct vcpu *v, bool slot_taken, bool extint,
							   bool waits)
{
	int vec;

	if (!extint && !waits) {
		set_intr_window(v, false);
		return;
	}
	if (slot_taken || !takes_interrupt()) {
		set_intr_window(v, true);
		return;
	}
	vec = extint ? machine_pic_ack(v->guest->machine) : vlapic_take(v);
	if (unlikely(vec < 0)) {
		set_intr_window(v, false);
		return;
	}
	vmcs_write_sure(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_TYPE_EXT << 8 | (u32)vec);
	wake(v);
	set_intr_window(v, extint && more_to_come(v));
}

static __attribute__((noinline, cold)) void update_tpr_threshold(struct vcpu *v)
{
	u8 threshold = vlapic_threshold(v);

	if (threshold != v->tpr_threshold)
		vmcs_write32(VMCS_TPR_THRESHOLD, v->tpr_threshold = threshold);
}

/* SDM "TPR Threshold": an exit when the guest lowers TPR so far that the request held back may be delivered.
 */
static inline void set_tpr_threshold(struct vcpu *v)
{
	if (unlikely(vlapic_tpr_is_up(v) || v->tpr_threshold))
		update_tpr_threshold(v);
}

static __attribute__((noinline)) void take_interrupts(struct vcpu *v, bool slot_taken)
{
	if (v->apicv)
		sync_apicv(v);
	try_intr(v, slot_taken, extint_pending(v), request_waits(v));
	if (!v->apicv_mode)
		set_tpr_threshold(v);
}

/* SDM "Handling Multiple NMIs": besides the one in service one more is kept. */
static void take_nmis(struct vcpu *v)
{
	u32 n = v->nmi_waiting + __atomic_exchange_n(&v->nmis_sent, 0, __ATOMIC_SEQ_CST);

	v->nmi_waiting = (u8)MIN(n, 2u);
}

/* All requests. */
static __attribute__((noinline, cold)) enum exit_action gate_fully(struct vcpu *v)
{
	u32 p;
	bool slot_taken = false;

	if (gate_common(v))
		return RESCHEDULE;
	p = __atomic_exchange_n(&v->pending, 0, __ATOMIC_SEQ_CST);
	if (p & PEND_STOP) { /* came in since gate_common */
		__atomic_fetch_or(&v->pending, p, __ATOMIC_SEQ_CST);
		return RESUME;
	}
	/* Both at once: software need not wait between them where the processor is fast. */
	if (p & PEND_INIT)
		take_init(v);
	if (p & PEND_SIPI)
		take_sipi(v);
	if (v->state == VCPU_WAIT_SIPI)
		return RESCHEDULE;
	if (p & PEND_INJECT) {
		event_write(&v->inject);
		v->inject.info = 0;
		slot_taken = true;
		wake(v);
	}
	if (p & PEND_NMI)
		take_nmis(v);
	if (v->nmi_waiting) {
		if (slot_taken)
			set_nmi_window(v, true);
		else
			slot_taken = try_nmi(v);
	}
	if (p & (PEND_INTR | PEND_TPR | PEND_INJECT | PEND_NMI))
		take_interrupts(v, slot_taken);
	return v->state == VCPU_RUN ? RESUME : RESCHEDULE;
}

/* Mostly there is nothing but an interrupt, or one that may be; straight on where it is the APIC's and L0
 * delivers it. */
enum exit_action gate_l1(struct vcpu *v)
{
	if (unlikely(v->pending != PEND_INTR || v->nmi_waiting || v->state == VCPU_WAIT_SIPI))
		return gate_fully(v);
	__atomic_fetch_and(&v->pending, ~(u32)PEND_INTR, __ATOMIC_SEQ_CST);
	if (v->apicv || unlikely(v->guest->pic_output)) {
		take_interrupts(v, false);
	} else {
		try_intr(v, false, false, vlapic_waits(v));
		set_tpr_threshold(v);
	}
	return likely(v->state == VCPU_RUN) ? RESUME : RESCHEDULE;
}
