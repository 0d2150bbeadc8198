/* SPDX-License-Identifier: Apache-2.0 */
/* Dropping ranges of a shadow EPT: exactly what was named goes, vCPUs inside flush, others' roots stay. */
/* clang-format off */
/* SOURCES: nested/sept.c nested/sept_root.c nested/sept_sync.c nested/watch.c nested/sept_range.c nested/ept12.c mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/ept.c mm/memmap.c */
/* clang-format on */
#include "nested/sept.h"
#include "nested/sept_root.h"
#include "tests/unit/sept_host.h"

#define L2    0x40000000ull
#define READ  EPT_QUAL_READ
#define EPTP  (EPT12_ROOT | EPTP_WALK4 | MEMTYPE_WB)
#define PAGES 32u

static struct ept ept01;
static struct sept *s;
static struct sept_root *root;

static int setup(void **state)
{
	bool flush;

	(void)state;
	guest_ram_create(&mem, RAM);
	tables_clear();
	l1mem_account(&mem);
	assert_true(ept_init(&ept01, &source, 3));
	for (unsigned i = 0; i < mem.count; i++)
		assert_true(ept_map(&ept01, mem.chunk[i].gpa, mem.chunk[i].hpa, mem.chunk[i].size,
				    RWX_WB | EPT_ACCESSED | EPT_DIRTY));
	s = sept_create(&mem, &ept01, NULL, true, ALL_EPT_CAP, PHYS_BITS);
	root = sept_enter(s, NULL, EPTP, 0, &flush);
	assert_non_null(root);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sept_leave(root, 0);
	sept_destroy(s);
	ept_destroy(&ept01);
	guest_ram_destroy(&mem);
	assert_int_equal(pages_live, 0);
	return 0;
}

static void fault(u64 addr)
{
	struct ept12_result r;

	assert_int_equal(sept_fault(s, root, 0, NGPA(addr), READ, NULL, &r), SEPT_FILLED);
}

static bool present(u64 addr)
{
	struct ept e = {.root = hpa_ptr(HPA(sept_eptp(root) & EPT_ADDR_MASK)), .max_leaf = 3};

	return ept_lookup(&e, addr).entry & EPT_RWX;
}

static void fill(void)
{
	for (u64 i = 0; i < PAGES; i++) {
		map12(L2 + i * PAGE_SIZE, (8 + i) * PAGE_SIZE, 1, RWX_WB);
		fault(L2 + i * PAGE_SIZE);
	}
	for (u64 i = 0; i < PAGES; i++)
		assert_true(present(L2 + i * PAGE_SIZE));
}

static void exactly_the_pages(void **state)
{
	(void)state;
	fill();
	sept_flush_range(s, EPTP, NGPA(L2 + 3 * PAGE_SIZE), 2 * PAGE_SIZE);
	for (u64 i = 0; i < PAGES; i++)
		assert_int_equal(present(L2 + i * PAGE_SIZE), i < 3 || i > 4);
}

/* The type and level bits of an EPTP do not matter, its address does. */
static void which_root(void **state)
{
	(void)state;
	fill();
	sept_flush_range(s, EPT12_ROOT + PAGE_SIZE, NGPA(L2), PAGE_SIZE);
	assert_true(present(L2));
	sept_flush_range(s, EPT12_ROOT, NGPA(L2), PAGE_SIZE);
	assert_false(present(L2));
}

/* A large leaf that the range touches goes whole, its neighbour stays. */
static void large_leaf(void **state)
{
	(void)state;
	map12(L2, 4 * MIB, 2, RWX_WB);
	map12(L2 + 2 * MIB, 6 * MIB, 2, RWX_WB);
	fault(L2);
	fault(L2 + 2 * MIB);
	sept_flush_range(s, EPTP, NGPA(L2 + MIB), PAGE_SIZE);
	assert_false(present(L2));
	assert_false(present(L2 + MIB));
	assert_true(present(L2 + 2 * MIB));
}

/* Ends of the address space, and lengths beyond it. */
static void edges(void **state)
{
	(void)state;
	fill();
	sept_flush_range(s, EPTP, NGPA(BIT(48)), PAGE_SIZE);
	sept_flush_range(s, EPTP, NGPA(~0ull & PAGE_MASK), ~0ull);
	sept_flush_range(s, EPTP, NGPA(BIT(48) - PAGE_SIZE), ~0ull);
	sept_flush_range(s, EPTP, NGPA(L2), 0);
	assert_true(present(L2));
	sept_flush_range(s, EPTP, NGPA(0), ~0ull);
	for (u64 i = 0; i < PAGES; i++)
		assert_false(present(L2 + i * PAGE_SIZE));
}

static void vcpus_inside(void **state)
{
	struct sept_root *again;
	bool flush;

	(void)state;
	assert_int_equal(sept_inside(s, EPTP), 1);
	assert_int_equal(sept_inside(s, EPTP + PAGE_SIZE), 0);
	again = sept_enter(s, root, EPTP, 0, &flush);
	assert_false(flush);
	sept_flush_range(s, EPTP, NGPA(L2), PAGE_SIZE);
	again = sept_enter(s, root, EPTP, 0, &flush);
	assert_ptr_equal(again, root);
	assert_true(flush);
	sept_leave(root, 0);
	assert_int_equal(sept_inside(s, EPTP), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(exactly_the_pages), TEST(which_root), TEST(large_leaf), TEST(edges), TEST(vcpus_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
