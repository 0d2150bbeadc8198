/* SPDX-License-Identifier: Apache-2.0 */
/* The 8259 pair and the IO-APIC. */
#pragma once

#include "types.h"
#include "x86.h"

void pic_init(u8 master_base, u8 slave_base); /* all masked afterwards */
void pic_mask(u32 irq);
void pic_unmask(u32 irq);
void pic_eoi(u32 irq);
u8 pic_isr(bool slave);
u8 pic_irr(bool slave);

#define IOAPIC_MASKED     BIT(16)
#define IOAPIC_LEVEL      BIT(15)
#define IOAPIC_REMOTE_IRR BIT(14)
#define IOAPIC_LOW        BIT(13)
#define IOAPIC_LOGICAL    BIT(11)

u32 ioapic_read(u32 reg);
void ioapic_write(u32 reg, u32 v);
u32 ioapic_pins(void);
u64 ioapic_entry(u32 pin);
void ioapic_set(u32 pin, u64 entry);
void ioapic_mask_all(void);
