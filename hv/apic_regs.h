/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of a local APIC, the machine's and a guest's. No code. */
#ifndef NIDUS_HV_APIC_REGS_H
#define NIDUS_HV_APIC_REGS_H

#include "hv/types.h"

/* SDM "Local APIC Register Address Map": offset in the page. x2APIC MSR = 0x800 + offset / 16. */
enum apic_reg {
	APIC_ID = 0x20,
	APIC_VERSION = 0x30,
	APIC_TPR = 0x80,
	APIC_APR = 0x90,
	APIC_PPR = 0xa0,
	APIC_EOI = 0xb0,
	APIC_RRD = 0xc0,
	APIC_LDR = 0xd0,
	APIC_DFR = 0xe0,
	APIC_SVR = 0xf0,
	APIC_ISR = 0x100,
	APIC_TMR = 0x180,
	APIC_IRR = 0x200,
	APIC_ESR = 0x280,
	APIC_CMCI = 0x2f0,
	APIC_ICR = 0x300,
	APIC_ICR2 = 0x310,
	APIC_LVT_TIMER = 0x320,
	APIC_LVT_THERMAL = 0x330,
	APIC_LVT_PERF = 0x340,
	APIC_LVT_LINT0 = 0x350,
	APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370,
	APIC_TIMER_INITIAL = 0x380,
	APIC_TIMER_CURRENT = 0x390,
	APIC_TIMER_DIVIDE = 0x3e0,
	APIC_SELF_IPI = 0x3f0,
};

#define SVR_ENABLE   BIT32(8)
#define LVT_MASKED   BIT32(16)
#define LVT_STATUS   BIT32(12) /* read-only */
#define LVT_REMOTE   BIT32(14) /* read-only */
#define LVT_TIMER(x) ((x) >> 17 & 3)
enum lvt_timer_mode { TIMER_ONE_SHOT, TIMER_PERIODIC, TIMER_DEADLINE };

#endif
