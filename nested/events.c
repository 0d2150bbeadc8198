/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event gate of an L2: what is due to L1 becomes an exit to L1, or an event for L2 where L1 does not
 * intercept it. An event that an entry is about to deliver to L2 goes first; then hardware is asked to come
 * back at once. Pre, everywhere: VMCS02 is current. SDM "Priority Among Concurrent Events", "Other Causes of
 * VM Exits", "Event Blocking".
 */
#include "hv/exit.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"
#include "nested/posted.h"

#define BLOCKED_STI_SS (INTR_STATE_STI | INTR_STATE_MOV_SS)
#define INFO_NMI       (INTR_VALID | INTR_TYPE_NMI << 8 | VEC_NMI)
#define INFO_DF        (INTR_VALID | INTR_ERROR_CODE | INTR_TYPE_HW_EXC << 8 | VEC_DF)

void queue_exit(struct vcpu *v, const struct l2_exit *x)
{
	v->nested->queued = *x;
	__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
}

void l2_inject(struct vcpu *v, const struct event *e)
{
	event_write(e);
	v->nested->event_in_entry = true;
	v->nested->activity = ACTIVITY_ACTIVE;
	v->state = VCPU_RUN;
}

/* --- faults that L0 raises in L2 --- */

/* The exit L0 is handling tells what was being delivered; whose the fault is the gate decides, when the
 * handler is done. */
void fault_l2(struct vcpu *v, const struct event *e)
{
	struct nested *n = v->nested;

	n->fault_first = (struct event){.info = vmcs_read32(VMCS_IDT_VECT_INFO)};
	if (n->fault_first.info & INTR_ERROR_CODE)
		n->fault_first.error = vmcs_read32(VMCS_IDT_VECT_ERROR);
	v->inject = *e;
	n->fault_raised = true;
	__atomic_fetch_or(&v->pending, PEND_INJECT, __ATOMIC_RELAXED);
}

static bool is_contributory(u8 vec)
{
	return vec == VEC_DE || (vec >= VEC_TS && vec <= VEC_GP);
}

/* SDM "Interrupt 8—Double Fault Exception (#DF)". */
static enum { SERIAL, DOUBLE, TRIPLE } combine(const struct event *first, u8 second)
{
	u8 vec = INTR_VECTOR(first->info);
	bool bad = is_contributory(second) || second == VEC_PF;

	if (!(first->info & INTR_VALID) || INTR_TYPE(first->info) != INTR_TYPE_HW_EXC)
		return SERIAL;
	if (vec == VEC_DF)
		return bad ? TRIPLE : SERIAL;
	if (is_contributory(vec))
		return is_contributory(second) ? DOUBLE : SERIAL;
	return (vec == VEC_PF || vec == VEC_VE) && bad ? DOUBLE : SERIAL;
}

/* L1 gets the exception, or L2 does. True: L1 runs now. */
static bool give_exception(struct vcpu *v, const struct event *e)
{
	struct nested *n = v->nested;
	u8 vec = INTR_VECTOR(e->info);
	struct l2_exit x = {.reason = EXIT_EXCEPTION_NMI, .intr = *e, .idt = n->fault_first};

	if (!l1_wants_exception(n->current, vec, e->error)) {
		l2_inject(v, e);
		return false;
	}
	if (vec == VEC_PF)
		x.qual = v->cr2;
	reflect(v, &x);
	return true;
}

/* SDM "Exception Bitmap": an exception that L1 wants exits before it can become a double fault. */
static bool give_fault(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct event e = v->inject;

	v->inject.info = 0;
	if (!n->fault_raised) { /* an event given back, or one L1 has no say in */
		l2_inject(v, &e);
		return false;
	}
	n->fault_raised = false;
	if (l1_wants_exception(n->current, INTR_VECTOR(e.info), e.error))
		return give_exception(v, &e);
	switch (combine(&n->fault_first, INTR_VECTOR(e.info))) {
	case TRIPLE:
		reflect_simple(v, EXIT_TRIPLE_FAULT, 0);
		return true;
	case DOUBLE:
		e = (struct event){.info = INFO_DF};
		break;
	case SERIAL:
		break;
	}
	return give_exception(v, &e);
}

/* --- events for L1 --- */

static bool intr_exits(const struct vcpu *v)
{
	return v12_pin(v->nested->current, PIN_EXT_INTR);
}

static bool nmi_exits(const struct vcpu *v)
{
	return v12_pin(v->nested->current, PIN_NMI);
}

