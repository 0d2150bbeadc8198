/* SPDX-License-Identifier: Apache-2.0 */
/* 8259 and IO-APIC register access. */
#include "irq.h"
#include "acpi.h"

void pic_init(u8 master_base, u8 slave_base)
{
	outb(0x20, 0x11);
	outb(0xa0, 0x11);
	outb(0x21, master_base);
	outb(0xa1, slave_base);
	outb(0x21, 4);
	outb(0xa1, 2);
	outb(0x21, 1);
	outb(0xa1, 1);
	outb(0x21, 0xff);
	outb(0xa1, 0xff);
}

static u16 mask_port(u32 irq)
{
	return irq < 8 ? 0x21 : 0xa1;
}

void pic_mask(u32 irq)
{
	outb(mask_port(irq), (u8)(inb(mask_port(irq)) | 1u << irq % 8));
}

void pic_unmask(u32 irq)
{
	outb(mask_port(irq), (u8)(inb(mask_port(irq)) & ~(1u << irq % 8)));
	if (irq >= 8)
		outb(0x21, (u8)(inb(0x21) & ~4u));
}

void pic_eoi(u32 irq)
{
	if (irq >= 8)
		outb(0xa0, 0x20);
	outb(0x20, 0x20);
}

static u8 pic_register(bool slave, u8 which)
{
	outb(slave ? 0xa0 : 0x20, which);
	return inb(slave ? 0xa0 : 0x20);
}

u8 pic_isr(bool slave)
{
	return pic_register(slave, 0x0b);
}

u8 pic_irr(bool slave)
{
	return pic_register(slave, 0x0a);
}

u32 ioapic_read(u32 reg)
{
	*(volatile u32 *)ptr_to(acpi.ioapic_base) = reg;
	return *(volatile u32 *)ptr_to(acpi.ioapic_base + 0x10);
}

void ioapic_write(u32 reg, u32 v)
{
	*(volatile u32 *)ptr_to(acpi.ioapic_base) = reg;
	*(volatile u32 *)ptr_to(acpi.ioapic_base + 0x10) = v;
}

u32 ioapic_pins(void)
{
	return (ioapic_read(1) >> 16 & 0xff) + 1;
}

u64 ioapic_entry(u32 pin)
{
	return ioapic_read(0x10 + 2 * pin) | (u64)ioapic_read(0x11 + 2 * pin) << 32;
}

/* High half first while masked, so that no half-written entry can fire. */
void ioapic_set(u32 pin, u64 entry)
{
	ioapic_write(0x10 + 2 * pin, IOAPIC_MASKED);
	ioapic_write(0x11 + 2 * pin, (u32)(entry >> 32));
	ioapic_write(0x10 + 2 * pin, (u32)entry);
}

void ioapic_mask_all(void)
{
	for (u32 pin = 0; pin < ioapic_pins(); pin++)
		ioapic_write(0x10 + 2 * pin, IOAPIC_MASKED);
}
