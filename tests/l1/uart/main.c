/* SPDX-License-Identifier: Apache-2.0 */
/* COM1 as a 16550: scratch, divisor latch, FIFO identification, loopback, interrupts on line 4. PC16550D
 * datasheet. */
#include "l1.h"

const char test_title[] = "16550 UART";

#define COM1 0x3f8

static volatile u32 hits;
static volatile u8 identified;

static void on_irq4(struct regs *r)
{
	(void)r;
	hits++;
	identified = inb(COM1 + 2) & 0xf;
	pic_eoi(4);
}

static void registers(void)
{
	u8 lcr;

	outb(COM1 + 7, 0x5a);
	expect_eq("scratch", inb(COM1 + 7), 0x5a);
	print_flush();
	lcr = inb(COM1 + 3);
	outb(COM1 + 3, 0x80);
	expect_eq("divisor-low", inb(COM1), 1);
	expect_eq("divisor-high", inb(COM1 + 1), 0);
	outb(COM1 + 3, lcr);
	expect_eq("line-control", inb(COM1 + 3), lcr);
	expect_eq("fifo-enabled", inb(COM1 + 2) & 0xc0, 0xc0);
	outb(COM1 + 1, 0xf);
	expect_eq("interrupt-enable-low-nibble", inb(COM1 + 1), 0xf);
	outb(COM1 + 1, 0);
}

static void loopback(void)
{
	u8 status, modem, received, mcr = inb(COM1 + 4);

	print_flush();
	outb(COM1 + 4, 0x1a); /* loop, OUT2, RTS */
	modem = inb(COM1 + 6) & 0xf0;
	outb(COM1, 0x99);
	delay_us(1000);
	status = inb(COM1 + 5);
	received = inb(COM1);
	outb(COM1 + 4, mcr);
	expect_eq("loop-modem-lines", modem, 0x90);
	expect_eq("loop-data-ready", status & 1, 1);
	expect_eq("loop-data", received, 0x99);
}

/* Verdicts are printed through the same UART, so they come after all measuring. */
static void transmit_interrupt(void)
{
	u32 on_enable, again, after_byte;
	u8 kind, pending;

	lapic_enable();
	lapic_write(APIC_LVT_LINT0, 0x700);
	pic_init(0x40, 0x48);
	trap_handle(0x44, on_irq4);
	pic_unmask(4);
	print_flush();
	outb(COM1 + 4, 0x0b); /* OUT2 lets the interrupt through */
	outb(COM1 + 1, 2);
	delay_us(200);
	sti_nop_cli();
	on_enable = hits;
	kind = identified;
	sti_nop_cli();
	again = hits;
	hits = 0;
	outb(COM1, '\n');
	delay_us(1000);
	sti_nop_cli();
	after_byte = hits;
	outb(COM1 + 1, 0);
	pending = inb(COM1 + 2);
	expect_eq("thre-on-enable", on_enable, 1);
	expect_eq("thre-identified", kind, 2);
	expect_eq("thre-cleared-by-read", again, 1);
	expect_eq("thre-after-byte", after_byte, 1);
	expect_eq("nothing-pending", pending & 1, 1);
	pic_mask(4);
}

void test_main(void)
{
	registers();
	loopback();
	transmit_interrupt();
}