/* Blocking by NMI is L1's own blocking unless L1 uses virtual NMIs. */
static bool nmi_exit_blocked(const struct vcpu *v)
{
	return !v12_pin(v->nested->current, PIN_VNMI) && vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_NMI;
}

static bool takes_interrupts(const struct nested *n)
{
	return n->activity == ACTIVITY_ACTIVE || n->activity == ACTIVITY_HLT;
}

static bool intr_open(void)
{
	return vmcs_read_nw(VMCS_GUEST_RFLAGS) & RFLAGS_IF &&
	       !(vmcs_read32(VMCS_GUEST_INTR_STATE) & BLOCKED_STI_SS);
}

/* INIT and SIPI. True: L1 runs now. */
static bool give_signals(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (n->init) {
		n->init = false;
		reflect_simple(v, EXIT_INIT, 0);
		return true;
	}
	if (n->sipi) {
		n->sipi = false; /* lost unless somebody waits for it */
		if (n->activity == ACTIVITY_WAIT_SIPI) {
			reflect_simple(v, EXIT_SIPI, v->sipi_vector);
			return true;
		}
	}
	return false;
}

static bool timer_due(const struct vcpu *v)
{
	return v->nested->activity != ACTIVITY_WAIT_SIPI && timer_expired(v);
}

/*
 * Debug traps of L2's last instruction, which hardware delivers or exits with, come before whatever else is
 * due; they also end a halt. True: enter, and come back at once for the rest.
 */
static bool trap_first(struct vcpu *v, bool due)
{
	struct nested *n = v->nested;

	if (!(n->activity == ACTIVITY_HLT || (n->activity == ACTIVITY_ACTIVE && due)) || !event_trap_due())
		return false;
	n->activity = ACTIVITY_ACTIVE;
	v->state = VCPU_RUN;
	n->immediate_exit = true;
	return true;
}

/* True: L1 runs now. */
static bool give_timer(struct vcpu *v)
{
	if (!timer_due(v))
		return false;
	reflect_simple(v, EXIT_TIMER, 0);
	return true;
}

/* A window L1 asked for is open at once in an L2 that is halted; hardware, which does not know of the halt,
 * finds the others. SDM "Other Causes of VM Exits": in shutdown only the one for NMIs. */
static bool give_windows(struct vcpu *v)
{
	struct vmcs02 *e = v->nested->current;

	if (v->nested->activity != ACTIVITY_HLT && v->nested->activity != ACTIVITY_SHUTDOWN)
		return false;
	if (v12_proc(e, PROC_NMI_WINDOW) && !(vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_NMI)) {
		reflect_simple(v, EXIT_NMI_WINDOW, 0);
		return true;
	}
	if (v12_proc(e, PROC_INTR_WINDOW) && takes_interrupts(v->nested) && intr_open()) {
		reflect_simple(v, EXIT_INTR_WINDOW, 0);
		return true;
	}
	return false;
}

/* True: L1 runs now. */
static bool give_nmi(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 state = vmcs_read32(VMCS_GUEST_INTR_STATE);

	if (nmi_exits(v)) {
		if (nmi_exit_blocked(v)) {
			n->l0_windows |= PROC_NMI_WINDOW;
			return false;
		}
		n->nmi = false;
		reflect(v, &(struct l2_exit){.reason = EXIT_EXCEPTION_NMI, .intr = {.info = INFO_NMI}});
		return true;
	}
	if (state & (BLOCKED_STI_SS | INTR_STATE_NMI)) {
		n->l0_windows |= PROC_NMI_WINDOW;
		return false;
	}
	n->nmi = false;
	l2_inject(v, &(struct event){.info = INFO_NMI});
	return false;
}

/* The virtual interrupt that VMCS02 holds is of a higher class than what L2 serves or lets through. SDM
 * "Evaluation of Pending Virtual Interrupts". */
static bool virtual_intr_due(struct vcpu *v)
{
	const struct vmcs02 *e = v->nested->current;
	u8 request, tpr;
	u16 status;

	if (!(e->m.sec & SEC_VID) || !intr_open())
		return false;
	status = vmcs_read16(VMCS_GUEST_INTR_STATUS);
	request = (u8)status >> 4;
	return guest_read(&v->guest->mem, GPA(e->v12.virtual_apic + APIC_TPR), &tpr, 1) &&
	       request > status >> 12 && request > tpr >> 4;
}

