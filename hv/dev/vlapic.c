/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local APIC's interrupt state: requests, priorities, service, end of interrupt. Registers live in one
 * page laid out as the SDM's APIC page, which VM entries may use as virtual-APIC page. IRR and TMR are
 * changed by any CPU; all else by the vCPU's own. No lock here. SDM "Interrupt Acceptance for Fixed
 * Interrupts", "Task and Processor Priorities".
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/lib.h"
#include "hv/vcpu.h"
#include "mm/palloc.h"

#define APIC_VERSION_VALUE (0x14u | 5u << 16) /* integrated xAPIC, LVT entries 0-5 */
#define DFR_FLAT           0xffffffffu
#define SVR_POWER_ON       0xffu
#define LDR_CLUSTER(id)    ((id) >> 4 << 16 | BIT32((id)&15))

/* What a PC BIOS leaves on the boot CPU: virtual-wire mode (MultiProcessor Specification "Virtual Wire
 * Mode"). */
#define BIOS_SVR   (SVR_ENABLE | 0xffu)
#define BIOS_LINT0 0x700u /* ExtINT */
#define BIOS_LINT1 0x400u /* NMI */

#define CLASS(vector) ((vector)&0xf0)
#define ALL_WORDS     0xffu

/* This file is built for speed, but for these. */
#define COLD __attribute__((cold))

COLD struct vlapic *vlapic_create(struct vcpu *v)
{
	struct vlapic *l = page_alloc();

	_Static_assert(sizeof(*l) <= PAGE_SIZE, "struct vlapic outgrew its page");
	if (!l)
		return NULL;
	l->page = page_alloc();
	if (!l->page) {
		page_free(l);
		return NULL;
	}
	l->vcpu = v;
	vlapic_timer_init(l);
	return l;
}

COLD void vlapic_destroy(struct vlapic *l)
{
	timer_cancel(&l->timer);
	page_free(l->page);
	page_free(l);
}

COLD void vlapic_reset(struct vcpu *v, bool init)
{
	struct vlapic *l = v->lapic;
	bool boot = !init && v->index == 0;

	vlapic_timer_reset(l);
	/* INIT leaves IA32_APIC_BASE, and so the mode, as it is. SDM "x2APIC After Reset", "x2APIC State
	 * Transitions". */
	if (!init)
		v->apic_base = L1_LAPIC | APIC_BASE_ENABLE | (v->index == 0 ? APIC_BASE_BSP : 0);
	memset(l->page, 0, PAGE_SIZE);
	l->irr_words = l->isr_words = 0;
	l->stale = l->tmr_moved = true;
	l->esr_pending = 0;
	apic_put(l, APIC_VERSION, APIC_VERSION_VALUE);
	apic_put(l, APIC_DFR, DFR_FLAT);
	apic_put(l, APIC_SVR, boot ? BIOS_SVR : SVR_POWER_ON);
	for (u32 lvt = APIC_LVT_TIMER; lvt <= APIC_LVT_ERROR; lvt += 0x10)
		apic_put(l, lvt, LVT_MASKED);
	if (boot) {
		apic_put(l, APIC_LVT_LINT0, BIOS_LINT0);
		apic_put(l, APIC_LVT_LINT1, BIOS_LINT1);
	}
	apic_put(l, APIC_ID, v->index << 24);
	if (vlapic_is_x2apic(l))
		vlapic_enter_x2apic(l);
}

/* The 32-bit id and the logical id that follows from it. SDM "Deriving Logical x2APIC ID from the Local
 * x2APIC ID". */
COLD void vlapic_enter_x2apic(struct vlapic *l)
{
	u32 id = l->vcpu->index;

	apic_put(l, APIC_ID, id);
	apic_put(l, APIC_LDR, LDR_CLUSTER(id));
	apic_put(l, APIC_ICR2, 0);
}

static inline unsigned top_bit(u32 bits)
{
	return (unsigned)__builtin_clz(bits) ^ 31;
}

