/* SPDX-License-Identifier: Apache-2.0 */
/* BT-10: memory types by fixed, variable and default MTRRs, their precedence, and ranges that a boundary
 * cuts. */
/* SOURCES: mm/mtrr.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "mm/mtrr.h"

#define ENABLE       BIT(11)
#define ENABLE_FIXED BIT(10)

static struct mtrrs m;

static int fresh(void **state)
{
	(void)state;
	memset(&m, 0, sizeof(m));
	m.phys_mask = MASK(40) & PAGE_MASK;
	m.fixed_ok = true;
	m.def = ENABLE | ENABLE_FIXED | MT_WB;
	for (unsigned i = 0; i < 11; i++)
		m.fixed[i] = 0x0606060606060606;
	return 0;
}

static void variable(u64 base, u64 size, enum memory_type type)
{
	m.base[m.nr_var] = base | type;
	m.mask[m.nr_var] = (m.phys_mask & ~(size - 1)) | BIT(11);
	m.nr_var++;
}

static void expect(u64 a, u64 size, bool uniform, enum memory_type type)
{
	enum memory_type t;

	assert_int_equal(mtrr_uniform(&m, a, size, &t), uniform);
	assert_int_equal(t, type);
}

/* As PC firmware sets it: RAM by default, everything from 3 GiB on uncached, the VGA hole by fixed registers.
 */
static void a_pc(void **state)
{
	(void)state;
	variable(3 * GIB, GIB, MT_UC);
	m.fixed[2] = 0; /* A0000-BFFFF */
	assert_int_equal(mtrr_type_at(&m, 0x9ffff), MT_WB);
	assert_int_equal(mtrr_type_at(&m, 0xa0000), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 0xbffff), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 0xc0000), MT_WB);
	assert_int_equal(mtrr_type_at(&m, 0xfec00000), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 0xfee00000), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 4 * GIB), MT_WB);
	expect(0, 2 * MIB, false, MT_WB);
	expect(2 * MIB, 2 * MIB, true, MT_WB);
	expect(3 * GIB - 2 * MIB, 4 * MIB, false, MT_WB);
	expect(3 * GIB, GIB, true, MT_UC);
	expect(4 * GIB, GIB, true, MT_WB);
}

/* A 2 MiB page cut by a 64 KiB range in its middle. */
static void a_boundary_inside_a_large_page(void **state)
{
	(void)state;
	variable(0x40110000, 0x10000, MT_UC);
	expect(0x40000000, 2 * MIB, false, MT_WB);
	expect(0x40000000, 0x110000, true, MT_WB);
	expect(0x40110000, 0x10000, true, MT_UC);
	expect(0x4011f000, 0x2000, false, MT_UC);
	expect(0x40120000, 0xe0000, true, MT_WB);
}

static void each_fixed_range(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 88; i++) {
		u64 a = i < 8    ? i * 0x10000ull
			: i < 24 ? 0x80000 + (i - 8) * 0x4000ull
				 : 0xc0000 + (i - 24) * 0x1000ull;
		u64 size = i < 8 ? 0x10000 : i < 24 ? 0x4000 : 0x1000;

		fresh(NULL);
		m.fixed[i / 8] &= ~(0xffull << i % 8 * 8);
		m.fixed[i / 8] |= (u64)MT_WP << i % 8 * 8;
		expect(a, size, true, MT_WP);
		assert_int_equal(mtrr_type_at(&m, a + size - 1), MT_WP);
		assert_int_equal(mtrr_type_at(&m, a + size), MT_WB);
		if (a)
			assert_int_equal(mtrr_type_at(&m, a - 1), MT_WB);
		expect(0, MIB, false, i ? MT_WB : MT_WP);
	}
}

static void overlaps(void **state)
{
	(void)state;
	m.def = ENABLE | MT_UC;
	variable(0, 4 * GIB, MT_WB);
	variable(GIB, GIB, MT_WT);
	variable(GIB + 512 * MIB, 512 * MIB, MT_UC);
	assert_int_equal(mtrr_type_at(&m, 0), MT_WB);
	assert_int_equal(mtrr_type_at(&m, GIB), MT_WT);
	assert_int_equal(mtrr_type_at(&m, GIB + 512 * MIB), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 4 * GIB), MT_UC);
	variable(2 * GIB, GIB, MT_WC); /* WC over WB is undefined: taken as UC */
	assert_int_equal(mtrr_type_at(&m, 2 * GIB), MT_UC);
}

static void switched_off(void **state)
{
	(void)state;
	variable(0, 4 * GIB, MT_WB);
	m.def = ENABLE | MT_WB; /* fixed ones off */
	m.fixed[0] = 0;
	assert_int_equal(mtrr_type_at(&m, 0), MT_WB);
	m.def = ENABLE_FIXED | MT_WB; /* all off: UC everywhere */
	assert_int_equal(mtrr_type_at(&m, 0x500000), MT_UC);
	assert_int_equal(mtrr_type_at(&m, 0), MT_UC);
}

static void an_invalid_register_counts_for_nothing(void **state)
{
	(void)state;
	variable(0x40000000, MIB, MT_UC);
	m.mask[0] &= ~BIT(11);
	expect(0x40000000, 2 * MIB, true, MT_WB);
}

/* The answer "one type" is true for every 4 KiB page of the range, "several" for none. */
static void uniform_agrees_with_every_page(void **state)
{
	static const enum memory_type types[] = {MT_UC, MT_WC, MT_WT, MT_WP, MT_WB};

	(void)state;
	srand(6);
	for (unsigned round = 0; round < 300; round++) {
		u64 a = (u64)(rand() % 1024) * PAGE_SIZE, size = (u64)(1 + rand() % 1024) * PAGE_SIZE;
		enum memory_type t, first;
		bool same = true;

		fresh(NULL);
		for (unsigned i = 0; i < 3; i++) {
			u64 n = PAGE_SIZE << rand() % 9;

			variable((u64)(rand() % 2048) * PAGE_SIZE & ~(n - 1), n, types[rand() % 5]);
		}
		m.fixed[rand() % 11] = 0;
		first = mtrr_type_at(&m, a);
		for (u64 at = a; at < a + size; at += PAGE_SIZE)
			same &= mtrr_type_at(&m, at) == first;
		assert_int_equal(mtrr_uniform(&m, a, size, &t), same);
		assert_int_equal(t, first);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_pc, fresh),
		cmocka_unit_test_setup(a_boundary_inside_a_large_page, fresh),
		cmocka_unit_test_setup(each_fixed_range, fresh),
		cmocka_unit_test_setup(overlaps, fresh),
		cmocka_unit_test_setup(switched_off, fresh),
		cmocka_unit_test_setup(an_invalid_register_counts_for_nothing, fresh),
		cmocka_unit_test_setup(uniform_agrees_with_every_page, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
