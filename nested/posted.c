/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posted interrupts of an L2. The notification is an interrupt of L1's APIC, which L0 holds, so L0 processes
 * it; the descriptor and the virtual APIC are L1's pages. Must not touch a VMCS. SDM "Posted-Interrupt
 * Processing".
 */
#include "nested/posted.h"
#include "hv/apic_regs.h"
#include "mm/guest_copy.h"

/* The descriptor. SDM table "Format of Posted-Interrupt Descriptor". */
#define PIR_WORDS  4u
#define PI_CONTROL 32u /* offset of the word behind the requests */
#define PI_ON      BIT(0)

/* 32 bits of the virtual APIC's requests each. SDM "Virtualized APIC Registers". */
#define VIRR(i) (APIC_IRR + 0x10 * (i))

/* 64 requests, and L1 may be setting others meanwhile: its notification comes, as ON is clear. */
static u64 take_word(const struct l1mem *mem, gpa_t at)
{
	u64 pir;

	return guest_read64(mem, at, &pir) && pir && guest_and64(mem, at, ~pir) ? pir : 0;
}

static void request(const struct l1mem *mem, u64 at, u32 bits)
{
	u32 virr;

	if (bits && guest_read(mem, GPA(at), &virr, sizeof(virr))) {
		virr |= bits;
		guest_write(mem, GPA(at), &virr, sizeof(virr));
	}
}

u8 posted_take(const struct l1mem *mem, gpa_t desc, gpa_t vapic)
{
	u8 highest = 0;

	guest_and64(mem, GPA(desc.v + PI_CONTROL), ~PI_ON);
	for (unsigned i = 0; i < PIR_WORDS; i++) {
		u64 pir = take_word(mem, GPA(desc.v + i * sizeof(pir)));

		if (!pir)
			continue;
		request(mem, vapic.v + VIRR(2 * i), (u32)pir);
		request(mem, vapic.v + VIRR(2 * i + 1), (u32)(pir >> 32));
		highest = (u8)(i * 64 + 63 - (unsigned)__builtin_clzll(pir));
	}
	return highest;
}