/* Index of the highest vector of a 256-bit register; `words` has a bit for each word that may hold one. */
static int highest(const struct vlapic *l, u32 base, unsigned words)
{
	while (words) {
		unsigned i = top_bit(words);
		u32 bits = apic_get(l, base + i * 0x10);

		if (bits)
			return (int)(i * 32 + top_bit(bits));
		words &= ~BIT32(i);
	}
	return -1;
}

/* The same where the first word nearly always has it. Pre: words is not 0. */
static inline int highest_first(const struct vlapic *l, u32 base, unsigned words)
{
	unsigned i = top_bit(words);
	u32 bits = apic_get(l, base + i * 0x10);

	return likely(bits) ? (int)(i * 32 | top_bit(bits)) : highest(l, base, words);
}

/* The processor changes the page without our summaries while it serves the APIC: all words then. The compiler
 * is not to make two ways of the two cases. */
static inline unsigned all_if_served(const struct vcpu *v)
{
	unsigned words = v->apicv ? ALL_WORDS : 0;

	asm("" : "+r"(words));
	return words;
}

static inline unsigned irr_words(const struct vlapic *l)
{
	return __atomic_load_n(&l->irr_words, __ATOMIC_ACQUIRE) | all_if_served(l->vcpu);
}

static inline unsigned isr_words(const struct vlapic *l)
{
	return l->isr_words | all_if_served(l->vcpu);
}

static int highest_request(const struct vlapic *l)
{
	return highest(l, APIC_IRR, irr_words(l));
}

/* What the page holds, whatever the processor was told before. */
static u16 whole_status(struct vlapic *l)
{
	int request = highest_request(l), served = highest(l, APIC_ISR, ALL_WORDS);

	l->stale = false;
	vlapic_ppr(l);
	return (u16)((served < 0 ? 0 : served) << 8 | (request < 0 ? 0 : request));
}

/* RVI is the highest request but for those that came since: the processor keeps it so when it delivers one.
 */
u16 vlapic_status(struct vcpu *v, u16 old)
{
	struct vlapic *l = v->lapic;
	int request = highest(l, APIC_IRR, __atomic_exchange_n(&l->irr_words, 0, __ATOMIC_SEQ_CST));

	if (unlikely(l->stale))
		return whole_status(l);
	return request > (u8)old ? (u16)((old & 0xff00) | request) : old;
}

bool vlapic_levels_moved(struct vcpu *v)
{
	return unlikely(v->lapic->tmr_moved) &&
	       __atomic_exchange_n(&v->lapic->tmr_moved, false, __ATOMIC_SEQ_CST);
}

u64 vlapic_level_vectors(struct vcpu *v, unsigned i)
{
	const struct vlapic *l = v->lapic;

	return apic_get(l, APIC_TMR + i * 0x20) | (u64)apic_get(l, APIC_TMR + i * 0x20 + 0x10) << 32;
}

u8 vlapic_tpr(const struct vcpu *v)
{
	return __atomic_load_n(&v->lapic->page[APIC_TPR], __ATOMIC_RELAXED);
}

/* SDM "Processor Priority Register". */
static inline u8 ppr_of(const struct vcpu *v, unsigned words)
{
	u8 tpr = vlapic_tpr(v);
	int served = unlikely(words) ? highest(v->lapic, APIC_ISR, words) : 0;

	return CLASS(served) > CLASS(tpr) && served > 0 ? (u8)CLASS(served) : tpr;
}

/* Kept in the page too, where APIC-register virtualization reads it. */
u8 vlapic_ppr(struct vlapic *l)
{
	u8 ppr = ppr_of(l->vcpu, isr_words(l));

	apic_put(l, APIC_PPR, ppr);
	return ppr;
}

bool vlapic_requested(const struct vcpu *v)
{
	return irr_words(v->lapic);
}

