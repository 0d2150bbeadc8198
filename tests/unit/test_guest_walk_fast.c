/* SPDX-License-Identifier: Apache-2.0 */
/* The fast walk may say "unknown" whenever it likes; when it answers, the exact walk says the same and
 * changes no entry. */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "hv/x86.h"
#include "mm/guest_walk.h"
#include "tests/unit/guest_ram.h"

#define TABLES 0x110000u /* four pages: one table a level, then the page */

static struct l1mem mem;
static bool changed;

static bool read_entry(void *ctx, u64 gpa, unsigned size, u64 *out)
{
	(void)ctx;
	*out = ~0ull;
	guest_read(&mem, GPA(gpa), out, size);
	return true;
}

static bool change_entry(void *ctx, u64 gpa, unsigned size, u64 old, u64 new)
{
	(void)ctx, (void)gpa, (void)size, (void)old, (void)new;
	changed = true;
	return true;
}

static const struct walk_source source = {.read = read_entry, .cmpxchg = change_entry};

static int setup(void **state)
{
	(void)state;
	guest_ram_create(&mem, 8 * MIB);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guest_ram_destroy(&mem);
	return 0;
}

/* A chain of tables for linear address 0 with good entries, two random bits turned over. */
static void make_tables(void)
{
	for (unsigned level = 0; level < 4; level++) {
		u64 entry = (TABLES + (level + 1) * PAGE_SIZE) | 0x63;

		if (rand() % 8 == 0 && (level == 1 || level == 2))
			entry = 0xe3;
		for (int flips = rand() % 3; flips > 0; flips--)
			entry ^= BIT((unsigned)rand() % 64);
		guest_write(&mem, GPA(TABLES + level * PAGE_SIZE), &entry, 8);
	}
}

static struct paging random_paging(void)
{
	return (struct paging){.cr0 = CR0_PG | CR0_PE | (rand() % 2 ? CR0_WP : 0),
			       .cr3 = TABLES,
			       .cr4 = CR4_PAE | (rand() % 2 ? CR4_SMAP : 0) | (rand() % 2 ? CR4_SMEP : 0),
			       .efer = EFER_LMA | EFER_LME | (rand() % 2 ? EFER_NXE : 0),
			       .no_page1g = rand() % 4 == 0,
			       .user = rand() % 4 == 0,
			       .ac = rand() % 2,
			       .phys_bits = 40};
}

static void an_answer_is_the_exact_one(void **state)
{
	static const enum access kinds[] = {ACCESS_READ, ACCESS_WRITE, ACCESS_FETCH};
	unsigned answers = 0;

	(void)state;
	srand(1);
	for (unsigned i = 0; i < 200000; i++) {
		enum access a = kinds[(unsigned)rand() % 3];
		struct paging p = random_paging();
		struct page_fault fault;
		gpa_t fast, exact;
		u64 linear = (u64)rand() & 0xfff;

		make_tables();
		if (!guest_walk_fast(&mem, &p, linear, a, &fast))
			continue;
		answers++;
		changed = false;
		assert_int_equal(paging_walk(&source, &p, linear, a, &exact.v, &fault), WALK_OK);
		assert_int_equal(fast.v, exact.v);
		assert_false(changed);
	}
	assert_true(answers > 2000);
}

static void the_usual_case_is_answered(void **state)
{
	struct paging p = {.cr0 = CR0_PG | CR0_PE | CR0_WP,
			   .cr3 = TABLES,
			   .cr4 = CR4_PAE | CR4_SMAP | CR4_SMEP,
			   .efer = EFER_LMA | EFER_LME | EFER_NXE,
			   .phys_bits = 40};
	gpa_t out;

	(void)state;
	for (unsigned level = 0; level < 4; level++) {
		u64 entry = (TABLES + (level + 1) * PAGE_SIZE) | 0x63;

		guest_write(&mem, GPA(TABLES + level * PAGE_SIZE), &entry, 8);
	}
	assert_true(guest_walk_fast(&mem, &p, 0x123, ACCESS_WRITE, &out));
	assert_int_equal(out.v, TABLES + 4 * PAGE_SIZE + 0x123);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_the_exact_one),
		cmocka_unit_test(the_usual_case_is_answered),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
