/* SPDX-License-Identifier: Apache-2.0 */
/* Memory maps: overlaps, modules that share pages, holes, full maps; and random maps against a model of one
 * byte per page. */
/* SOURCES: mm/memmap.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "mm/memmap.h"

static struct memmap map;

static void check_form(void)
{
	for (unsigned i = 0; i < map.count; i++) {
		assert_true(map.range[i].start < map.range[i].end);
		if (i)
			assert_true(map.range[i - 1].end <= map.range[i].start);
	}
}

static int fresh(void **state)
{
	(void)state;
	memset(&map, 0, sizeof(map));
	return 0;
}

static void expect_range(unsigned i, u64 start, u64 end, enum mem_type type)
{
	assert_true(i < map.count);
	assert_int_equal(map.range[i].start, start);
	assert_int_equal(map.range[i].end, end);
	assert_int_equal(map.range[i].type, type);
}

static void less_usable_wins_in_either_order(void **state)
{
	(void)state;
	assert_true(memmap_add(&map, 0x1000, 0x9000, MEM_RAM));
	assert_true(memmap_add(&map, 0x3000, 0x5000, MEM_NVS));
	assert_true(memmap_add(&map, 0x2000, 0x8000, MEM_ACPI));
	check_form();
	assert_int_equal(map.count, 5);
	expect_range(0, 0x1000, 0x2000, MEM_RAM);
	expect_range(1, 0x2000, 0x3000, MEM_ACPI);
	expect_range(2, 0x3000, 0x5000, MEM_NVS);
	expect_range(3, 0x5000, 0x8000, MEM_ACPI);
	expect_range(4, 0x8000, 0x9000, MEM_RAM);
}

static void unsorted_input_is_sorted_and_joined(void **state)
{
	(void)state;
	memmap_add(&map, 0x100000, 0x200000, MEM_RAM);
	memmap_add(&map, 0, 0x9fc00, MEM_RAM);
	memmap_add(&map, 0x200000, 0x300000, MEM_RAM);
	memmap_add(&map, 0x400000, 0x400000, MEM_RAM); /* empty: no entry */
	check_form();
	assert_int_equal(map.count, 2);
	expect_range(0, 0, 0x9fc00, MEM_RAM);
	expect_range(1, 0x100000, 0x300000, MEM_RAM);
	assert_int_equal(memmap_type(&map, 0x9fc00), MEM_RESERVED);
	assert_int_equal(memmap_ram_top(&map), 0x300000);
}

/* BT-01: modules of 1, 4095, 4097 and 12288 bytes, back to back: every page any of them touches is taken. */
static void modules_that_share_pages(void **state)
{
	static const u64 sizes[] = {1, 4095, 4097, 12288};
	u64 at = 0x500123, first = at;

	(void)state;
	memmap_add(&map, 0x100000, 0x1000000, MEM_RAM);
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); at += sizes[i++])
		assert_true(memmap_reserve(&map, at, at + sizes[i]));
	check_form();
	assert_int_equal(map.count, 3);
	expect_range(1, first & PAGE_MASK, ALIGN_UP(at, PAGE_SIZE), MEM_USED);
}

static void aligned_modules_leave_no_empty_ranges(void **state)
{
	(void)state;
	memmap_add(&map, 0x100000, 0x200000, MEM_RAM);
	memmap_reserve(&map, 0x100000, 0x101000);
	memmap_reserve(&map, 0x101000, 0x102000);
	memmap_reserve(&map, 0x1ff000, 0x200000);
	memmap_reserve(&map, 0x150000, 0x150000); /* a module of no bytes */
	check_form();
	assert_int_equal(map.count, 3);
	expect_range(0, 0x100000, 0x102000, MEM_USED);
	expect_range(1, 0x102000, 0x1ff000, MEM_RAM);
	expect_range(2, 0x1ff000, 0x200000, MEM_USED);
}

static void reserving_does_not_make_firmware_memory_usable(void **state)
{
	(void)state;
	memmap_add(&map, 0x100000, 0x200000, MEM_NVS);
	memmap_reserve(&map, 0x100000, 0x101000);
	assert_int_equal(memmap_type(&map, 0x100000), MEM_NVS);
	assert_int_equal(memmap_ram_top(&map), 0);
}

