/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC timer: one-shot, periodic, TSC-deadline; divide; what mode changes do. A tick is a
 * nanosecond. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

#define VECTOR   0xec
#define PERIODIC (1u << 17)
#define DEADLINE (2u << 17)

static u32 get(u32 reg)
{
	return vlapic_mmio_read(&vcpus[0], reg);
}

static void set(u32 reg, u32 value)
{
	vlapic_mmio_write(&vcpus[0], reg, value);
}

/* The timer's interrupt came; end it. */
static bool fired(void)
{
	if (vlapic_pending(&vcpus[0]) != VECTOR)
		return false;
	assert_true(take_pending(0) & PEND_INTR);
	vlapic_ack(&vcpus[0], VECTOR);
	vlapic_eoi(&vcpus[0]);
	return true;
}

static void start(u32 lvt, u32 divide, u32 count)
{
	set(APIC_LVT_TIMER, lvt);
	set(APIC_TIMER_DIVIDE, divide);
	set(APIC_TIMER_INITIAL, count);
}

static void test_one_shot(void **state)
{
	(void)state;
	start(VECTOR, 0xb, 1000000);
	assert_int_equal(get(APIC_TIMER_CURRENT), 1000000);
	pass(400000);
	assert_int_equal(get(APIC_TIMER_CURRENT), 600000);
	pass(599999);
	assert_int_equal(get(APIC_TIMER_CURRENT), 1);
	assert_false(fired());
	pass(1);
	assert_true(fired());
	assert_int_equal(get(APIC_TIMER_CURRENT), 0);
	pass(10 * HZ);
	assert_false(fired());
	assert_int_equal(timer_shots, 1);
	set(APIC_TIMER_INITIAL, 500);
	set(APIC_TIMER_INITIAL, 0);
	pass(1000);
	assert_false(fired());
	assert_int_equal(get(APIC_TIMER_CURRENT), 0);
}

/* All eight values of the divide configuration register. */
static void test_divide(void **state)
{
	static const u8 rows[][2] = {{0x0, 2},  {0x1, 4},  {0x2, 8},   {0x3, 16},
				     {0x8, 32}, {0x9, 64}, {0xa, 128}, {0xb, 1}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		start(VECTOR, rows[i][0], 1000);
		pass(500ull * rows[i][1]);
		assert_int_equal(get(APIC_TIMER_CURRENT), 500);
		pass(500ull * rows[i][1] - 1);
		assert_false(fired());
		pass(1);
		assert_true(fired());
	}
}

/* A new divisor takes over from the count that is left. */
static void test_divide_change(void **state)
{
	(void)state;
	start(VECTOR, 0xb, 1000000);
	pass(400000);
	set(APIC_TIMER_DIVIDE, 0x0);
	assert_int_equal(get(APIC_TIMER_CURRENT), 600000);
	pass(2 * 600000 - 1);
	assert_false(fired());
	pass(1);
	assert_true(fired());
}

static void test_periodic(void **state)
{
	(void)state;
	start(PERIODIC | VECTOR, 0xb, 1 * MS);
	for (unsigned i = 0; i < 100; i++) {
		pass(1 * MS - 1);
		assert_false(fired());
		pass(1);
		assert_true(fired());
		assert_int_equal(get(APIC_TIMER_CURRENT), 1 * MS);
	}
	pass(MS / 4);
	assert_int_equal(get(APIC_TIMER_CURRENT), MS - MS / 4);
	set(APIC_TIMER_INITIAL, 0);
	pass(10 * MS);
	assert_false(fired());
}

/* A period of one tick costs L0 no more than 50000 interrupts a second. */
static void test_no_storm(void **state)
{
	(void)state;
	start(PERIODIC | VECTOR, 0xb, 1);
	pass(HZ / 10);
	assert_in_range(timer_shots, 4000, 5001);
	assert_true(fired());
}

/* A timer that fires late keeps its phase and is not made up for. */
static void test_late(void **state)
{
	(void)state;
	start(PERIODIC | VECTOR, 0xb, 1 * MS);
	now += 5 * MS + MS / 2; /* nobody looked */
	pass(0);
	assert_true(fired());
	assert_false(fired());
	assert_int_equal(get(APIC_TIMER_CURRENT), MS / 2);
	pass(MS / 2 - 1);
	assert_false(fired());
	pass(1);
	assert_true(fired());
}

