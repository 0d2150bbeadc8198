/* SPDX-License-Identifier: Apache-2.0 */
/* The IO-APIC with the PIT on its pin: edge delivery, mask, register file, destination. IO-APIC datasheet,
 * "I/O Redirection Table". */
#include "l1.h"

const char test_title[] = "IO-APIC";

#define VECTOR 0x51

static volatile u32 hits;
static u32 pin;

static void on_interrupt(struct regs *r)
{
	(void)r;
	hits++;
	lapic_eoi();
}

static void pulse(void)
{
	pit_set(0, PIT_ONE_SHOT, 120);
	delay_us(1000);
	sti_nop_cli();
}

static u64 to_self(u64 flags)
{
	return (u64)cpus[0].apic_id << 56 | VECTOR | flags;
}

static void registers(void)
{
	u32 version = ioapic_read(1);

	expect_true("version", (version & 0xff) >= 0x11 && (version & 0xff) <= 0x2f);
	expect_eq("at-least-24-pins", ioapic_pins() >= 24, 1);
	ioapic_set(pin, 0x0f00000000000000 | IOAPIC_MASKED | IOAPIC_LEVEL | IOAPIC_LOW | 0x33);
	expect_eq("entry-reads-back", ioapic_entry(pin),
		  0x0f00000000000000 | IOAPIC_MASKED | IOAPIC_LEVEL | IOAPIC_LOW | 0x33);
	ioapic_write(0x10 + 2 * pin, IOAPIC_MASKED | 0x5000 | 0x33);
	expect_eq("status-bits-read-only", ioapic_entry(pin) & 0x5000, 0);
}

void test_main(void)
{
	lapic_enable();
	pic_init(0x40, 0x48);
	ioapic_mask_all();
	pin = acpi.irq0_gsi;
	trap_handle(VECTOR, on_interrupt);
	registers();

	ioapic_set(pin, to_self(IOAPIC_MASKED));
	pulse();
	expect_eq("masked", hits, 0);
	ioapic_set(pin, to_self(0));
	sti_nop_cli();
	hits = 0; /* an edge that came while masked may or may not be kept */
	pulse();
	expect_eq("edge", hits, 1);
	sti_nop_cli();
	expect_eq("edge-once", hits, 1);
	pulse();
	expect_eq("second-edge", hits, 2);
	pit_set(0, PIT_RATE, 1193);
	hits = 0;
	sti();
	delay_us(10500);
	cli();
	pit_set(0, PIT_ONE_SHOT, 0);
	expect_near("rate-1khz-10ms", hits, 9, 12);
	sti_nop_cli();

	ioapic_set(pin, (1ul << 56) | IOAPIC_LOGICAL | VECTOR);
	lapic_write(APIC_DFR, 0xffffffff);
	lapic_write(APIC_LDR, 0x01000000);
	hits = 0;
	pulse();
	expect_eq("logical-destination", hits, 1);
	lapic_write(APIC_LDR, 0x02000000);
	hits = 0;
	pulse();
	expect_eq("logical-destination-of-nobody", hits, 0);
	ioapic_set(pin, to_self(0));
	lapic_write(APIC_TPR, 0x60);
	hits = 0;
	pulse();
	expect_eq("held-by-tpr", hits, 0);
	expect_true("in-irr", lapic_bit(APIC_IRR, VECTOR));
	lapic_write(APIC_TPR, 0);
	sti_nop_cli();
	expect_eq("released-by-tpr", hits, 1);
	ioapic_mask_all();
}
