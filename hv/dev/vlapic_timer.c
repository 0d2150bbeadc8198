/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local APIC timer. Its input clock is the TSC's rate (CPUID leaf 15h says the same), so a count is a
 * number of host TSC ticks shifted by the divide configuration. All on the vCPU's own CPU, where also the
 * host timer fires. SDM "APIC Timer", "TSC-Deadline Mode".
 */
#include "hv/dev/internal.h"
#include "hv/vcpu.h"

static enum lvt_timer_mode timer_mode(const struct vlapic *l)
{
	return (enum lvt_timer_mode)LVT_TIMER(l->lvt);
}

/* SDM "Divide Configuration Register": bits 3, 1 and 0 give 2, 4 ... 128, 1. */
static unsigned divide_shift(const struct vlapic *l)
{
	return ((l->divide & 3) + (l->divide >> 1 & 4) + 1) & 7;
}

static u64 period(const struct vlapic *l)
{
	return (u64)l->initial << divide_shift(l);
}

static u64 guest_tsc(const struct vlapic *l, u64 now)
{
	return now + l->vcpu->tsc_offset;
}

/*
 * Bring the state up to `now`: what came due since the last look is delivered (once, however many periods
 * passed). Called first by whoever changes the timer, so that no expiry falls under the new setting.
 */
static void catch_up(struct vlapic *l, u64 now)
{
	bool due = false;

	if (l->deadline && guest_tsc(l, now) >= l->deadline) {
		l->deadline = 0;
		due = true;
	}
	if (l->counting && now >= l->expire) {
		due = true;
		if (timer_mode(l) == TIMER_PERIODIC)
			l->expire += ((now - l->expire) / period(l) + 1) * period(l);
		else
			l->counting = false;
	}
	if (due)
		vlapic_local(l, l->lvt);
}

/* The host timer follows the state. A masked timer runs on, but needs nobody to wake up for it. */
static void arm(struct vlapic *l, u64 now)
{
	u64 at = l->expire;

	if ((l->lvt & LVT_MASKED) || (!l->counting && !l->deadline)) {
		timer_cancel(&l->timer);
		return;
	}
	if (l->deadline) {
		at = now + (l->deadline - guest_tsc(l, now));
		if (at < now)
			at = ~0ull;
	} else if (timer_mode(l) == TIMER_PERIODIC) {
		at = MAX(at, now + clock_min_gap());
	}
	timer_arm(&l->timer, at);
}

static void on_timer(void *arg)
{
	struct vlapic *l = arg;
	u64 now = machine_clock();

	catch_up(l, now);
	arm(l, now);
}

void vlapic_timer_init(struct vlapic *l)
{
	l->timer.fn = on_timer;
	l->timer.arg = l;
}

void vlapic_timer_reset(struct vlapic *l)
{
	timer_cancel(&l->timer);
	l->counting = false;
	l->deadline = 0;
	l->lvt = LVT_MASKED;
	l->initial = l->divide = 0;
}

void vlapic_timer_lvt(struct vlapic *l, u32 value)
{
	u64 now = machine_clock();
	bool deadline = LVT_TIMER(value) == TIMER_DEADLINE;

	catch_up(l, now);
	/* "Transitioning between TSC-deadline mode and other timer modes also disarms the timer." */
	if (deadline != (timer_mode(l) == TIMER_DEADLINE)) {
		l->counting = false;
		l->deadline = 0;
	}
	l->lvt = value;
	apic_put(l, APIC_LVT_TIMER, value);
	arm(l, now);
}

void vlapic_timer_initial(struct vlapic *l, u32 value)
{
	u64 now = machine_clock();

	/* In TSC-deadline mode writes are ignored. */
	if (timer_mode(l) == TIMER_DEADLINE) {
		apic_put(l, APIC_TIMER_INITIAL, l->initial);
		return;
	}
	catch_up(l, now);
	l->initial = value;
	apic_put(l, APIC_TIMER_INITIAL, value);
	l->counting = value != 0;
	l->expire = now + period(l);
	arm(l, now);
}

static u32 count_left(const struct vlapic *l, u64 now)
{
	unsigned shift = divide_shift(l);

	return l->counting ? (u32)((l->expire - now + MASK(shift)) >> shift) : 0;
}

/* The count goes on from where it stands, at the new rate. */
void vlapic_timer_divide(struct vlapic *l, u32 value)
{
	u64 now = machine_clock();
	u32 left;

	catch_up(l, now);
	left = count_left(l, now);
	l->divide = value;
	apic_put(l, APIC_TIMER_DIVIDE, value);
	l->expire = now + ((u64)left << divide_shift(l));
	arm(l, now);
}

u32 vlapic_timer_current(struct vlapic *l)
{
	u64 now = machine_clock();

	catch_up(l, now);
	return count_left(l, now);
}

u64 vlapic_timer_deadline(struct vlapic *l)
{
	catch_up(l, machine_clock());
	return l->deadline;
}

void vlapic_timer_set_deadline(struct vlapic *l, u64 value)
{
	u64 now = machine_clock();

	if (timer_mode(l) != TIMER_DEADLINE)
		return;
	l->deadline = value;
	catch_up(l, now);
	arm(l, now);
}

void vlapic_tsc_changed(struct vcpu *v)
{
	u64 now;

	if (likely(!v->lapic->deadline))
		return;
	now = machine_clock();
	catch_up(v->lapic, now);
	arm(v->lapic, now);
}
