/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VMX-preemption timer of an L2: one hardware timer serves L1's value, L0's time slice, and "come back at
 * once". Deadlines are kept in timer units (TSC >> shift). Pre, where not said otherwise: VMCS02 is current.
 * SDM "VMX-Preemption Timer".
 */
#include "hv/cpu.h"
#include "nested/internal.h"

static bool hardware_timer(void)
{
	return l0_controls.pin & PIN_TIMER;
}

static u64 now(void)
{
	return rdtsc() >> l0_controls.timer_shift;
}

static bool l1_timer(const struct vcpu *v)
{
	return v12_pin(v->nested->current, PIN_TIMER);
}

static u64 left_until(u64 deadline)
{
	u64 t = now();

	return deadline > t ? deadline - t : 0;
}

/*
 * An emulated processor may hold the host's timer interrupt back while L2 has interrupts off, where L1's own
 * timer has to end L2: its run is then cut at L0's next deadline.
 */
static void cut_at_deadline(struct vcpu *v)
{
	struct nested *n = v->nested;

	n->cut = n->host_deadline ? (n->host_deadline >> l0_controls.timer_shift) + 1 : 0;
}

void timer_start(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (l1_timer(v))
		n->timer_deadline = now() + n->current->v12.preempt_timer;
	if (hardware_timer() && !(n->current->v12.guest_rflags & RFLAGS_IF))
		cut_at_deadline(v);
}

/* A VMCS02 begins with what is left of the vCPU's turn: an L1 that goes through many VMCSs has no more time
 * for it. A vCPU that has its CPU alone has no turn. */
static void arm_slice(struct vcpu *v)
{
	vmcs_arm_slice(v, v->preempt ? rdtsc() - v->cpu->since : 0);
}

/* What L0 wants apart from L1 and in a hurry: the slice, whose rest hardware saves in the field at each exit.
 */
static void leave_slice_alone(struct vcpu *v, struct vmcs02 *e)
{
	if (e->slice == SLICE_ENDS)
		vmcs_write32(VMCS_PREEMPT_TIMER, (u32)left_until(e->slice_end));
	else if (e->slice == SLICE_NONE)
		arm_slice(v);
	e->slice = SLICE_IN_FIELD;
}

static void write_shorter(struct vcpu *v, struct vmcs02 *e)
{
	const struct nested *n = v->nested;
	u64 left;

	if (e->slice == SLICE_NONE)
		arm_slice(v);
	if (e->slice != SLICE_ENDS)
		e->slice_end = now() + vmcs_read32(VMCS_PREEMPT_TIMER);
	left = left_until(n->cut ? MIN(n->cut, e->slice_end) : e->slice_end);
	if (l1_timer(v))
		left = MIN(left, left_until(n->timer_deadline));
	vmcs_write32(VMCS_PREEMPT_TIMER, n->immediate_exit ? 0 : (u32)left);
	e->slice = SLICE_ENDS;
}

void timer_write(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;

	if (!hardware_timer()) {
		if (n->immediate_exit)
			cpu_kick(v->cpu); /* an interrupt waits for the entry */
		return;
	}
	if (v->cpu->timers.armed != n->host_deadline) {
		n->host_deadline = v->cpu->timers.armed;
		cut_at_deadline(v);
	}
	if (l1_timer(v) || n->immediate_exit || n->cut)
		write_shorter(v, e);
	else
		leave_slice_alone(v, e);
}

bool timer_expired(const struct vcpu *v)
{
	return l1_timer(v) && !left_until(v->nested->timer_deadline);
}

u32 timer_left(const struct vcpu *v)
{
	return (u32)MIN(left_until(v->nested->timer_deadline), 0xffffffffull);
}

enum exit_action timer_exit(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;

	if (n->immediate_exit)
		return RESUME;
	if (n->cut && !left_until(n->cut)) {
		n->cut = 0;
		timer_run();
	}
	if (e->slice == SLICE_ENDS && left_until(e->slice_end))
		return RESUME;
	e->slice = SLICE_NONE; /* the next turn's is armed when it has begun */
	return v->preempt ? RESCHEDULE : RESUME;
}

static void wake(void *arg)
{
	vcpu_request(arg, PEND_NESTED);
}

void timer_wait(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (!l1_timer(v) || n->wake.cpu)
		return;
	n->wake.fn = wake;
	n->wake.arg = v;
	timer_arm(&n->wake, n->timer_deadline << l0_controls.timer_shift);
}
