/* SPDX-License-Identifier: Apache-2.0 */
/* EPT building: what was mapped is found again, in the largest leaves, and no table page is lost. SDM "EPT
 * Translation Mechanism". */
/* SOURCES: mm/ept.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "mm/ept.h"

#define RW_WB (EPT_READ | EPT_WRITE | EPT_TYPE(MEMTYPE_WB))

struct pool {
	int live, limit;
};

static void *pool_page(void *ctx)
{
	struct pool *p = ctx;
	void *page;

	if (p->live == p->limit)
		return NULL;
	p->live++;
	page = aligned_alloc(PAGE_SIZE, PAGE_SIZE);
	memset(page, 0, PAGE_SIZE);
	return page;
}

static void pool_release(void *ctx, void *page)
{
	((struct pool *)ctx)->live--;
	free(page);
}

static struct pool pool;
static const struct ept_source source = {.page = pool_page, .release = pool_release, .ctx = &pool};
static struct ept ept;

static int setup(void **state)
{
	(void)state;
	pool = (struct pool){.limit = 1000};
	assert_true(ept_init(&ept, &source, 3));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ept_destroy(&ept);
	assert_int_equal(pool.live, 0);
	return 0;
}

static void expect_leaf(u64 gpa, u64 hpa, unsigned level, u64 flags)
{
	struct ept_leaf l = ept_lookup(&ept, gpa);

	assert_int_equal(l.hpa, hpa);
	assert_int_equal(l.level, level);
	assert_int_equal(l.entry & (EPT_RWX | EPT_TYPE_MASK), flags);
	assert_int_equal(!!(l.entry & EPT_LARGE), level > 1);
}

static void nothing_is_mapped_at_first(void **state)
{
	(void)state;
	assert_int_equal(ept_lookup(&ept, 0x1234000).entry, 0);
	assert_int_equal(ept_lookup(&ept, 0x1234000).level, 4);
	assert_int_equal(ept_lookup(&ept, BIT(48)).entry, 0);
	assert_int_equal(ept_lookup(&ept, ~0ull).entry, 0);
}

static void each_part_gets_its_largest_leaf(void **state)
{
	(void)state;
	/* 4K, 2M and 1G parts in one call: from just below 1 GiB to just above 2 GiB + 2 MiB. */
	assert_true(ept_map(&ept, GIB - 2 * MIB - 0x1000, 5 * GIB - 2 * MIB - 0x1000, GIB + 4 * MIB + 0x2000,
			    RW_WB));
	expect_leaf(GIB - 2 * MIB - 0x1000, 5 * GIB - 2 * MIB - 0x1000, 1, RW_WB);
	expect_leaf(GIB - 2 * MIB + 0x123, 5 * GIB - 2 * MIB + 0x123, 2, RW_WB);
	expect_leaf(GIB + 0x12345678, 5 * GIB + 0x12345678, 3, RW_WB);
	expect_leaf(2 * GIB + 0x1fffff, 6 * GIB + 0x1fffff, 2, RW_WB);
	expect_leaf(2 * GIB + 2 * MIB, 6 * GIB + 2 * MIB, 1, RW_WB);
	assert_int_equal(ept_lookup(&ept, 2 * GIB + 2 * MIB + 0x1000).entry, 0);
	assert_int_equal(ept_lookup(&ept, GIB - 2 * MIB - 0x1001).entry, 0);
}

static void alignment_of_the_machine_address_counts(void **state)
{
	(void)state;
	assert_true(ept_map(&ept, 0, 2 * MIB, GIB, RW_WB));
	expect_leaf(0, 2 * MIB, 2, RW_WB);
	assert_true(ept_map(&ept, 4 * GIB, GIB + 0x1000, 2 * MIB, RW_WB));
	expect_leaf(4 * GIB + 0x5000, GIB + 0x6000, 1, RW_WB);
}

static void max_leaf_limits(void **state)
{
	(void)state;
	ept.max_leaf = 2;
	assert_true(ept_map(&ept, 0, 0, GIB, RW_WB));
	expect_leaf(0x40000, 0x40000, 2, RW_WB);
	ept.max_leaf = 1;
	assert_true(ept_map(&ept, 0, 0, 2 * MIB, RW_WB));
	expect_leaf(0x40000, 0x40000, 1, RW_WB);
}

