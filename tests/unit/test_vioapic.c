/* SPDX-License-Identifier: Apache-2.0 */
/* The IO-APIC: registers, edge and level lines, remote IRR, end of interrupt. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

#define LEVEL  0x8000u
#define REMOTE 0x4000u
#define MASKED 0x10000u

static void mmio_write(u32 offset, u32 value)
{
	machine_mmio_write(&vcpus[0], GPA(L1_IOAPIC + offset), 4, value);
}

static u32 mmio_read(u32 offset)
{
	return (u32)machine_mmio_read(&vcpus[0], GPA(L1_IOAPIC + offset), 4);
}

static u32 get(u32 reg)
{
	mmio_write(0, reg);
	assert_int_equal(mmio_read(0), reg);
	return mmio_read(0x10);
}

static void set(u32 reg, u32 value)
{
	mmio_write(0, reg);
	mmio_write(0x10, value);
}

static void route(unsigned pin, u32 low, u32 dest)
{
	set(0x11 + 2 * pin, dest << 24);
	set(0x10 + 2 * pin, low);
}

/* The vCPU accepts `vector` now, if it has it. */
static bool take(unsigned cpu, u8 vector)
{
	if (vlapic_pending(&vcpus[cpu]) != vector)
		return false;
	vlapic_ack(&vcpus[cpu], vector);
	return true;
}

static void enable_apics(void)
{
	for (unsigned i = 0; i < guest.nr_vcpus; i++)
		vlapic_mmio_write(&vcpus[i], APIC_SVR, 0x1ff);
}

static void test_registers(void **state)
{
	(void)state;
	assert_int_equal(get(0), 0);
	assert_int_equal(get(1), 0x170020);
	set(0, 0xff000000);
	assert_int_equal(get(0), 0x0f000000);
	set(1, 0xffffffff);
	assert_int_equal(get(1), 0x170020);
	for (unsigned pin = 0; pin < 24; pin++) {
		assert_int_equal(get(0x10 + 2 * pin), MASKED);
		set(0x10 + 2 * pin, 0xffffffff);
		set(0x11 + 2 * pin, 0xffffffff);
		assert_int_equal(get(0x10 + 2 * pin), 0x1afff);
		assert_int_equal(get(0x11 + 2 * pin), 0xff000000);
	}
	set(0x40, 0xffffffff); /* behind the last pin */
	assert_int_equal(get(0x40), 0);
	assert_int_equal(mmio_read(0x20), 0);
}

static void test_edge(void **state)
{
	(void)state;
	enable_apics();
	route(4, 0x51, 1);
	line(4, true);
	assert_true(take(1, 0x51));
	vlapic_eoi(&vcpus[1]);
	line(4, true);
	assert_false(take(1, 0x51));
	line(4, false);
	line(4, true);
	assert_true(take(1, 0x51));
	vlapic_eoi(&vcpus[1]);
	/* An edge under the mask is gone. */
	route(4, MASKED | 0x51, 1);
	line(4, false);
	line(4, true);
	route(4, 0x51, 1);
	assert_false(take(1, 0x51));
}

/* The platform's timer line arrives at pin 2. */
static void test_timer_pin(void **state)
{
	(void)state;
	route(2, 0x30, 0);
	line(0, false);
	line(0, true);
	assert_true(take(0, 0x30));
}

static void test_level(void **state)
{
	(void)state;
	enable_apics();
	route(9, LEVEL | 0x61, 2);
	line(9, true);
	assert_true(take(2, 0x61));
	assert_int_equal(get(0x10 + 18), LEVEL | REMOTE | 0x61);
	line(9, false);
	line(9, true); /* being served: nothing new */
	assert_int_equal(apic_get(vcpus[2].lapic, APIC_IRR + (0x61 >> 5) * 0x10), 0);
	vlapic_eoi(&vcpus[2]); /* still asserted: again */
	assert_true(take(2, 0x61));
	line(9, false);
	vlapic_eoi(&vcpus[2]);
	assert_false(take(2, 0x61));
	assert_int_equal(get(0x10 + 18), LEVEL | 0x61);
}

