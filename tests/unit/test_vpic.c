/* SPDX-License-Identifier: Apache-2.0 */
/* The PIC pair: initialisation, priorities, the ways to end an interrupt, level lines, spurious interrupts,
 * the way to LINT0. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

/* As Linux sets them up: vectors 0x30-0x3f. */
static void program(u8 icw1, u8 icw4)
{
	outb(0x20, icw1);
	outb(0x21, 0x30);
	outb(0x21, 0x04);
	outb(0x21, icw4);
	outb(0xa0, icw1);
	outb(0xa1, 0x38);
	outb(0xa1, 0x02);
	outb(0xa1, icw4);
	outb(0x21, 0);
	outb(0xa1, 0);
}

static bool waiting(void)
{
	return guest.pic_output;
}

static u8 ack(void)
{
	return machine_pic_ack(guest.machine);
}

static u8 read_reg(u16 port, u8 ocw3)
{
	outb(port, ocw3);
	return inb(port);
}

#define IRR 0x0a
#define ISR 0x0b

static void test_masked_at_start(void **state)
{
	(void)state;
	assert_int_equal(inb(0x21), 0xfb);
	assert_int_equal(inb(0xa1), 0xf3);
	for (unsigned i = 0; i < 16; i++)
		if (i != 10 && i != 11)
			line(i, true);
	assert_false(waiting());
	line(11, true);
	line(11, false); /* a pulse is enough */
	assert_true(waiting());
	assert_int_equal(ack(), 0x73);
	outb(0xa0, 0x20);
	outb(0x20, 0x20);
	assert_false(waiting());
	outb(0x21, 0xef);
	assert_true(waiting());
	assert_int_equal(ack(), 0x0c); /* a BIOS' vectors */
}

static void test_edge(void **state)
{
	(void)state;
	program(0x11, 0x01);
	take_pending(0);
	line(4, true);
	assert_true(waiting());
	assert_int_equal(take_pending(0), PEND_INTR);
	assert_int_equal(read_reg(0x20, IRR), 0x10);
	assert_int_equal(ack(), 0x34);
	assert_false(waiting());
	assert_int_equal(read_reg(0x20, ISR), 0x10);
	line(4, true); /* still high: no new edge */
	outb(0x20, 0x20);
	assert_false(waiting());
	assert_int_equal(read_reg(0x20, ISR), 0);
	line(4, false);
	line(4, true);
	assert_true(waiting());
}

/* A lower line waits for the end of a higher one, a higher one does not. */
static void test_nesting(void **state)
{
	(void)state;
	program(0x11, 0x01);
	line(4, true);
	assert_int_equal(ack(), 0x34);
	line(6, true);
	assert_false(waiting());
	line(1, true);
	assert_int_equal(ack(), 0x31);
	assert_int_equal(read_reg(0x20, ISR), 0x12);
	outb(0x20, 0x20); /* non-specific: the highest, 1 */
	assert_int_equal(read_reg(0x20, ISR), 0x10);
	assert_false(waiting());
	outb(0x20, 0x64); /* specific: 4 */
	assert_int_equal(ack(), 0x36);
}

static void test_cascade(void **state)
{
	(void)state;
	program(0x11, 0x01);
	line(8, true);
	line(14, true);
	assert_true(waiting());
	assert_int_equal(ack(), 0x38);
	assert_int_equal(read_reg(0x20, ISR), 0x04);
	assert_int_equal(read_reg(0xa0, ISR), 0x01);
	outb(0xa0, 0x20);
	outb(0x20, 0x20);
	/* The slave's second request was there all the time. */
	assert_true(waiting());
	assert_int_equal(ack(), 0x3e);
	outb(0xa0, 0x20);
	outb(0x20, 0x20);
	assert_false(waiting());
}

/* Line 2 is the slave's; GSI 2 of the platform is the IO-APIC's alone. */
static void test_gsi2(void **state)
{
	(void)state;
	program(0x11, 0x01);
	line(2, true);
	assert_false(waiting());
}

static void test_spurious(void **state)
{
	(void)state;
	program(0x11, 0x01);
	outb(0x4d0, 0x20);
	line(5, true);
	line(5, false); /* gone before the CPU asks */
	assert_false(waiting());
	assert_int_equal(ack(), 0x37);
	assert_int_equal(read_reg(0x20, ISR), 0);
	line(9, true);
	outb(0xa1, 0xff);
	assert_false(waiting());
	assert_int_equal(ack(), 0x37);
}

static void test_level(void **state)
{
	(void)state;
	program(0x11, 0x01);
	outb(0x4d0, 0xff);
	outb(0x4d1, 0xff);
	assert_int_equal(inb(0x4d0), 0xf8);
	assert_int_equal(inb(0x4d1), 0xde);
	line(9, true);
	assert_int_equal(ack(), 0x39);
	outb(0xa0, 0x20);
	outb(0x20, 0x20);
	assert_true(waiting()); /* still asserted */
	assert_int_equal(ack(), 0x39);
	line(9, false);
	outb(0xa0, 0x20);
	outb(0x20, 0x20);
	assert_false(waiting());
}

