/* SPDX-License-Identifier: Apache-2.0 */
/* The 8259 pair, driven by the PIT on line 0: mask, request and service registers, EOI, priority. */
#include "l1.h"

const char test_title[] = "8259 interrupt controllers";

#define BASE 0x40

static volatile u32 hits;
static volatile u8 isr_inside;

static void on_irq0(struct regs *r)
{
	(void)r;
	hits++;
	isr_inside = pic_isr(false);
	pic_eoi(0);
}

static void on_irq0_no_eoi(struct regs *r)
{
	(void)r;
	hits++;
}

/* One edge on line 0, from a PIT one-shot of 100 us; what is pending is taken with interrupts on. */
static void pulse(void)
{
	pit_set(0, PIT_ONE_SHOT, 120);
	delay_us(1000);
	sti_nop_cli();
}

void test_main(void)
{
	lapic_enable();
	lapic_write(APIC_LVT_LINT0, 0x700); /* ExtINT: the way of an 8259 through the local APIC */
	pic_init(BASE, BASE + 8);
	trap_handle(BASE, on_irq0);

	pulse();
	expect_eq("masked-line", hits, 0);
	expect_eq("request-while-masked", pic_irr(false) & 1, 1);
	pic_unmask(0);
	sti_nop_cli();
	expect_eq("delivered-after-unmask", hits, 1);
	expect_eq("in-service-in-handler", isr_inside, 1);
	expect_eq("in-service-after-eoi", pic_isr(false), 0);
	sti_nop_cli();
	expect_eq("edge-only-once", hits, 1);
	pulse();
	expect_eq("second-edge", hits, 2);

	trap_handle(BASE, on_irq0_no_eoi);
	pulse();
	expect_eq("third-edge", hits, 3);
	pulse();
	expect_eq("blocked-without-eoi", hits, 3);
	expect_eq("request-while-in-service", pic_irr(false) & 1, 1);
	expect_eq("still-in-service", pic_isr(false), 1);
	pic_eoi(0);
	sti_nop_cli();
	expect_eq("delivered-after-eoi", hits, 4);
	pic_eoi(0);

	lapic_write(APIC_LVT_LINT0, 0x700 | LVT_MASKED);
	pulse();
	expect_eq("masked-in-lint0", hits, 4);
	lapic_write(APIC_LVT_LINT0, 0x700);
	sti_nop_cli();
	expect_eq("unmasked-in-lint0", hits, 5);
	pic_eoi(0);
	expect_eq("mask-register-reads-back", inb(0x21), 0xfe);
	outb(0x20, 0x20);
	pic_mask(0);
}