/* BT-08 and the end of the address space: what lies above RAM counts as its own type, and arithmetic does not
 * wrap. */
static void ends_of_the_address_space(void **state)
{
	(void)state;
	memmap_add(&map, 0, 0x1000, MEM_RAM);
	memmap_add(&map, 0x80000000, 0x80010000, MEM_NVS);
	assert_true(memmap_add(&map, 0xfffffffffffff000, UINT64_MAX, MEM_RAM));
	assert_true(memmap_reserve(&map, 0xfffffffffffff800, UINT64_MAX));
	check_form();
	assert_int_equal(memmap_type(&map, 0x8000ffff), MEM_NVS);
	assert_int_equal(memmap_ram_top(&map), UINT64_MAX);
}

static void unknown_types_are_reserved_ones_equal(void **state)
{
	(void)state;
	memmap_add(&map, 0, 0x4000, (enum mem_type)7);
	memmap_add(&map, 0x1000, 0x2000, MEM_RAM);
	assert_int_equal(memmap_type(&map, 0x1000), 7);
}

static void a_full_map_says_so_and_stays_valid(void **state)
{
	(void)state;
	for (u64 i = 0; i < MEMMAP_MAX; i++)
		assert_true(memmap_add(&map, i * 0x2000, i * 0x2000 + 0x1000, MEM_RAM));
	assert_false(memmap_add(&map, 0x10000000, 0x10001000, MEM_RAM));
	assert_false(memmap_add(&map, 0x100, 0x200, MEM_RESERVED)); /* would need two more */
	assert_true(memmap_add(&map, 0x0, 0x1000, MEM_RESERVED));   /* needs none */
	assert_int_equal(map.count, MEMMAP_MAX);
	check_form();
}

#define MODEL_PAGES 256

static unsigned model_rank(unsigned type)
{
	static const unsigned rank[] = {[0] = 0,       [MEM_RAM] = 1,      [MEM_USED] = 2, [MEM_ACPI] = 3,
					[MEM_NVS] = 4, [MEM_RESERVED] = 5, [MEM_BAD] = 6};

	return rank[type];
}

static void random_maps_match_the_model(void **state)
{
	static const enum mem_type types[] = {MEM_RAM, MEM_USED, MEM_ACPI, MEM_NVS, MEM_RESERVED, MEM_BAD};

	(void)state;
	srand(1);
	for (unsigned round = 0; round < 300; round++) {
		unsigned char model[MODEL_PAGES] = {0};

		memset(&map, 0, sizeof(map));
		for (unsigned n = 0; n < 40; n++) {
			unsigned a = (unsigned)rand() % MODEL_PAGES,
				 b = a + (unsigned)rand() % (MODEL_PAGES - a + 1);
			enum mem_type t = types[rand() % 6];

			assert_true(memmap_add(&map, a * PAGE_SIZE, b * PAGE_SIZE, t));
			for (unsigned i = a; i < b; i++)
				if (model_rank(t) > model_rank(model[i]))
					model[i] = (unsigned char)t;
		}
		check_form();
		for (unsigned i = 0; i < MODEL_PAGES; i++)
			assert_int_equal(memmap_type(&map, i * PAGE_SIZE),
					 model[i] ? model[i] : MEM_RESERVED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(less_usable_wins_in_either_order, fresh),
		cmocka_unit_test_setup(unsorted_input_is_sorted_and_joined, fresh),
		cmocka_unit_test_setup(modules_that_share_pages, fresh),
		cmocka_unit_test_setup(aligned_modules_leave_no_empty_ranges, fresh),
		cmocka_unit_test_setup(reserving_does_not_make_firmware_memory_usable, fresh),
		cmocka_unit_test_setup(ends_of_the_address_space, fresh),
		cmocka_unit_test_setup(unknown_types_are_reserved_ones_equal, fresh),
		cmocka_unit_test_setup(a_full_map_says_so_and_stays_valid, fresh),
		cmocka_unit_test_setup(random_maps_match_the_model, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