static void protect_splits_and_keeps_the_rest(void **state)
{
	(void)state;
	assert_true(ept_map(&ept, 0, GIB, GIB, RW_WB | EPT_IPAT));
	assert_true(ept_protect(&ept, 0x345000, EPT_WRITE, EPT_EXEC));
	expect_leaf(0x345678, GIB + 0x345678, 1, (RW_WB & ~EPT_WRITE) | EPT_EXEC);
	assert_true(ept_lookup(&ept, 0x345000).entry & EPT_IPAT);
	expect_leaf(0x344000, GIB + 0x344000, 1, RW_WB);
	expect_leaf(0x346000, GIB + 0x346000, 1, RW_WB);
	expect_leaf(0x1ff000, GIB + 0x1ff000, 2, RW_WB);
	expect_leaf(0x3fe00000, GIB + 0x3fe00000, 2, RW_WB);
	assert_false(ept_protect(&ept, GIB, EPT_WRITE, 0));
	assert_false(ept_protect(&ept, BIT(48), EPT_WRITE, 0));
}

static void a_large_page_takes_the_place_of_tables(void **state)
{
	int before;

	(void)state;
	assert_true(ept_map(&ept, 0, 0, GIB, RW_WB));
	before = pool.live;
	assert_true(ept_protect(&ept, 0x5000, EPT_WRITE, 0));
	assert_int_equal(pool.live, before + 2);
	assert_true(ept_map(&ept, 0, 2 * GIB, GIB, RW_WB));
	assert_int_equal(pool.live, before);
	expect_leaf(0x5000, 2 * GIB + 0x5000, 3, RW_WB);
}

static void unmap_takes_exactly_its_range(void **state)
{
	(void)state;
	assert_true(ept_map(&ept, 0, 0, 2 * GIB, RW_WB));
	assert_true(ept_unmap(&ept, GIB - 0x1000, 2 * MIB + 0x2000));
	expect_leaf(GIB - 0x2000, GIB - 0x2000, 1, RW_WB);
	assert_int_equal(ept_lookup(&ept, GIB - 0x1000).entry, 0);
	assert_int_equal(ept_lookup(&ept, GIB).entry, 0);
	assert_int_equal(ept_lookup(&ept, GIB + 2 * MIB).entry, 0);
	expect_leaf(GIB + 2 * MIB + 0x1000, GIB + 2 * MIB + 0x1000, 1, RW_WB);
	assert_true(ept_unmap(&ept, 0, BIT(48)));
	assert_int_equal(pool.live, 1);
}

static void a_dry_source_fails_and_loses_nothing(void **state)
{
	(void)state;
	assert_true(ept_map(&ept, 0, 0, GIB, RW_WB));
	pool.limit = pool.live;
	assert_false(ept_protect(&ept, 0x5000, EPT_WRITE, 0));
	expect_leaf(0x5000, 0x5000, 3, RW_WB);
	assert_false(ept_map(&ept, BIT(40), 0, PAGE_SIZE, RW_WB));
	assert_false(ept_unmap(&ept, 0x5000, PAGE_SIZE));
	expect_leaf(0x5000, 0x5000, 3, RW_WB);
}

static void impossible_ranges_are_refused(void **state)
{
	(void)state;
	assert_false(ept_map(&ept, 0x800, 0, PAGE_SIZE, RW_WB));
	assert_false(ept_map(&ept, 0, 0x800, PAGE_SIZE, RW_WB));
	assert_false(ept_map(&ept, 0, 0, 0x800, RW_WB));
	assert_false(ept_map(&ept, BIT(48) - PAGE_SIZE, 0, 2 * PAGE_SIZE, RW_WB));
	assert_false(ept_map(&ept, ~0ull & PAGE_MASK, 0, 2 * PAGE_SIZE, RW_WB));
	assert_false(ept_unmap(&ept, BIT(48), PAGE_SIZE));
	assert_true(ept_map(&ept, BIT(48) - PAGE_SIZE, 0, PAGE_SIZE, RW_WB));
	expect_leaf(BIT(48) - 1, 0xfff, 1, RW_WB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_mapped_at_first, setup, teardown),
		cmocka_unit_test_setup_teardown(each_part_gets_its_largest_leaf, setup, teardown),
		cmocka_unit_test_setup_teardown(alignment_of_the_machine_address_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(max_leaf_limits, setup, teardown),
		cmocka_unit_test_setup_teardown(protect_splits_and_keeps_the_rest, setup, teardown),
		cmocka_unit_test_setup_teardown(a_large_page_takes_the_place_of_tables, setup, teardown),
		cmocka_unit_test_setup_teardown(unmap_takes_exactly_its_range, setup, teardown),
		cmocka_unit_test_setup_teardown(a_dry_source_fails_and_loses_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(impossible_ranges_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests_name("ept", tests, NULL, NULL);
}
