/* SPDX-License-Identifier: Apache-2.0 */
/* The clock: calendar, formats, setting it, the three interrupts, what CMOS memory holds. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

#define PERIODIC 0x40
#define ALARM    0x20
#define UPDATE   0x10
#define BINARY   0x04
#define H24      0x02

static u8 get(u8 reg)
{
	outb(0x70, reg);
	return inb(0x71);
}

static void set(u8 reg, u8 value)
{
	outb(0x70, reg);
	outb(0x71, value);
}

static bool irq(void)
{
	return guest.machine->pic.chip[1].lines & 0x01;
}

/* Every day of 800 years, there and back, against a plain count of days. */
static void test_calendar(void **state)
{
	static const u8 lengths[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	s64 day = -(365ll * 370 + 90); /* 1 January 1600 */
	unsigned weekday = 7;

	(void)state;
	for (s32 year = 1600; year < 2400; year++) {
		bool leap = year % 4 == 0 && (year % 100 || year % 400 == 0);

		for (u8 month = 1; month <= 12; month++) {
			for (u8 d = 1; d <= lengths[month - 1] + (leap && month == 2); d++) {
				struct calendar c = calendar_of(day * 86400 + 86399);

				assert_int_equal(c.year, year);
				assert_int_equal(c.month, month);
				assert_int_equal(c.day, d);
				assert_int_equal(c.weekday, weekday);
				assert_int_equal(c.hour * 10000 + c.minute * 100 + c.second, 235959);
				assert_int_equal(calendar_seconds(&c), day * 86400 + 86399);
				day++;
				weekday = weekday % 7 + 1;
			}
		}
	}
}

static void test_time(void **state)
{
	(void)state;
	assert_int_equal(get(0x0d), 0x80);
	assert_int_equal(get(0x0b), H24);
	assert_int_equal(get(0x00), 0x40); /* 2001-09-09 01:46:40, a Sunday */
	assert_int_equal(get(0x02), 0x46);
	assert_int_equal(get(0x04), 0x01);
	assert_int_equal(get(0x06), 0x01);
	assert_int_equal(get(0x07), 0x09);
	assert_int_equal(get(0x08), 0x09);
	assert_int_equal(get(0x09), 0x01);
	assert_int_equal(get(0x32), 0x20);
	pass(20 * HZ + MS);
	assert_int_equal(get(0x00), 0x00);
	assert_int_equal(get(0x02), 0x47);
	set(0x0b, H24 | BINARY);
	assert_int_equal(get(0x02), 47);
	pass(11 * 3600 * HZ);
	set(0x0b, 0);
	assert_int_equal(get(0x04), 0x92); /* noon on a 12-hour clock */
	set(0x0b, H24);
	assert_int_equal(get(0x04), 0x12);
	pass(3600 * HZ);
	set(0x0b, 0);
	assert_int_equal(get(0x04), 0x81);
	assert_int_equal(get(0x0a) & 0x7f, 0x26);
}

/* Update-in-progress stands in the last 244 us of each second. */
static void test_uip(void **state)
{
	(void)state;
	pass(HZ / 2);
	assert_int_equal(get(0x0a) & 0x80, 0);
	pass(HZ / 2 - 200 * US);
	assert_int_equal(get(0x0a) & 0x80, 0x80);
	set(0x0b, 0x80 | H24);
	assert_int_equal(get(0x0a) & 0x80, 0);
	set(0x0b, H24);
	pass(300 * US);
	assert_int_equal(get(0x0a) & 0x80, 0);
}

/* SET stops the clock; it goes on from what was written. A single register can be written while it runs. */
static void test_set(void **state)
{
	static const u8 values[][2] = {{0, 0x58}, {2, 0x59}, {4, 0x23},   {7, 0x28},
				       {8, 0x02}, {9, 0x24}, {0x32, 0x20}};

	(void)state;
	set(0x0b, 0x80 | H24 | UPDATE);
	assert_int_equal(get(0x0b), 0x80 | H24); /* no updates, no interrupt of them */
	pass(5 * HZ);
	assert_int_equal(get(0x00), 0x40);
	for (unsigned i = 0; i < ARRAY_SIZE(values); i++)
		set(values[i][0], values[i][1]);
	assert_int_equal(get(0x08), 0x02);
	set(0x0b, H24);
	pass(2 * HZ + MS);
	assert_int_equal(get(0x00), 0x00);
	assert_int_equal(get(0x04), 0x00);
	assert_int_equal(get(0x07), 0x29); /* 2024 is a leap year */
	assert_int_equal(get(0x06), 0x05); /* Thursday */
	set(0x02, 0x30);
	assert_int_equal(get(0x02), 0x30);
	assert_int_equal(get(0x00), 0x00);
	pass(30 * 60 * HZ);
	assert_int_equal(get(0x04), 0x01);
	/* Nonsense is kept from doing harm. */
	for (u8 reg = 0; reg <= 9; reg++)
		set(reg, 0xff);
	set(0x32, 0xff);
	pass(HZ);
	for (u8 reg = 0; reg < 128; reg++)
		get(reg);
}

static void test_update_interrupt(void **state)
{
	(void)state;
	set(0x0b, H24 | UPDATE);
	get(0x0c);
	pass(HZ - 10 * MS);
	assert_false(irq());
	pass(11 * MS);
	assert_true(irq());
	pass(5 * HZ);
	assert_int_equal(timer_shots, 1); /* nothing new until C is read */
	assert_int_equal(get(0x0c), 0x80 | UPDATE | PERIODIC);
	assert_false(irq());
	assert_int_equal(get(0x0c), 0);
	pass(HZ);
	assert_true(irq());
}

/* All rates, against the datasheet's table, with a reader that keeps up. */
static void test_periodic_interrupt(void **state)
{
	static const u16 rates[16] = {0,   256, 128, 8192, 4096, 2048, 1024, 512,
				      256, 128, 64,  32,   16,   8,    4,    2};

	(void)state;
	for (u8 rate = 0; rate < 16; rate++) {
		unsigned count = 0;

		set(0x0a, 0x20 | rate);
		set(0x0b, H24 | PERIODIC);
		get(0x0c);
		for (unsigned i = 0; i < 40000; i++) {
			pass(HZ / 40000);
			if (irq()) {
				count++;
				assert_true(get(0x0c) & PERIODIC);
			}
		}
		assert_in_range(count, rates[rate] ? rates[rate] - 1 : 0,
				rates[rate] + (rates[rate] ? 1 : 0));
		set(0x0b, H24);
	}
}

static void alarm_at(u8 hour, u8 minute, u8 second)
{
	set(0x01, second);
	set(0x03, minute);
	set(0x05, hour);
	get(0x0c);
}

/* The clock starts at 01:46:40. */
static void test_alarm(void **state)
{
	(void)state;
	set(0x0b, H24 | ALARM);
	alarm_at(0x02, 0x00, 0x00);
	pass(800 * HZ - HZ / 2);
	assert_false(irq());
	pass(HZ);
	assert_true(irq());
	assert_true(get(0x0c) & ALARM);
	pass(86400 * HZ - HZ);
	assert_false(irq());
	pass(HZ);
	assert_true(irq());
	alarm_at(0xff, 0xff, 0x30); /* each minute at :30 */
	assert_false(irq());
	pass(29 * HZ);
	assert_false(irq());
	pass(HZ);
	assert_true(irq());
	alarm_at(0xc0, 0xc0, 0xc0); /* each second */
	pass(HZ);
	assert_true(irq());
	alarm_at(0x99, 0x99, 0x99); /* never */
	pass(2 * 86400 * HZ);
	assert_false(irq());
}

/* A flag is set without its interrupt being enabled. */
static void test_polled_alarm(void **state)
{
	(void)state;
	alarm_at(0x01, 0x46, 0x42);
	pass(1 * HZ + MS);
	assert_int_equal(get(0x0c) & ALARM, 0);
	pass(1 * HZ);
	assert_int_equal(get(0x0c) & ALARM, ALARM);
	assert_false(irq());
	assert_null(timers);
}

static void test_memory(void **state)
{
	(void)state;
	assert_int_equal(get(0x15) | get(0x16) << 8, 640);
	assert_int_equal(get(0x17) | get(0x18) << 8, 0xffff);
	assert_int_equal(get(0x30) | get(0x31) << 8, 0xffff);
	assert_int_equal(get(0x34) | get(0x35) << 8, (512 - 16) * 16);
	assert_int_equal(get(0x5b), 0);
	assert_int_equal(get(0x5f), 3); /* CPUs but one */
	assert_int_equal(get(0x0f), 0);
	set(0x0f, 0x0a);
	set(0x40, 0x55);
	outb(0x70, 0x80 | 0x0f); /* with the NMI mask bit */
	assert_int_equal(inb(0x71), 0x0a);
	machine_reset(guest.machine);
	assert_int_equal(get(0x0f), 0);
	assert_int_equal(get(0x40), 0x55);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ONE(test_calendar),
		TEST_ONE(test_time),
		TEST_ONE(test_uip),
		TEST_ONE(test_set),
		TEST_ONE(test_update_interrupt),
		TEST_ONE(test_periodic_interrupt),
		TEST_ONE(test_alarm),
		TEST_ONE(test_polled_alarm),
		TEST_FOUR(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
