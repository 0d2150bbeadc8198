/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlines in host TSC ticks. Each physical CPU has a queue; its local APIC timer (hv/lapic) is armed for
 * the first one only when that changes, so an exit pays nothing for timers. The callback runs in root mode on
 * the CPU where the timer was armed, without any lock held.
 */
#ifndef NIDUS_HV_TIMER_H
#define NIDUS_HV_TIMER_H

#include "hv/spinlock.h"
#include "hv/types.h"

struct cpu;

struct timer {
	u64 deadline;    /* host TSC; meaningful while `cpu` is set */
	struct cpu *cpu; /* where it is queued; NULL: not armed */
	struct timer *next;
	void (*fn)(void *arg);
	void *arg;
};

struct timer_queue {
	struct spinlock lock;
	struct timer *first;
	u64 armed; /* what the hardware timer is set to; 0: nothing. Only this CPU touches it */
};

/* (Re)arm on this CPU. A deadline in the past fires at once (at the next chance of the CPU, not inside the
 * call). */
void timer_arm(struct timer *t, u64 deadline);
/* After the call `fn` will not start any more (it may be running on another CPU). */
void timer_cancel(struct timer *t);
/* From the host timer interrupt: run what is due, arm the next. */
void timer_run(void);
/* Host TSC ticks per second, measured at boot. */
extern u64 tsc_hz;

#endif