/* Masked: it counts, says nothing, wakes nobody; unmasked it goes on. */
static void test_masked(void **state)
{
	(void)state;
	start(PERIODIC | LVT_MASKED | VECTOR, 0xb, 1 * MS);
	pass(10 * MS + MS / 4);
	assert_int_equal(timer_shots, 0);
	assert_int_equal(get(APIC_TIMER_CURRENT), MS - MS / 4);
	set(APIC_LVT_TIMER, PERIODIC | VECTOR);
	assert_false(fired());
	pass(MS - MS / 4);
	assert_true(fired());
	/* An expiry that was due before it was masked is not lost. */
	now += 1 * MS;
	set(APIC_LVT_TIMER, PERIODIC | LVT_MASKED | VECTOR);
	assert_true(fired());
}

/* One-shot and periodic may be exchanged while it counts; what has run out stays out. */
static void test_mode_change(void **state)
{
	(void)state;
	start(PERIODIC | VECTOR, 0xb, 1 * MS);
	pass(MS / 2);
	set(APIC_LVT_TIMER, VECTOR);
	assert_int_equal(get(APIC_TIMER_CURRENT), MS / 2);
	pass(MS / 2);
	assert_true(fired());
	assert_int_equal(get(APIC_TIMER_CURRENT), 0);
	set(APIC_LVT_TIMER, PERIODIC | VECTOR);
	pass(3 * MS);
	assert_int_equal(get(APIC_TIMER_CURRENT), 0);
	assert_false(fired());
	set(APIC_TIMER_INITIAL, 1 * MS);
	pass(MS / 2);
	set(APIC_LVT_TIMER, DEADLINE | VECTOR); /* disarms */
	set(APIC_LVT_TIMER, VECTOR);
	pass(3 * MS);
	assert_false(fired());
}

static u64 deadline(void)
{
	u64 value;

	assert_true(vlapic_msr_read(&vcpus[0], MSR_TSC_DEADLINE, &value));
	return value;
}

static void set_deadline(u64 value)
{
	assert_true(vlapic_msr_write(&vcpus[0], MSR_TSC_DEADLINE, value));
}

/* The deadline is in the guest's own time. */
static void test_deadline(void **state)
{
	u64 tsc;

	(void)state;
	vcpus[0].tsc_offset = 0 - 3 * HZ;
	set_deadline(1); /* not in that mode: ignored */
	assert_int_equal(deadline(), 0);
	set(APIC_LVT_TIMER, DEADLINE | VECTOR);
	tsc = now - 3 * HZ;
	set_deadline(tsc + 5000);
	assert_int_equal(deadline(), tsc + 5000);
	set(APIC_TIMER_INITIAL, 77); /* ignored here */
	assert_int_equal(get(APIC_TIMER_INITIAL), 0);
	assert_int_equal(get(APIC_TIMER_CURRENT), 0);
	pass(4999);
	assert_false(fired());
	pass(1);
	assert_true(fired());
	assert_int_equal(deadline(), 0);
	set_deadline(1); /* long past: at once */
	assert_true(fired());
	set_deadline(tsc + 1 * MS);
	set_deadline(0);
	pass(2 * MS);
	assert_false(fired());
	set_deadline(~0ull); /* never, and no overflow into the past */
	pass(HZ);
	assert_false(fired());
}

static void test_deadline_tsc_change(void **state)
{
	(void)state;
	set(APIC_LVT_TIMER, DEADLINE | VECTOR);
	set_deadline(now + 10 * MS);
	vcpus[0].tsc_offset = 9 * MS;
	vlapic_tsc_changed(&vcpus[0]);
	pass(1 * MS - 1);
	assert_false(fired());
	pass(1);
	assert_true(fired());
	set_deadline(now + vcpus[0].tsc_offset + 10 * MS);
	vcpus[0].tsc_offset += 20 * MS;
	vlapic_tsc_changed(&vcpus[0]);
	assert_true(fired());
}

/* INIT and software disable stop it. */
static void test_stops(void **state)
{
	(void)state;
	start(PERIODIC | VECTOR, 0xb, 1 * MS);
	set(APIC_SVR, 0xff);
	pass(5 * MS);
	assert_int_equal(vlapic_pending(&vcpus[0]), -1);
	set(APIC_SVR, 0x1ff);
	set(APIC_LVT_TIMER, PERIODIC | VECTOR);
	vlapic_reset(&vcpus[0], true);
	pass(5 * MS);
	assert_int_equal(vlapic_pending(&vcpus[0]), -1);
	assert_null(timers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_ONE(test_one_shot),      TEST_ONE(test_divide),
		TEST_ONE(test_divide_change), TEST_ONE(test_periodic),
		TEST_ONE(test_no_storm),      TEST_ONE(test_late),
		TEST_ONE(test_masked),        TEST_ONE(test_mode_change),
		TEST_ONE(test_deadline),      TEST_ONE(test_deadline_tsc_change),
		TEST_ONE(test_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
