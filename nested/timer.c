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

static void new_slice(struct vcpu *v)
{
	vmcs_arm_slice(v);
	v->nested->slice_end = now() + vmcs_read32(VMCS_PREEMPT_TIMER);
	v->nested->timer_short = false;
}

/*
 * An emulated processor may hold the host's timer interrupt back while L2 has interrupts off, where L1's own
 * timer has to end L2: the slice then ends with L0's next deadline.
 */
static void end_with_deadline(struct vcpu *v)
{
	struct nested *n = v->nested;
	u64 end = (n->host_deadline >> l0_controls.timer_shift) + 1;

	if (n->host_deadline && end < n->slice_end) {
		n->slice_end = end;
		n->timer_short = true;
	}
}

void timer_start(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (l1_timer(v))
		n->timer_deadline = now() + n->current->v12.preempt_timer;
	if (!hardware_timer())
		return;
	new_slice(v);
	n->host_deadline = v->cpu->timers.armed;
	if (!(n->current->v12.guest_rflags & RFLAGS_IF))
		end_with_deadline(v);
}

void timer_set(struct vcpu *v)
{
	struct nested *n = v->nested;
	bool shorter = l1_timer(v) || n->immediate_exit;
	u64 left;

	if (!hardware_timer()) {
		if (n->immediate_exit)
			cpu_kick(v->cpu); /* an interrupt waits for the entry */
		return;
	}
	if (unlikely(v->cpu->timers.armed != n->host_deadline)) {
		n->host_deadline = v->cpu->timers.armed;
		end_with_deadline(v);
	}
	if (!shorter && !n->timer_short)
		return; /* hardware saved what is left of the slice */
	left = left_until(n->slice_end);
	if (l1_timer(v))
		left = MIN(left, left_until(n->timer_deadline));
	vmcs_write32(VMCS_PREEMPT_TIMER, n->immediate_exit ? 0 : (u32)left);
	n->timer_short = shorter;
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

	if (n->immediate_exit || left_until(n->slice_end))
		return RESUME;
	timer_run();
	new_slice(v);
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

void timer_stop(struct vcpu *v)
{
	if (v->nested->wake.cpu)
		timer_cancel(&v->nested->wake);
}