/* The highest request, if its class is above PPR's. */
static inline int pending_of(const struct vcpu *v)
{
	const struct vlapic *l = v->lapic;
	unsigned all = all_if_served(v), irr = __atomic_load_n(&l->irr_words, __ATOMIC_ACQUIRE) | all;
	int request = likely(irr) ? highest_first(l, APIC_IRR, irr) : -1;

	return request > (ppr_of(v, l->isr_words | all) | 0xf) ? request : -1;
}

COLD int vlapic_pending(struct vcpu *v)
{
	return pending_of(v);
}

/* A request of a higher class than TPR's is held back by what is in service, if at all. */
u8 vlapic_threshold(struct vcpu *v)
{
	u8 tpr = vlapic_tpr(v) >> 4;
	int request;

	if (likely(!tpr))
		return 0;
	request = highest_request(v->lapic);
	return request >= 0 && request >> 4 <= tpr ? (u8)(request >> 4) : 0;
}

/*
 * The summary bit is cleared before the word is looked at again, and vlapic_accept sets the word before the
 * summary: a request that arrives in between is seen by one of them.
 */
static inline void serve(struct vlapic *l, u32 vector)
{
	u32 word = vector >> 5, bit = BIT32(vector & 31);
	u32 *irr = apic_reg(l, APIC_IRR + word * 0x10);

	__atomic_fetch_and(irr, ~bit, __ATOMIC_SEQ_CST);
	if (likely(!__atomic_load_n(irr, __ATOMIC_SEQ_CST))) {
		__atomic_fetch_and(&l->irr_words, (u8)~BIT32(word), __ATOMIC_SEQ_CST);
		if (unlikely(__atomic_load_n(irr, __ATOMIC_SEQ_CST)))
			__atomic_fetch_or(&l->irr_words, (u8)BIT32(word), __ATOMIC_SEQ_CST);
	}
	*apic_reg(l, APIC_ISR + word * 0x10) |= bit;
	l->isr_words |= (u8)BIT32(word);
	l->stale = true;
}

void vlapic_ack(struct vcpu *v, u8 vector)
{
	serve(v->lapic, vector);
}

int vlapic_take(struct vcpu *v)
{
	int vector = pending_of(v);

	if (likely(vector >= 0))
		serve(v->lapic, (u32)vector);
	return vector;
}

/* vcpu_request by the vCPU itself, which needs no kick. */
static inline void request_own(struct vcpu *v, u32 bits)
{
	__atomic_fetch_or(&v->pending, bits, __ATOMIC_SEQ_CST);
}

/* Something that was held back may come through now. */
static void look_again(struct vcpu *v, u32 bits)
{
	if (v->apicv || vlapic_waits(v))
		request_own(v, bits);
}

void vlapic_set_tpr(struct vcpu *v, u8 tpr)
{
	apic_put(v->lapic, APIC_TPR, tpr);
	look_again(v, PEND_INTR | PEND_TPR);
}

void vlapic_eoi(struct vcpu *v)
{
	struct vlapic *l = v->lapic;
	unsigned words = isr_words(l);
	u32 word, bit, left;
	int vector;

	if (!words)
		return;
	vector = highest_first(l, APIC_ISR, words);
	if (unlikely(vector < 0))
		return;
	word = (u32)vector >> 5;
	bit = BIT32(vector & 31);
	left = apic_get(l, APIC_ISR + word * 0x10) & ~bit;
	apic_put(l, APIC_ISR + word * 0x10, left);
	if (!left)
		l->isr_words &= (u8)~BIT32(word);
	l->stale = true;
	look_again(v, PEND_INTR);
	if (unlikely(apic_get(l, APIC_TMR + word * 0x10) & bit))
		machine_eoi(v->guest->machine, (u8)vector);
}

