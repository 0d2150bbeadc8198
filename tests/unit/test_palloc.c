/* SPDX-License-Identifier: Apache-2.0 */
/* The page allocator on a piece of host memory that stands at the machine addresses of the map. */
/* SOURCES: mm/palloc.c mm/memmap.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "hv/panic.h"
#include "mm/palloc.h"

#define BASE 0x10000000ull
#define SIZE (64 * MIB)

static struct memmap map;

/* BUG_ON ends here; expect_assert_failure cannot be used, for panic must not return. */
static jmp_buf panic_jump;
static bool panic_expected;

void panic(const char *fmt, ...)
{
	(void)fmt;
	assert_true(panic_expected);
	longjmp(panic_jump, 1);
}

static int setup(void **state)
{
	(void)state;
	memset(&map, 0, sizeof(map));
	memmap_add(&map, 0x0, 0x9f000, MEM_RAM);
	memmap_add(&map, BASE, BASE + SIZE, MEM_RAM);
	memmap_add(&map, BASE + 8 * MIB, BASE + 9 * MIB, MEM_NVS);
	memmap_reserve(&map, BASE + 4 * MIB + 5, BASE + 4 * MIB + 6);
	memset((void *)BASE, 0xcc, SIZE);
	palloc_init(&map);
	return 0;
}

static int group_setup(void **state)
{
	(void)state;
	return mmap((void *)BASE, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)BASE
		       ? 0
		       : -1;
}

/* BT-01, BT-11: every page handed out is usable RAM above 1 MiB that nobody owns, once. */
static void all_pages_are_free_ram_and_unique(void **state)
{
	static unsigned char seen[SIZE / PAGE_SIZE];
	u64 before = palloc_free_bytes(), got = 0;
	hpa_t a;

	(void)state;
	memset(seen, 0, sizeof(seen));
	while (palloc(0, PAGE_L0, &a)) {
		u64 n = (a.v - BASE) / PAGE_SIZE;

		assert_in_range(a.v, BASE, BASE + SIZE - 1);
		assert_int_equal(memmap_type(&map, a.v), MEM_RAM);
		assert_false(seen[n]);
		seen[n] = 1;
		assert_int_equal(palloc_owner(a), PAGE_L0);
		memset((void *)a.v, 0xcc, PAGE_SIZE); /* BT-04: what is handed out may be written at once */
		got += PAGE_SIZE;
	}
	assert_int_equal(got, before);
	assert_int_equal(palloc_free_bytes(), 0);
	assert_true(before > SIZE - 4 * MIB);
	for (u64 n = 0; n < SIZE / PAGE_SIZE; n++)
		if (seen[n])
			pfree(HPA(BASE + n * PAGE_SIZE), 0);
	assert_int_equal(palloc_free_bytes(), before);
}

/* Freed pages join again: a 16 MiB block that was taken apart is there afterwards. */
static void buddies_join(void **state)
{
	hpa_t big, a[64];
	unsigned n = 0;

	(void)state;
	assert_true(palloc(12, PAGE_GUEST0, &big));
	assert_int_equal(big.v % (PAGE_SIZE << 12), 0);
	assert_int_equal(palloc_owner(HPA(big.v + (PAGE_SIZE << 12) - 1)), PAGE_GUEST0);
	pfree(big, 12);
	while (n < 64 && palloc(8, PAGE_L0, &a[n]))
		n++;
	assert_false(palloc(12, PAGE_L0, &big));
	while (n--)
		pfree(a[n], 8);
	assert_true(palloc(12, PAGE_L0, &big));
}

static void too_much_is_refused(void **state)
{
	hpa_t a;

	(void)state;
	assert_false(palloc(PALLOC_ORDER_MAX, PAGE_L0, &a));
	assert_null(pages_alloc(15));
}

static void pages_are_zeroed(void **state)
{
	unsigned char *p = pages_alloc(2);

	(void)state;
	assert_non_null(p);
	for (unsigned i = 0; i < 4 * PAGE_SIZE; i++)
		assert_int_equal(p[i], 0);
}

static void owners_outside_ram(void **state)
{
	(void)state;
	assert_int_equal(palloc_owner(HPA(BASE - 1)), PAGE_ABSENT);
	assert_int_equal(palloc_owner(HPA(BASE + 4 * MIB)), PAGE_ABSENT); /* MEM_USED */
	assert_int_equal(palloc_owner(HPA(BASE + 8 * MIB)), PAGE_ABSENT); /* NVS */
	assert_int_equal(palloc_owner(HPA(1ull << 60)), PAGE_ABSENT);
	assert_int_equal(palloc_owner(HPA(BASE)), PAGE_FREE);
}

