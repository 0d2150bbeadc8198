/* SPDX-License-Identifier: Apache-2.0 */
/* What Nidus reads out of ACPI tables, byte by byte, and that it stays inside them. */
/* SOURCES: boot/acpi_parse.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "boot/acpi.h"

static struct acpi out;
static u8 table[4096];
static size_t size;

static int fresh(void **state)
{
	(void)state;
	memset(&out, 0, sizeof(out));
	memset(table, 0, sizeof(table));
	size = 44; /* header, local APIC address, flags */
	return 0;
}

static void put(const void *entry, size_t n)
{
	memcpy(table + size, entry, n);
	size += n;
}

static void lapic_entry(u8 id, u8 flags)
{
	put((const u8[]){0, 8, 0, id, flags, 0, 0, 0}, 8);
}

static void x2apic_entry(u8 id, u8 id_high, u8 flags)
{
	put((const u8[]){9, 16, 0, 0, id, id_high, 0, 0, flags, 0, 0, 0, 0, 0, 0, 0}, 16);
}

/* The tables' bytes are copied to a heap block of exactly their size: ASan sees every read beyond it. */
static void parse_madt(void)
{
	u8 *copy = malloc(size);

	memcpy(copy, table, size);
	acpi_parse_madt(copy, size, &out);
	free(copy);
}

/* SM-01: sparse ids; disabled and online-capable CPUs do not count; the same CPU listed in both forms counts
 * once. */
static void cpus(void **state)
{
	static const u32 want[] = {0, 1, 8, 9, 300};

	(void)state;
	lapic_entry(0, 1);
	lapic_entry(1, 1);
	lapic_entry(2, 0);
	lapic_entry(3, 2);
	lapic_entry(8, 1);
	lapic_entry(255, 1);
	x2apic_entry(9, 0, 1);
	x2apic_entry(8, 0, 1);
	x2apic_entry(44, 1, 1);
	x2apic_entry(45, 1, 0);
	parse_madt();
	assert_int_equal(out.nr_cpus, ARRAY_SIZE(want));
	assert_memory_equal(out.apic_id, want, sizeof(want));
}

static void more_cpus_than_room(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		size = 44;
		for (unsigned i = 0; i < 200; i++) {
			unsigned id = round * 200 + i;

			x2apic_entry((u8)id, (u8)(id >> 8), 1);
		}
		parse_madt();
	}
	assert_int_equal(out.nr_cpus, ACPI_CPUS_MAX);
	assert_int_equal(out.cpus_lost, 1200 - ACPI_CPUS_MAX);
}

static void ioapics_and_overrides(void **state)
{
	static const u8 ioapic[] = {1, 12, 7, 0, 0, 0, 0xc0, 0xfe, 24, 0, 0, 0};
	static const u8 timer[] = {2, 10, 0, 0, 2, 0, 0, 0, 0, 0};
	static const u8 sci[] = {2, 10, 0, 9, 9, 0, 0, 0, 0x0f, 0};

	(void)state;
	put(ioapic, sizeof(ioapic));
	put(timer, sizeof(timer));
	put(sci, sizeof(sci));
	parse_madt();
	assert_int_equal(out.nr_ioapics, 1);
	assert_int_equal(out.ioapic[0].address, 0xfec00000);
	assert_int_equal(out.ioapic[0].gsi_base, 24);
	assert_int_equal(out.ioapic[0].id, 7);
	assert_int_equal(out.nr_overrides, 2);
	assert_int_equal(out.override[0].gsi, 2);
	assert_int_equal(out.override[0].flags, 0);
	assert_int_equal(out.override[1].irq, 9);
	assert_int_equal(out.override[1].flags, ACPI_OVERRIDE_LOW | ACPI_OVERRIDE_LEVEL);
}

static void damaged_entries_end_the_walk(void **state)
{
	(void)state;
	lapic_entry(0, 1);
	put((const u8[]){0, 0}, 2); /* length 0 */
	lapic_entry(1, 1);
	parse_madt();
	assert_int_equal(out.nr_cpus, 1);

	fresh(NULL);
	lapic_entry(0, 1);
	put((const u8[]){0, 40, 0, 0}, 4); /* longer than the table */
	parse_madt();
	assert_int_equal(out.nr_cpus, 1);

	fresh(NULL);
	put((const u8[]){0, 3, 0}, 3); /* shorter than its kind */
	put((const u8[]){9, 4, 0, 0}, 4);
	put((const u8[]){1, 2}, 2);
	parse_madt();
	assert_int_equal(out.nr_cpus, 0);
	assert_int_equal(out.nr_ioapics, 0);
}

static void put_at(size_t at, u64 v, unsigned bytes)
{
	memcpy(table + at, &v, bytes);
}