/* Asserted while masked: delivered as soon as the mask goes. */
static void test_level_mask(void **state)
{
	(void)state;
	route(10, MASKED | LEVEL | 0x62, 0);
	line(10, true);
	assert_false(take(0, 0x62));
	set(0x10 + 20, LEVEL | 0x62);
	assert_true(take(0, 0x62));
	/* Masked in service: the EOI does not deliver again. */
	set(0x10 + 20, MASKED | LEVEL | 0x62);
	vlapic_eoi(&vcpus[0]);
	assert_false(take(0, 0x62));
	assert_int_equal(get(0x10 + 20), MASKED | LEVEL | 0x62);
}

/* The EOI register, and the old trick of switching to edge and back. */
static void test_eoi_ways(void **state)
{
	(void)state;
	route(11, LEVEL | 0x63, 0);
	line(11, true);
	assert_true(take(0, 0x63));
	line(11, false);
	mmio_write(0x40, 0x64); /* somebody else's */
	assert_int_equal(get(0x10 + 22), LEVEL | REMOTE | 0x63);
	mmio_write(0x40, 0x63);
	assert_int_equal(get(0x10 + 22), LEVEL | 0x63);
	line(11, true);
	set(0x10 + 22, MASKED | 0x63);
	set(0x10 + 22, MASKED | LEVEL | 0x63);
	assert_int_equal(get(0x10 + 22), MASKED | LEVEL | 0x63);
}

/* An edge-triggered vector's EOI does not come here. */
static void test_edge_eoi(void **state)
{
	(void)state;
	route(9, LEVEL | 0x61, 0);
	line(9, true);
	assert_true(take(0, 0x61));
	vlapic_accept(vcpus[0].lapic, 0x71, false);
	assert_true(take(0, 0x71));
	vlapic_eoi(&vcpus[0]);
	assert_int_equal(get(0x10 + 18), LEVEL | REMOTE | 0x61);
	/* Nor when the same vector was level-triggered before: TMR tells by the last request. */
	vlapic_eoi(&vcpus[0]);
	assert_int_equal(vlapic_mmio_read(&vcpus[0], APIC_TMR + 0x30), BIT32(0x61 - 0x60));
	assert_true(take(0, 0x61));
	line(9, false);
	vlapic_eoi(&vcpus[0]);
	vlapic_accept(vcpus[0].lapic, 0x61, false);
	assert_int_equal(vlapic_mmio_read(&vcpus[0], APIC_TMR + 0x30), 0);
}

static void test_broadcast(void **state)
{
	(void)state;
	enable_apics();
	route(4, 0x52, 0xff);
	line(4, true);
	for (unsigned i = 0; i < 4; i++)
		assert_true(take(i, 0x52));
	route(5, 0x400, 3); /* NMI */
	take_pending(3);
	line(5, true);
	assert_int_equal(take_pending(3), PEND_NMI);
}

/* Accesses of other widths touch the same registers and nothing else. */
static void test_widths(void **state)
{
	(void)state;
	mmio_write(0, 1);
	assert_int_equal(machine_mmio_read(&vcpus[0], GPA(L1_IOAPIC + 0x10), 1), 0x20);
	assert_int_equal(machine_mmio_read(&vcpus[0], GPA(L1_IOAPIC + 0x12), 2), 0x17);
	assert_int_equal(machine_mmio_read(&vcpus[0], GPA(L1_IOAPIC + 0x10), 8), 0x170020);
	assert_int_equal(machine_mmio_read(&vcpus[0], GPA(0xfec10000), 8), ~0ull);
	assert_int_equal(machine_mmio_read(&vcpus[0], GPA(0xfee01000), 2), 0xffff);
	machine_mmio_write(&vcpus[0], GPA(0xd0000000), 4, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FOUR(test_registers), TEST_FOUR(test_edge),       TEST_FOUR(test_timer_pin),
		TEST_FOUR(test_level),     TEST_FOUR(test_level_mask), TEST_FOUR(test_eoi_ways),
		TEST_FOUR(test_edge_eoi),  TEST_FOUR(test_broadcast),  TEST_FOUR(test_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