static void test_auto_eoi(void **state)
{
	(void)state;
	program(0x11, 0x03);
	line(4, true);
	assert_int_equal(ack(), 0x34);
	assert_int_equal(read_reg(0x20, ISR), 0);
	line(6, true);
	assert_int_equal(ack(), 0x36);
	/* The slave never stops asking between its two requests. */
	line(8, true);
	line(14, true);
	assert_int_equal(ack(), 0x38);
	assert_true(waiting());
	assert_int_equal(ack(), 0x3e);
	assert_false(waiting());
	/* With rotation the line that was served becomes the last one. */
	outb(0x20, 0x80);
	line(4, false);
	line(4, true);
	assert_int_equal(ack(), 0x34);
	line(3, true);
	line(6, false);
	line(6, true);
	assert_int_equal(ack(), 0x36);
	assert_int_equal(ack(), 0x33);
}

static void test_rotation(void **state)
{
	(void)state;
	program(0x11, 0x01);
	outb(0x20, 0xc3); /* 3 is the last, 4 the first */
	line(3, true);
	line(7, true);
	assert_int_equal(ack(), 0x37);
	outb(0x20, 0xa0); /* rotate on non-specific EOI: 7 is the last, 0 the first */
	line(6, true);
	assert_int_equal(ack(), 0x33);
	outb(0x20, 0xe3); /* rotate on specific EOI of 3 */
	line(1, true);
	assert_int_equal(ack(), 0x36);
}

/* Special mask: lines masked while in service no longer hold back others. */
static void test_special_mask(void **state)
{
	(void)state;
	program(0x11, 0x01);
	line(3, true);
	assert_int_equal(ack(), 0x33);
	line(5, true);
	assert_false(waiting());
	outb(0x21, 0x08);
	outb(0x20, 0x68);
	assert_true(waiting());
	assert_int_equal(ack(), 0x35);
	outb(0x20, 0x20); /* skips the masked one */
	assert_int_equal(read_reg(0x20, ISR), 0x08);
	outb(0x20, 0x48);
	line(5, false);
	line(5, true);
	assert_false(waiting());
}

static void test_poll(void **state)
{
	(void)state;
	program(0x11, 0x01);
	assert_int_equal(read_reg(0x20, 0x0c), 0);
	line(5, true);
	assert_int_equal(read_reg(0x20, 0x0c), 0x85);
	assert_false(waiting());
	assert_int_equal(read_reg(0x20, ISR), 0x20);
}

/* ICW1 forgets edges, masks and service; initialisation without ICW4 and in single mode is shorter. */
static void test_icw(void **state)
{
	(void)state;
	program(0x11, 0x01);
	line(4, true);
	outb(0x20, 0x12);
	assert_int_equal(read_reg(0x20, IRR), 0);
	outb(0x21, 0x40); /* ICW2, then at once OCW1 */
	outb(0x21, 0xef);
	assert_int_equal(inb(0x21), 0xef);
	line(4, false);
	line(4, true);
	assert_int_equal(ack(), 0x44);
}

/* LINT0 of the boot CPU: ExtINT, then fixed, NMI, masked. */
static void test_lint0(void **state)
{
	(void)state;
	program(0x11, 0x01);
	vlapic_mmio_write(&vcpus[0], APIC_LVT_LINT0, 0x20041); /* fixed */
	line(4, true);
	assert_int_equal(vlapic_pending(&vcpus[0]), 0x41);
	ack();
	outb(0x20, 0x20);
	vlapic_ack(&vcpus[0], 0x41);
	vlapic_mmio_write(&vcpus[0], APIC_LVT_LINT0, 0x400); /* NMI */
	take_pending(0);
	line(4, false);
	line(4, true);
	assert_int_equal(take_pending(0), PEND_NMI);
	ack();
	outb(0x20, 0x20);
	vlapic_mmio_write(&vcpus[0], APIC_LVT_LINT0, 0x10700);
	line(4, false);
	line(4, true);
	assert_int_equal(take_pending(0), 0);
	vlapic_mmio_write(&vcpus[0], APIC_LVT_LINT0, 0x700); /* it waited */
	assert_int_equal(take_pending(0), PEND_INTR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ONE(test_masked_at_start), TEST_ONE(test_edge),     TEST_ONE(test_nesting),
		TEST_ONE(test_cascade),         TEST_ONE(test_gsi2),     TEST_ONE(test_spurious),
		TEST_ONE(test_level),           TEST_ONE(test_auto_eoi), TEST_ONE(test_rotation),
		TEST_ONE(test_special_mask),    TEST_ONE(test_poll),     TEST_ONE(test_icw),
		TEST_ONE(test_lint0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
