/* SPDX-License-Identifier: Apache-2.0 */
/* The PIT: counts, modes, latches, channel 0's interrupt without drift, channel 2 with port 0x61. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

#define PIT_HZ 1193182ull

/* Let `n` clocks of the PIT pass, and a little more, so that rounding is on the safe side. */
static void clocks(u64 n)
{
	pass(n * HZ / PIT_HZ + 2);
}

static u16 read16(u16 port)
{
	u8 low = inb(port);

	return (u16)(low | inb(port) << 8);
}

static void load(unsigned channel, u8 mode, u16 count)
{
	outb(0x43, (u8)(channel << 6 | 0x30 | (unsigned)mode << 1));
	outb((u16)(0x40 + channel), (u8)count);
	outb((u16)(0x40 + channel), (u8)(count >> 8));
}

/* Route the timer line to vector 0x30 of vCPU 0. */
static void route(void)
{
	machine_mmio_write(&vcpus[0], GPA(L1_IOAPIC), 4, 0x14);
	machine_mmio_write(&vcpus[0], GPA(L1_IOAPIC + 0x10), 4, 0x30);
}

static bool ticked(void)
{
	if (vlapic_pending(&vcpus[0]) != 0x30)
		return false;
	vlapic_ack(&vcpus[0], 0x30);
	vlapic_eoi(&vcpus[0]);
	return true;
}

static void test_count_down(void **state)
{
	(void)state;
	load(0, 2, 10000);
	clocks(2500);
	assert_in_range(read16(0x40), 7498, 7500);
	clocks(7500 + 2500); /* once around */
	assert_in_range(read16(0x40), 7496, 7500);
	load(0, 3, 10000);
	clocks(1000);
	assert_in_range(read16(0x40), 7994, 8000); /* by twos */
	load(0, 0, 100);
	clocks(150);
	assert_in_range(read16(0x40), 65536 - 52, 65536 - 50);
	load(0, 0, 0); /* means 65536 */
	clocks(1);
	assert_in_range(read16(0x40), 65533, 65535);
}

static void test_latch(void **state)
{
	u16 first;

	(void)state;
	load(0, 2, 50000);
	clocks(100);
	outb(0x43, 0x00);
	clocks(10000);
	outb(0x43, 0x00); /* ignored: the first was not read */
	first = read16(0x40);
	assert_in_range(first, 49898, 49900);
	assert_in_range(read16(0x40), 39890, 39900);
	/* One-byte access modes. */
	outb(0x43, 0x14);
	outb(0x40, 200);
	clocks(50);
	assert_in_range(inb(0x40), 148, 150);
	outb(0x43, 0x24);
	outb(0x40, 0x20);
	clocks(0x100);
	assert_in_range(inb(0x40), 0x1e, 0x1f);
}

static void test_bcd(void **state)
{
	(void)state;
	outb(0x43, 0x35);
	outb(0x40, 0x00);
	outb(0x40, 0x10); /* 1000 decimal */
	clocks(1);
	assert_in_range(read16(0x40), 0x997, 0x999);
}

static void test_read_back(void **state)
{
	(void)state;
	load(2, 0, 1000);
	outb(0x43, 0xe8); /* status of channel 2 */
	assert_int_equal(inb(0x42), 0x30);
	outb(0x61, 1);
	clocks(1001);
	outb(0x43, 0xc8); /* count and status */
	assert_int_equal(inb(0x42), 0xb0);
	assert_in_range(read16(0x42), 65532, 65535);
	outb(0x43, 0xb6); /* no count yet */
	outb(0x43, 0xe8);
	assert_int_equal(inb(0x42), 0xf6);
}

/* Mode 0: one edge, then never again. */
static void test_mode0(void **state)
{
	(void)state;
	route();
	load(0, 0, 1000);
	clocks(999);
	assert_false(ticked());
	clocks(1);
	assert_true(ticked());
	pass(HZ);
	assert_false(ticked());
	assert_int_equal(timer_shots, 1);
}