static void expect_panic_on_free(hpa_t a, unsigned order)
{
	panic_expected = true;
	if (!setjmp(panic_jump)) {
		pfree(a, order);
		fail_msg("pfree accepted %#llx order %u", (unsigned long long)a.v, order);
	}
	panic_expected = false;
}

static void double_free_is_found(void **state)
{
	hpa_t a;

	(void)state;
	assert_true(palloc(3, PAGE_L0, &a));
	pfree(a, 3);
	expect_panic_on_free(HPA(a.v + PAGE_SIZE), 0);
}

static void misaligned_free_is_found(void **state)
{
	hpa_t a;

	(void)state;
	assert_true(palloc(3, PAGE_L0, &a));
	expect_panic_on_free(HPA(a.v + PAGE_SIZE), 3);
}

/* BT-11: from a usable entry below 640 KiB, never page 0. */
static void low_page(void **state)
{
	hpa_t a;

	(void)state;
	assert_true(palloc_low_page(&a));
	assert_int_equal(a.v, 0x9e000);
	memmap_add(&map, 0x1000, 0xa0000, MEM_RESERVED);
	palloc_init(&map);
	assert_false(palloc_low_page(&a)); /* page 0 alone does not count */
	memset(&map, 0, sizeof(map));
	memmap_add(&map, 0x1234, 0x2fff, MEM_RAM);
	memmap_add(&map, 0x3000, 0x4fff, MEM_RAM);
	memmap_add(&map, BASE, BASE + SIZE, MEM_RAM);
	palloc_init(&map);
	assert_true(palloc_low_page(&a));
	assert_int_equal(a.v, 0x3000);
}

/* RAM above 4 GiB comes in later, and its free pages are never touched by the allocator itself (nothing is
 * mapped there here). */
static void high_memory_joins_later(void **state)
{
	u64 before;
	hpa_t a;

	(void)state;
	memmap_add(&map, 4 * GIB, 6 * GIB, MEM_RAM);
	palloc_init(&map);
	before = palloc_free_bytes();
	assert_true(before < SIZE);
	palloc_add_high(&map);
	assert_int_equal(palloc_free_bytes(), before + 2 * GIB);
	assert_true(palloc(PALLOC_ORDER_MAX, PAGE_GUEST0, &a));
	assert_true(a.v >= 4 * GIB);
	assert_true(palloc(PALLOC_ORDER_MAX, PAGE_GUEST0, &a));
	assert_false(palloc(PALLOC_ORDER_MAX, PAGE_GUEST0, &a));
}

static void random_use_matches_the_model(void **state)
{
	struct {
		hpa_t a;
		unsigned order;
	} held[200];
	unsigned n = 0;
	u64 free_bytes = palloc_free_bytes();

	(void)state;
	srand(2);
	for (unsigned i = 0; i < 20000; i++) {
		unsigned order = (unsigned)rand() % 7;

		if (n < ARRAY_SIZE(held) && rand() % 2 &&
		    palloc(order, (u16)(PAGE_GUEST0 + order), &held[n].a)) {
			held[n].order = order;
			free_bytes -= PAGE_SIZE << order;
			for (unsigned k = 0; k < n; k++)
				assert_true(held[k].a.v + (PAGE_SIZE << held[k].order) <= held[n].a.v ||
					    held[n].a.v + (PAGE_SIZE << order) <= held[k].a.v);
			n++;
		} else if (n) {
			unsigned k = (unsigned)rand() % n;

			assert_int_equal(palloc_owner(held[k].a), PAGE_GUEST0 + held[k].order);
			pfree(held[k].a, held[k].order);
			free_bytes += PAGE_SIZE << held[k].order;
			held[k] = held[--n];
		}
		assert_int_equal(palloc_free_bytes(), free_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(all_pages_are_free_ram_and_unique, setup),
		cmocka_unit_test_setup(buddies_join, setup),
		cmocka_unit_test_setup(too_much_is_refused, setup),
		cmocka_unit_test_setup(pages_are_zeroed, setup),
		cmocka_unit_test_setup(owners_outside_ram, setup),
		cmocka_unit_test_setup(double_free_is_found, setup),
		cmocka_unit_test_setup(misaligned_free_is_found, setup),
		cmocka_unit_test_setup(low_page, setup),
		cmocka_unit_test_setup(high_memory_joins_later, setup),
		cmocka_unit_test_setup(random_use_matches_the_model, setup),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
