/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local APIC's state, for hv/dev and for the questions that the event gate asks before nearly every entry.
 * Whoever else wants something of an APIC calls the functions of hv/dev/machine.h.
 */
#ifndef NIDUS_HV_DEV_VLAPIC_H
#define NIDUS_HV_DEV_VLAPIC_H

#include "hv/apic_regs.h"
#include "hv/timer.h"
#include "hv/vcpu.h"

struct vlapic {
	u8 *page; /* register values stand where the SDM's page has them */
	struct vcpu *vcpu;
	/* Atomic; bit n: IRR word n may hold a request. While the processor serves the APIC: one that it was
	 * not told of. */
	u8 irr_words;
	u8 isr_words;    /* own CPU only */
	bool stale;      /* own CPU only: the processor's RVI and SVI are not those of the page */
	bool tmr_moved;  /* atomic: TMR changed since hv/apicv looked */
	u32 esr_pending; /* atomic; errors since the last write of ESR */
	/* The timer: a count that reaches zero at `expire` (host TSC), or a deadline (guest TSC). Own CPU
	 * only. */
	struct timer timer;
	bool counting;
	u64 expire, deadline;
	u32 lvt, initial, divide; /* the registers the timer obeys: the processor may have put a guest's next
				   * value into the page already (hv/apicv) */
};

static inline u32 *apic_reg(const struct vlapic *l, u32 offset)
{
	return (u32 *)(void *)(l->page + offset);
}

static inline u32 apic_get(const struct vlapic *l, u32 offset)
{
	return __atomic_load_n(apic_reg(l, offset), __ATOMIC_RELAXED);
}

static inline void apic_put(struct vlapic *l, u32 offset, u32 value)
{
	__atomic_store_n(apic_reg(l, offset), value, __ATOMIC_RELAXED);
}

/* Something is requested, be it held back or not. Pre: the processor does not serve the APIC. */
static inline bool vlapic_waits(const struct vcpu *v)
{
	return __atomic_load_n(&v->lapic->irr_words, __ATOMIC_ACQUIRE);
}

/* TPR holds something back that vlapic_threshold has to look for. */
static inline bool vlapic_tpr_is_up(const struct vcpu *v)
{
	return v->lapic->page[APIC_TPR] & 0xf0;
}

#endif
