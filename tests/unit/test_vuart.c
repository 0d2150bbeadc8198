/* SPDX-License-Identifier: Apache-2.0 */
/* COM1: output, input with FIFO and backlog, interrupt identification, loop-back, the probes drivers make. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

enum { DATA = 0x3f8, IER, IIR, LCR, MCR, LSR, MSR, SCR };

static void type(const char *s)
{
	while (*s)
		machine_console_input(guest.machine, (u8)*s++);
}

/* The level of line 4, as the PIC sees it. */
static bool irq(void)
{
	return guest.machine->pic.chip[0].lines & 0x10;
}

static void test_output(void **state)
{
	(void)state;
	assert_int_equal(inb(LSR), 0x60);
	outb(DATA, 'H');
	outb(DATA, 'i');
	assert_string_equal(printed, "Hi");
	assert_int_equal(inb(LSR), 0x60);
	assert_false(irq());
}

/* Scratch, divisor latch, FIFO identification: as drivers tell a 16550A from others. */
static void test_probe(void **state)
{
	(void)state;
	outb(SCR, 0x5a);
	assert_int_equal(inb(SCR), 0x5a);
	outb(LCR, 0x83);
	outb(DATA, 0x12);
	outb(IER, 0x34);
	assert_int_equal(inb(DATA), 0x12);
	assert_int_equal(inb(IER), 0x34);
	outb(LCR, 0x03);
	assert_int_equal(inb(IER), 0);
	outb(IER, 0xff);
	assert_int_equal(inb(IER), 0x0f);
	outb(IER, 0);
	assert_int_equal(inb(IIR), 0x01);
	outb(IIR, 0x01);
	assert_int_equal(inb(IIR), 0xc1);
	outb(LCR, 0xbf); /* a 16650 would show its EFR as 0 here */
	assert_int_equal(inb(IIR), 0xc1);
	assert_string_equal(printed, "");
}

static void test_input(void **state)
{
	(void)state;
	type("ab");
	assert_int_equal(inb(LSR), 0x61);
	assert_int_equal(inb(DATA), 'a');
	assert_int_equal(inb(DATA), 'b');
	assert_int_equal(inb(LSR), 0x60);
	assert_int_equal(inb(DATA), 0);
}

/* More than the FIFO holds waits outside; only what does not fit there either is lost. */
static void test_backlog(void **state)
{
	(void)state;
	outb(IIR, 0x01);
	for (unsigned i = 0; i < UART_BACKLOG + UART_FIFO + 10; i++)
		machine_console_input(guest.machine, (u8)i);
	for (unsigned i = 0; i < UART_BACKLOG + UART_FIFO; i++) {
		assert_int_equal(inb(LSR), 0x61);
		assert_int_equal(inb(DATA), (u8)i);
	}
	assert_int_equal(inb(LSR), 0x60);
}

static void test_receive_interrupt(void **state)
{
	(void)state;
	outb(IER, 0x01);
	assert_false(irq());
	type("x");
	assert_true(irq());
	assert_int_equal(inb(IIR), 0x04);
	inb(DATA);
	assert_false(irq());
	/* FIFO with trigger level 4: below it the time-out asks. */
	outb(IIR, 0x41);
	type("abc");
	assert_true(irq());
	assert_int_equal(inb(IIR), 0xcc);
	type("d");
	assert_int_equal(inb(IIR), 0xc4);
	outb(IIR, 0x43); /* clear the FIFO */
	assert_false(irq());
	assert_int_equal(inb(IIR), 0xc1);
}

/* The empty transmitter asks when allowed, until IIR is read; and again after each byte. */
static void test_transmit_interrupt(void **state)
{
	(void)state;
	outb(IER, 0x02);
	assert_true(irq());
	assert_int_equal(inb(IIR), 0x02);
	assert_false(irq());
	assert_int_equal(inb(IIR), 0x01);
	outb(DATA, 'x');
	assert_true(irq());
	assert_int_equal(inb(IIR), 0x02);
	outb(IER, 0);
	outb(IER, 0x02);
	assert_true(irq());
	/* Received data is more urgent. */
	outb(IER, 0x03);
	type("y");
	assert_int_equal(inb(IIR), 0x04);
	inb(DATA);
	assert_int_equal(inb(IIR), 0x02);
}

static void test_loopback(void **state)
{
	(void)state;
	assert_int_equal(inb(MSR), 0xb0);
	outb(MCR, 0x1a); /* as Linux tests: OUT2 and RTS show as DCD and CTS */
	assert_int_equal(inb(MSR) & 0xf0, 0x90);
	outb(MCR, 0x10);
	assert_int_equal(inb(MSR), 0x09); /* both went away */
	assert_int_equal(inb(MSR), 0x00);
	outb(MCR, 0x14);
	assert_int_equal(inb(MSR), 0x40); /* a rising RI is no event */
	outb(MCR, 0x10);
	assert_int_equal(inb(MSR), 0x04);
	outb(DATA, 'z');
	type("q"); /* the pin is disconnected */
	assert_int_equal(inb(DATA), 'z');
	assert_int_equal(inb(LSR), 0x60);
	outb(DATA, '1');
	outb(DATA, '2');
	outb(IER, 0x04);
	assert_int_equal(inb(IIR), 0x06);
	assert_int_equal(inb(LSR), 0x63); /* overrun, once */
	assert_int_equal(inb(LSR), 0x61);
	inb(DATA);
	outb(MCR, 0x03);
	assert_int_equal(inb(DATA), 'q');
	assert_string_equal(printed, "");
}

static void test_modem_interrupt(void **state)
{
	(void)state;
	outb(IER, 0x08);
	assert_false(irq());
	outb(MCR, 0x10);
	assert_true(irq());
	assert_int_equal(inb(IIR), 0x00);
	inb(MSR);
	assert_false(irq());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ONE(test_output),
		TEST_ONE(test_probe),
		TEST_ONE(test_input),
		TEST_ONE(test_backlog),
		TEST_ONE(test_receive_interrupt),
		TEST_ONE(test_transmit_interrupt),
		TEST_ONE(test_loopback),
		TEST_ONE(test_modem_interrupt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