/* SDM "Posted-Interrupt Processing": the notification ends here, what was posted is L2's. */
static void take_posted(struct vcpu *v)
{
	const struct vmcs02 *e = v->nested->current;
	u8 highest = posted_take(&v->guest->mem, GPA(e->v12.pi_desc), GPA(e->v12.virtual_apic));
	u16 status = vmcs_read16(VMCS_GUEST_INTR_STATUS);

	vlapic_eoi(v);
	if (highest > (u8)status)
		vmcs_write16(VMCS_GUEST_INTR_STATUS, (u16)((status & 0xff00) | highest));
}

/* SDM "External-Interrupt Exiting": regardless of RFLAGS.IF. True: L1 runs now. */
static bool give_interrupt(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct l2_exit x = {.reason = EXIT_EXT_INTR};

	if (intr_exits(v)) {
		n->l1_pending |= PEND_INTR;
		if (n->current->v12.exit_ctl & EXIT_ACK_INTR) {
			u8 vec = vcpu_intr_ack(v);

			if (v12_pin(n->current, PIN_POSTED) && vec == n->current->v12.pi_vector) {
				take_posted(v);
				return false;
			}
			x.intr.info = INTR_VALID | INTR_TYPE_EXT << 8 | vec;
		}
		reflect(v, &x);
		return true;
	}
	if (n->event_in_entry || !intr_open()) {
		n->l0_windows |= PROC_INTR_WINDOW;
		return false;
	}
	l2_inject(v, &(struct event){.info = INTR_VALID | INTR_TYPE_EXT << 8 | vcpu_intr_ack(v)});
	if (vcpu_intr_pending(v))
		n->l0_windows |= PROC_INTR_WINDOW;
	return false;
}

/* Nothing may come between an event in the entry fields and its delivery: what would exit then waits for the
 * way back. */
static bool exit_waits(struct vcpu *v)
{
	const struct nested *n = v->nested;

	return n->init || (n->nmi && nmi_exits(v) && !nmi_exit_blocked(v)) ||
	       (intr_exits(v) && vcpu_intr_pending(v));
}

/* True: L1 runs now. */
static bool give_events(struct vcpu *v)
{
	struct nested *n = v->nested;
	bool intr = takes_interrupts(n) && vcpu_intr_pending(v);

	if (!n->event_in_entry) {
		if (give_signals(v))
			return true;
		if (trap_first(v, intr || n->nmi || timer_due(v)))
			return false;
		if (give_timer(v) || give_windows(v))
			return true;
		if (n->nmi && n->activity != ACTIVITY_WAIT_SIPI && give_nmi(v))
			return true;
	} else if (n->nmi && !nmi_exits(v)) {
		n->l0_windows |= PROC_NMI_WINDOW;
	}
	if (n->event_in_entry && exit_waits(v))
		n->immediate_exit = true;
	else if (intr)
		return give_interrupt(v);
	return false;
}

/* Requests that are not for L2 itself. */
static void collect(struct nested *n, u32 p)
{
	n->init |= !!(p & PEND_INIT);
	n->sipi |= !!(p & PEND_SIPI);
	n->nmi |= !!(p & PEND_NMI);
	n->l1_pending |= p & (PEND_INTR | PEND_TPR);
}

static enum exit_action sleep(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (n->current->root)
		sept_leave(n->current->root, v->index);
	n->current->root = NULL;
	timer_wait(v);
	return RESCHEDULE;
}

enum exit_action gate_l2(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 p;

	if (gate_common(v)) {
		if (v->level != &level_l1)
			__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
		return RESCHEDULE;
	}
	p = __atomic_exchange_n(&v->pending, 0, __ATOMIC_SEQ_CST);
	if (p & PEND_STOP) { /* came in since gate_common */
		__atomic_fetch_or(&v->pending, p, __ATOMIC_SEQ_CST);
		return RESUME;
	}
	if (p & PEND_NMI)
		__atomic_store_n(&v->nmis_sent, 0, __ATOMIC_SEQ_CST);
	collect(n, p);
	n->l0_windows = 0;
	n->immediate_exit = false;
	if (n->queued.reason) {
		struct l2_exit x = n->queued;

		return reflect(v, &x);
	}
	if ((p & PEND_INJECT && give_fault(v)) || give_events(v))
		return RESUME;
	/* SDM "Virtual-Interrupt Delivery": it wakes as an external interrupt does. */
	if (n->activity == ACTIVITY_HLT && virtual_intr_due(v)) {
		n->activity = ACTIVITY_ACTIVE;
		v->state = VCPU_RUN;
	}
	vmcs02_put(n->current, MIRROR_PROC_CTL, n->current->m.proc | n->l0_windows);
	if (n->activity != ACTIVITY_ACTIVE)
		return sleep(v);
	timer_stop(v);
	return nested_before_entry(v);
}
