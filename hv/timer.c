/* SPDX-License-Identifier: Apache-2.0 */
/* Deadline queues, one per physical CPU, sorted. The hardware timer is written only when the first deadline
 * changes. */
#include "hv/timer.h"
#include "hv/cpu.h"
#include "hv/lapic.h"
#include "hv/x86.h"

/* Lock held. */
static void set_hardware(struct timer_queue *q, u64 deadline)
{
	q->armed = deadline;
	lapic_timer_set(deadline);
}

/* Lock held. True when the first entry changed. */
static bool insert(struct timer_queue *q, struct timer *t)
{
	struct timer **at = &q->first;

	while (*at && (*at)->deadline <= t->deadline)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	return at == &q->first;
}

static void unlink(struct timer_queue *q, struct timer *t)
{
	for (struct timer **at = &q->first; *at; at = &(*at)->next) {
		if (*at == t) {
			*at = t->next;
			break;
		}
	}
	t->next = NULL;
	__atomic_store_n(&t->cpu, NULL, __ATOMIC_RELEASE);
}

/* The timer may move to another CPU's queue while we wait for the lock of the one we saw. */
void timer_cancel(struct timer *t)
{
	struct cpu *c;

	while ((c = __atomic_load_n(&t->cpu, __ATOMIC_ACQUIRE))) {
		spin_lock(&c->timers.lock);
		if (t->cpu == c)
			unlink(&c->timers, t);
		spin_unlock(&c->timers.lock);
	}
}

/*
 * An entry that goes away does not touch the hardware: its interrupt then finds nothing due, which is cheaper
 * than writing the timer at each re-arm.
 */
void timer_arm(struct timer *t, u64 deadline)
{
	struct cpu *c = this_cpu();

	timer_cancel(t);
	spin_lock(&c->timers.lock);
	t->deadline = deadline;
	__atomic_store_n(&t->cpu, c, __ATOMIC_RELEASE);
	if (insert(&c->timers, t))
		set_hardware(&c->timers, deadline);
	spin_unlock(&c->timers.lock);
}

static struct timer *take_due(struct timer_queue *q, u64 now)
{
	struct timer *t;

	spin_lock(&q->lock);
	t = q->first;
	if (t && (s64)(t->deadline - now) <= 0)
		unlink(q, t);
	else
		t = NULL;
	spin_unlock(&q->lock);
	return t;
}

void timer_run(void)
{
	struct timer_queue *q = &this_cpu()->timers;
	struct timer *t;

	while ((t = take_due(q, rdtsc())))
		t->fn(t->arg);
	spin_lock(&q->lock);
	q->armed = 0;
	if (q->first)
		set_hardware(q, q->first->deadline);
	spin_unlock(&q->lock);
}