static void test_mode4(void **state)
{
	(void)state;
	route();
	load(0, 4, 1000);
	clocks(1000);
	assert_false(ticked());
	clocks(1);
	assert_true(ticked());
	pass(HZ);
	assert_false(ticked());
}

/* 100 Hz for 100 s: not one too many or too few. */
static void no_drift(u8 mode)
{
	u64 ticks = 0;

	route();
	load(0, mode, 11932);
	for (unsigned i = 0; i < 100000; i++) {
		pass(MS);
		ticks += ticked();
	}
	assert_int_equal(ticks, 100 * PIT_HZ / 11932);
}

static void test_mode2_no_drift(void **state)
{
	(void)state;
	no_drift(2);
}

static void test_mode3_no_drift(void **state)
{
	(void)state;
	no_drift(3);
}

static void test_no_storm(void **state)
{
	(void)state;
	route();
	load(0, 2, 2);
	pass(HZ / 10);
	assert_in_range(timer_shots, 1000, 5001);
	/* Late: one interrupt, then in phase. */
	load(0, 2, 11932);
	ticked();
	now += HZ;
	pass(0);
	assert_true(ticked());
	assert_false(ticked());
}

static void test_control_word_stops(void **state)
{
	(void)state;
	route();
	load(0, 2, 11932);
	clocks(11932);
	assert_true(ticked());
	outb(0x43, 0x34);
	pass(HZ);
	assert_false(ticked());
	assert_null(guest.machine->pit.timer.cpu);
}

/* How kernels calibrate: channel 2, gate on, wait for OUT. */
static void test_channel2(void **state)
{
	(void)state;
	outb(0x61, 0);
	load(2, 0, 11932);
	clocks(20000);
	assert_int_equal(read16(0x42), 11932); /* the gate is low */
	assert_int_equal(inb(0x61) & 0x2f, 0);
	outb(0x61, 1);
	clocks(6000);
	assert_int_equal(inb(0x61) & 0x2f, 1);
	outb(0x61, 0);
	clocks(20000);
	assert_in_range(read16(0x42), 5930, 5932);
	outb(0x61, 1);
	clocks(5933);
	assert_int_equal(inb(0x61) & 0x2f, 0x21);
	assert_null(timers);
}

/* Mode 1: a rising gate starts it, and again. */
static void test_mode1(void **state)
{
	(void)state;
	outb(0x61, 0);
	load(2, 1, 1000);
	assert_int_equal(inb(0x61) & 0x20, 0x20);
	outb(0x61, 1);
	clocks(500);
	assert_int_equal(inb(0x61) & 0x20, 0);
	outb(0x61, 0);
	outb(0x61, 1);
	clocks(999);
	assert_int_equal(inb(0x61) & 0x20, 0);
	clocks(2);
	assert_int_equal(inb(0x61) & 0x20, 0x20);
}

/* Bit 4 of port 0x61 toggles every 15 us. */
static void test_refresh(void **state)
{
	unsigned changes = 0;
	u8 last = inb(0x61) & 0x10;

	(void)state;
	for (unsigned i = 0; i < 1500; i++) {
		pass(US);
		changes += (inb(0x61) & 0x10) != last;
		last = inb(0x61) & 0x10;
	}
	assert_in_range(changes, 97, 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ONE(test_count_down),
		TEST_ONE(test_latch),
		TEST_ONE(test_bcd),
		TEST_ONE(test_read_back),
		TEST_ONE(test_mode0),
		TEST_ONE(test_mode4),
		TEST_ONE(test_mode2_no_drift),
		TEST_ONE(test_mode3_no_drift),
		TEST_ONE(test_no_storm),
		TEST_ONE(test_control_word_stops),
		TEST_ONE(test_channel2),
		TEST_ONE(test_mode1),
		TEST_ONE(test_refresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
