/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic interrupt controller: sixteen sources, each with a message slot in a page of L1's. There is no
 * VMBus, so only synthetic timers send anything. TLFS "Virtual Interrupt Controller", "Inter-Partition
 * Communication".
 */
#include "hyperv/synic.h"
#include "hyperv/internal.h"
#include "hyperv/stimer.h"
#include "mm/guest_copy.h"

#define SCONTROL_ENABLE BIT(0)
#define SINT_VECTOR(s)  ((u8)(s))
#define SINT_MASKED     BIT(16)
#define SINT_AUTO_EOI   BIT(17)
#define SINT_POLLING    BIT(18)
#define SINT_RESET      SINT_MASKED
#define VECTOR_FIRST    16
#define SVERSION        1

#define MESSAGE_SIZE    256
#define MESSAGE_FLAGS   4        /* offset of the word with payload size and flags */
#define MESSAGE_PENDING BIT32(8) /* in that word */

_Static_assert(offsetof(struct timer_message, flags) == 5, "TLFS HV_MESSAGE_HEADER");
_Static_assert(offsetof(struct timer_message, timer) == 16, "TLFS HV_MESSAGE_HEADER");

void synic_reset(struct vcpu *v)
{
	struct hv_synic *s = &hv_vp(v)->synic;

	*s = (struct hv_synic){0};
	for (unsigned i = 0; i < SINTS; i++)
		s->sint[i] = SINT_RESET;
}

bool synic_read(struct vcpu *v, u32 msr, u64 *value)
{
	const struct hv_synic *s = &hv_vp(v)->synic;

	switch (msr) {
	case HV_MSR_SCONTROL:
		*value = s->control;
		return true;
	case HV_MSR_SVERSION:
		*value = SVERSION;
		return true;
	case HV_MSR_SIEFP:
		*value = s->event_page;
		return true;
	case HV_MSR_SIMP:
		*value = s->message_page;
		return true;
	case HV_MSR_EOM:
		*value = 0;
		return true;
	default:
		*value = s->sint[msr - HV_MSR_SINT0];
		return true;
	}
}

static bool set_page(struct vcpu *v, u64 *page, u64 value)
{
	hpa_t at;

	if (value & HV_PAGE_ENABLE && !hv_page_ok(v->guest, value, &at))
		return false;
	*page = value;
	return true;
}

/* The local APIC has no automatic EOI for one vector; CPUID recommends to do without. */
static bool set_sint(struct hv_synic *s, unsigned i, u64 value)
{
	if (value & SINT_AUTO_EOI || (!(value & SINT_MASKED) && SINT_VECTOR(value) < VECTOR_FIRST))
		return false;
	s->sint[i] = value;
	return true;
}

bool synic_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_synic *s = &hv_vp(v)->synic;

	switch (msr) {
	case HV_MSR_SCONTROL:
		s->control = value;
		return true;
	case HV_MSR_SVERSION:
		return false;
	case HV_MSR_SIEFP:
		return set_page(v, &s->event_page, value);
	case HV_MSR_SIMP:
		return set_page(v, &s->message_page, value);
	case HV_MSR_EOM:
		stimer_retry(v);
		return true;
	default:
		return set_sint(s, msr - HV_MSR_SINT0, value);
	}
}

/* The type is written last, and by exchange: 0 is what L1 leaves in a slot that is free. */
static bool fill_slot(const struct l1mem *mem, gpa_t slot, const struct timer_message *m)
{
	u32 type;

	if (!guest_read(mem, slot, &type, sizeof(type)) || type)
		return false;
	guest_write(mem, GPA(slot.v + sizeof(type)), (const char *)m + sizeof(type),
		    sizeof(*m) - sizeof(type));
	return guest_cmpxchg32(mem, slot, 0, m->type);
}

static void tell_pending(const struct l1mem *mem, gpa_t slot)
{
	gpa_t at = GPA(slot.v + MESSAGE_FLAGS);
	u32 word;

	if (guest_read(mem, at, &word, sizeof(word)))
		guest_cmpxchg32(mem, at, word, word | MESSAGE_PENDING);
}

static void raise(struct vcpu *v, u64 sint)
{
	const struct apic_message m = {.dest = v->index, .vector = SINT_VECTOR(sint)};

	if (!(sint & (SINT_MASKED | SINT_POLLING)))
		apic_deliver(v->guest, &m);
}

bool synic_post(struct vcpu *v, unsigned sint, const struct timer_message *m)
{
	const struct hv_synic *s = &hv_vp(v)->synic;
	const struct l1mem *mem = &v->guest->mem;
	gpa_t slot = GPA(HV_PAGE_GPA(s->message_page) + sint * MESSAGE_SIZE);

	if (!(s->control & SCONTROL_ENABLE) || !(s->message_page & HV_PAGE_ENABLE))
		return false;
	if (!fill_slot(mem, slot, m)) {
		tell_pending(mem, slot);
		if (!fill_slot(mem, slot, m)) /* L1 freed it before it could see the flag */
			return false;
	}
	raise(v, s->sint[sint]);
	return true;
}