/* Fixed interrupt into IRR; who asks for a look at it is left to the caller. False: an illegal vector. */
static inline bool accept(struct vlapic *l, u8 vector, bool level)
{
	u32 word = vector >> 5, bit = BIT32(vector & 31);
	u32 *tmr = apic_reg(l, APIC_TMR + word * 0x10);

	if (unlikely(vector < 16)) {
		vlapic_error(l, ESR_RECEIVE_VECTOR);
		return false;
	}
	if (unlikely(level != !!(__atomic_load_n(tmr, __ATOMIC_RELAXED) & bit))) {
		if (level)
			__atomic_or_fetch(tmr, bit, __ATOMIC_SEQ_CST);
		else
			__atomic_and_fetch(tmr, ~bit, __ATOMIC_SEQ_CST);
		__atomic_store_n(&l->tmr_moved, true, __ATOMIC_SEQ_CST);
	}
	__atomic_or_fetch(apic_reg(l, APIC_IRR + word * 0x10), bit, __ATOMIC_SEQ_CST);
	__atomic_or_fetch(&l->irr_words, (u8)BIT32(word), __ATOMIC_SEQ_CST);
	return true;
}

void vlapic_accept(struct vlapic *l, u8 vector, bool level)
{
	if (accept(l, vector, level))
		vcpu_request(l->vcpu, PEND_INTR);
}

bool vlapic_x2apic_write(struct vcpu *v, u32 msr, u64 value)
{
	if (likely(v->apic_base & APIC_BASE_X2APIC)) {
		if (msr == MSR_X2APIC_BASE + (APIC_EOI >> 4) && likely(!value)) {
			vlapic_eoi(v);
			return true;
		}
		if (msr == MSR_X2APIC_BASE + (APIC_SELF_IPI >> 4) && likely(value <= 0xff)) {
			if (accept(v->lapic, (u8)value, false))
				request_own(v, PEND_INTR);
			return true;
		}
	}
	return vlapic_msr_write(v, msr, value);
}

/* SDM "Error Handling": the register shows it after the next write of ESR; the interrupt comes at once. */
COLD void vlapic_error(struct vlapic *l, u32 bits)
{
	u32 lvt = apic_get(l, APIC_LVT_ERROR);

	__atomic_or_fetch(&l->esr_pending, bits, __ATOMIC_SEQ_CST);
	/* An illegal vector here would be one more error, and so on for ever. */
	if (!(lvt & LVT_MASKED) && (u8)lvt >= 16)
		vlapic_accept(l, (u8)lvt, false);
}

/* SDM "Local Vector Table": delivery modes. SMI has no meaning in a machine without SMM. */
void vlapic_local(struct vlapic *l, u32 lvt)
{
	if (lvt & LVT_MASKED)
		return;
	switch (lvt >> 8 & 7) {
	case MODE_FIXED:
		vlapic_accept(l, (u8)lvt, false);
		break;
	case MODE_NMI:
		vcpu_nmi(l->vcpu);
		break;
	case MODE_INIT:
		vcpu_request(l->vcpu, PEND_INIT);
		break;
	case MODE_EXTINT:
		vcpu_request(l->vcpu, PEND_INTR);
		break;
	}
}

COLD void vlapic_pmi(struct vcpu *v)
{
	u32 lvt = apic_get(v->lapic, APIC_LVT_PERF);

	vlapic_local(v->lapic, lvt);
	apic_put(v->lapic, APIC_LVT_PERF, lvt | LVT_MASKED);
}

bool vlapic_accepts_extint(const struct vcpu *v)
{
	u32 lvt;

	/* An APIC that is off leaves its LINT0 pin wired to INTR: on the boot CPU, where the PIC is. */
	if (!vlapic_enabled(v->lapic))
		return v->index == 0;
	lvt = apic_get(v->lapic, APIC_LVT_LINT0);
	return !(lvt & LVT_MASKED) && (lvt >> 8 & 7) == MODE_EXTINT;
}

COLD void vlapic_lint0_edge(struct guest *g)
{
	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		struct vcpu *v = g->vcpu[i];

		if (!v || !v->lapic)
			continue;
		if (vlapic_accepts_extint(v))
			vcpu_request(v, PEND_INTR);
		else if (vlapic_enabled(v->lapic))
			vlapic_local(v->lapic, apic_get(v->lapic, APIC_LVT_LINT0));
	}
}

void *vlapic_page(struct vcpu *v)
{
	return v->lapic->page;
}
