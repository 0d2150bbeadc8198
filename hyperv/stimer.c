/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic timers: an expiry is a message in a slot of the SynIC, or in direct mode an interrupt of the
 * timer's own vector. TLFS "Synthetic Timers".
 */
#include "hyperv/stimer.h"
#include "hv/lib.h"
#include "hv/tsc.h"
#include "hyperv/internal.h"
#include "hyperv/synic.h"
#include "hyperv/time.h"

#define STIMER_ENABLE      BIT(0)
#define STIMER_PERIODIC    BIT(1)
#define STIMER_LAZY        BIT(2)
#define STIMER_AUTO_ENABLE BIT(3)
#define STIMER_VECTOR(c)   ((u8)((c) >> 4))
#define STIMER_DIRECT      BIT(12)
#define STIMER_SINT(c)     ((unsigned)((c) >> 16) & 15)
#define STIMER_KEPT        0xf1fffull /* defined bits; others read 0 */
#define VECTOR_FIRST       16

#define MESSAGE_TIMER   0x80000010u /* HvMessageTimerExpired */
#define MESSAGE_PAYLOAD 24

/* Periods below this are served at this: 20 us. */
#define PERIOD_MIN 200u

static void arm(struct hv_stimer *t)
{
	u64 now = reference_time(t->vcpu->guest);
	u64 left = t->due > now ? t->due - now : 0;
	u64 ticks = mul_div(left, tsc_hz, REFERENCE_HZ), deadline = rdtsc() + ticks + 1;

	timer_arm(&t->timer, deadline < ticks ? ~0ull : deadline);
}

static void stop(struct hv_stimer *t)
{
	t->due = 0;
	timer_cancel(&t->timer);
}

/* Run with what the two registers say now. */
static void restart(struct hv_stimer *t)
{
	stop(t);
	if (!(t->config & STIMER_ENABLE) || !t->count)
		return;
	t->due = t->count;
	if (t->config & STIMER_PERIODIC)
		t->due = reference_time(t->vcpu->guest) + MAX(t->count, PERIOD_MIN);
	arm(t);
}

static void interrupt(const struct hv_stimer *t)
{
	const struct apic_message m = {.dest = t->vcpu->index, .vector = STIMER_VECTOR(t->config)};

	if (m.vector >= VECTOR_FIRST)
		apic_deliver(t->vcpu->guest, &m);
}

static void message(struct hv_stimer *t, u64 expired)
{
	const struct timer_message m = {
		.type = MESSAGE_TIMER,
		.payload_size = MESSAGE_PAYLOAD,
		.timer = t->index,
		.expired = expired,
		.delivered = reference_time(t->vcpu->guest),
	};

	t->unsent = synic_post(t->vcpu, STIMER_SINT(t->config), &m) ? 0 : expired;
}

static void deliver(struct hv_stimer *t, u64 expired)
{
	if (t->config & STIMER_DIRECT)
		interrupt(t);
	else
		message(t, expired);
}

/* However late, one expiry; the next period counts from now when some were missed. */
static void expire(struct hv_stimer *t, u64 now)
{
	u64 period = MAX(t->count, PERIOD_MIN);

	deliver(t, t->due);
	if (!(t->config & STIMER_PERIODIC)) {
		t->config &= ~STIMER_ENABLE;
		t->due = 0;
		return;
	}
	t->due += period;
	if (t->due < now)
		t->due = now + period;
	arm(t);
}

void stimer_retry(struct vcpu *v)
{
	for (unsigned i = 0; i < STIMERS; i++) {
		struct hv_stimer *t = &hv_vp(v)->stimer[i];

		if (t->unsent)
			message(t, t->unsent);
	}
}

static void on_timer(void *arg)
{
	struct hv_stimer *t = arg;
	u64 now = reference_time(t->vcpu->guest);

	if (!t->due || t->vcpu->guest->ended)
		return;
	if (now < t->due)
		arm(t);
	else
		expire(t, now);
}

void stimer_init(struct vcpu *v)
{
	for (unsigned i = 0; i < STIMERS; i++) {
		struct hv_stimer *t = &hv_vp(v)->stimer[i];

		t->vcpu = v;
		t->index = i;
		t->timer.fn = on_timer;
		t->timer.arg = t;
	}
}

void stimer_reset(struct vcpu *v)
{
	for (unsigned i = 0; i < STIMERS; i++) {
		struct hv_stimer *t = &hv_vp(v)->stimer[i];

		stop(t);
		t->config = t->count = t->unsent = 0;
	}
}

static struct hv_stimer *of(struct vcpu *v, u32 msr)
{
	return &hv_vp(v)->stimer[(msr - HV_MSR_STIMER0_CONFIG) / 2];
}

static bool is_count(u32 msr)
{
	return (msr - HV_MSR_STIMER0_CONFIG) & 1;
}

bool stimer_read(struct vcpu *v, u32 msr, u64 *value)
{
	const struct hv_stimer *t = of(v, msr);

	*value = is_count(msr) ? t->count : t->config;
	return true;
}

/* Direct, or with a SINT other than 0: else there is nothing to tell L1 by. */
static bool has_target(const struct hv_stimer *t)
{
	return t->config & STIMER_DIRECT || STIMER_SINT(t->config);
}

static void set_config(struct hv_stimer *t, u64 value)
{
	t->config = value & STIMER_KEPT;
	t->unsent = 0;
	if (!has_target(t))
		t->config &= ~STIMER_ENABLE;
}

/* TLFS "HV_X64_MSR_STIMER0_COUNT": zero stops the timer; another value starts one with AutoEnable. */
static void set_count(struct hv_stimer *t, u64 value)
{
	t->count = value;
	if (!value)
		t->config &= ~STIMER_ENABLE;
	else if (t->config & STIMER_AUTO_ENABLE && has_target(t))
		t->config |= STIMER_ENABLE;
}

bool stimer_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_stimer *t = of(v, msr);

	if (is_count(msr))
		set_count(t, value);
	else
		set_config(t, value);
	restart(t);
	return true;
}