static void fadt_of_acpi_1(void **state)
{
	(void)state;
	put_at(40, 0x7fe1000, 4);
	put_at(48, 0xb2, 4);
	put_at(52, 0xf1, 1);
	put_at(64, 0x604, 4);
	put_at(76, 0x608, 4);
	acpi_parse_fadt(table, 116, &out);
	assert_int_equal(out.dsdt, 0x7fe1000);
	assert_int_equal(out.pm_timer, 0x608);
	assert_int_equal(out.power.pm1a_control, 0x604);
	assert_int_equal(out.power.pm1b_control, 0);
	assert_int_equal(out.power.smi_command, 0xb2);
	assert_int_equal(out.power.acpi_enable, 0xf1);
	assert_int_equal(out.power.reset_port, 0);
}

/* The extended blocks win when they name a port; a memory-mapped one is left to the old field. */
static void fadt_extended_blocks(void **state)
{
	(void)state;
	put_at(40, 0x1000, 4);
	put_at(140, 0x123456789000, 8);
	put_at(64, 0x404, 4);
	put_at(172, 1, 1);
	put_at(176, 0x1804, 8);
	put_at(76, 0x408, 4);
	put_at(208, 0, 1);
	put_at(212, 0xfed00000, 8);
	put_at(112, 1 << 10, 4);
	put_at(116, 1, 1);
	put_at(120, 0xcf9, 8);
	put_at(128, 6, 1);
	acpi_parse_fadt(table, 244, &out);
	assert_int_equal(out.dsdt, 0x123456789000);
	assert_int_equal(out.power.pm1a_control, 0x1804);
	assert_int_equal(out.pm_timer, 0x408);
	assert_int_equal(out.power.reset_port, 0xcf9);
	assert_int_equal(out.power.reset_value, 6);
}

static void s5(void **state)
{
	static const u8 bochs[] = {0x08, '_', 'S', '5', '_', 0x12, 0x06, 0x04, 0x00, 0x00, 0x00, 0x00};
	static const u8 bytes[] = {0x08, '\\', '_',  'S',  '5',  '_',  0x12, 0x0a,
				   0x04, 0x0a, 0x05, 0x0a, 0x07, 0x00, 0x00};
	static const u8 long_length[] = {0x10, 0x08, '_',  'S',  '5',  '_',  0x12, 0x47,
					 0x00, 0x04, 0x0a, 0x07, 0x01, 0x00, 0x00};
	static const u8 method[] = {0x14, 0x08, '_', 'S', '5', '_', 0x00, 0xa4, 0x12, 0x04, 0x02, 0x0a, 0x05};
	static const u8 other[] = {0x5b, '_', 'S', '5', '_', 0x12, 0x06, 0x04, 0x01, 0x01, 0x00, 0x00};
	u8 a = 9, b = 9;

	(void)state;
	assert_true(acpi_parse_s5(bochs, sizeof(bochs), &a, &b));
	assert_int_equal(a, 0);
	assert_int_equal(b, 0);
	assert_true(acpi_parse_s5(bytes, sizeof(bytes), &a, &b));
	assert_int_equal(a, 5);
	assert_int_equal(b, 7);
	assert_true(acpi_parse_s5(long_length, sizeof(long_length), &a, &b));
	assert_int_equal(a, 7);
	assert_int_equal(b, 1);
	assert_false(acpi_parse_s5(method, sizeof(method), &a, &b));
	assert_false(acpi_parse_s5(other, sizeof(other), &a, &b));
}

/* Cut off anywhere, the package is found whole, with one value, or not at all, and nothing is read behind the
 * end. */
static void s5_cut_short(void **state)
{
	static const u8 whole[] = {0x08, '_', 'S', '5', '_', 0x12, 0x06, 0x04, 0x0a, 0x05, 0x0a, 0x06};

	(void)state;
	for (size_t n = 0; n <= sizeof(whole); n++) {
		u8 *copy = malloc(n), a = 0, b = 0;
		bool found;

		memcpy(copy, whole, n);
		found = acpi_parse_s5(copy, n, &a, &b);
		assert_int_equal(found, n >= 10);
		if (found)
			assert_int_equal(a, 5);
		free(copy);
	}
}

static void checksum(void **state)
{
	u8 sum = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		sum = (u8)(sum + (table[i] = (u8)(i * 7)));
	table[100] = (u8)-sum;
	assert_true(acpi_checksum(table, 101));
	table[50]++;
	assert_false(acpi_checksum(table, 101));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cpus, fresh),
		cmocka_unit_test_setup(more_cpus_than_room, fresh),
		cmocka_unit_test_setup(ioapics_and_overrides, fresh),
		cmocka_unit_test_setup(damaged_entries_end_the_walk, fresh),
		cmocka_unit_test_setup(fadt_of_acpi_1, fresh),
		cmocka_unit_test_setup(fadt_extended_blocks, fresh),
		cmocka_unit_test_setup(s5, fresh),
		cmocka_unit_test_setup(s5_cut_short, fresh),
		cmocka_unit_test_setup(checksum, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
