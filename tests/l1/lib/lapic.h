/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC in whichever mode the CPU is in. Registers are named by their xAPIC offset; x2APIC is 0x800
 * + offset / 16. */
#pragma once

#include "types.h"

#define APIC_ID            0x20
#define APIC_VERSION       0x30
#define APIC_TPR           0x80
#define APIC_PPR           0xa0
#define APIC_EOI           0xb0
#define APIC_LDR           0xd0
#define APIC_DFR           0xe0
#define APIC_SVR           0xf0
#define APIC_ISR           0x100
#define APIC_TMR           0x180
#define APIC_IRR           0x200
#define APIC_ESR           0x280
#define APIC_ICR           0x300
#define APIC_ICR_HIGH      0x310
#define APIC_LVT_TIMER     0x320
#define APIC_LVT_LINT0     0x350
#define APIC_LVT_LINT1     0x360
#define APIC_LVT_ERROR     0x370
#define APIC_TIMER_INITIAL 0x380
#define APIC_TIMER_CURRENT 0x390
#define APIC_TIMER_DIVIDE  0x3e0
#define APIC_SELF_IPI      0x3f0

#define ICR_FIXED   0x000
#define ICR_LOWEST  0x100
#define ICR_NMI     0x400
#define ICR_INIT    0x500
#define ICR_STARTUP 0x600
#define ICR_LOGICAL 0x800
#define ICR_PENDING 0x1000
#define ICR_ASSERT  0x4000
#define ICR_LEVEL   0x8000
#define ICR_SELF    0x40000
#define ICR_ALL     0x80000
#define ICR_OTHERS  0xc0000

#define LVT_MASKED   0x10000
#define LVT_PERIODIC 0x20000
#define LVT_DEADLINE 0x40000

#define APIC_BASE_BSP    (1u << 8)
#define APIC_BASE_X2APIC (1u << 10)
#define APIC_BASE_ENABLE (1u << 11)

#define VEC_SPURIOUS 0xff

void lapic_enable(void);       /* software-enable, TPR 0, all LVTs masked; keeps the mode */
void lapic_enter_x2apic(void); /* from enabled xAPIC */
bool lapic_is_x2apic(void);
u32 lapic_read(u32 reg);
void lapic_write(u32 reg, u32 v);
void lapic_eoi(void);
void lapic_ipi(u32 dest, u32 low);    /* waits until it is sent */
bool lapic_bit(u32 bank, u32 vector); /* of APIC_ISR, APIC_TMR, APIC_IRR */
