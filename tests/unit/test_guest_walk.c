/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page walk in all modes: addresses, access rights, exact #PF error codes, accessed and dirty bits,
 * races. The tables lie in an array; entries outside of it read as all ones. SDM "Paging".
 */
/* SOURCES: mm/guest_walk.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "hv/x86.h"
#include "mm/guest_walk.h"
#include "mm/pte.h"

#define P      1ull
#define W      2ull
#define U      4ull
#define A      0x20ull
#define D      0x40ull
#define PS     0x80ull
#define XD     BIT(63)
#define KEY(n) ((u64)(n) << 59)

/* #PF error code. */
#define E_P 1u
#define E_W 2u
#define E_U 4u
#define E_R 8u
#define E_I 16u
#define E_K 32u

#define MEMORY 0x10000ull
static u8 memory[MEMORY];
static unsigned races;             /* that many compare-exchanges still fail */
static unsigned walks_given_up_at; /* reads until the source gives up; 0: never */

static bool mem_read(void *ctx, u64 gpa, unsigned size, u64 *out)
{
	(void)ctx;
	if (walks_given_up_at && !--walks_given_up_at)
		return false;
	*out = ~0ull;
	assert_int_equal(gpa % size, 0);
	if (gpa < MEMORY)
		memcpy(out, memory + gpa, size);
	return true;
}

static bool mem_cmpxchg(void *ctx, u64 gpa, unsigned size, u64 old, u64 new)
{
	u64 now = 0;

	(void)ctx;
	if (races) {
		races--;
		return false;
	}
	assert_true(gpa < MEMORY);
	memcpy(&now, memory + gpa, size);
	if (now != old)
		return false;
	memcpy(memory + gpa, &new, size);
	return true;
}

static const struct walk_source source = {.read = mem_read, .cmpxchg = mem_cmpxchg};
static struct paging p;
static u64 out;
static struct page_fault fault;

static void put64(u64 at, u64 v)
{
	memcpy(memory + at, &v, 8);
}

static void put32(u64 at, u32 v)
{
	memcpy(memory + at, &v, 4);
}

static u64 get64(u64 at)
{
	u64 v;

	memcpy(&v, memory + at, 8);
	return v;
}

static u32 get32(u64 at)
{
	u32 v;

	memcpy(&v, memory + at, 4);
	return v;
}

static int setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	races = walks_given_up_at = 0;
	p = (struct paging){.cr0 = CR0_PE | CR0_PG | CR0_WP, .phys_bits = 40};
	return 0;
}

/* 4-level: one page of each size. 4K at linear 0x5000, 2M at 0x200000, 1G at 0x40000000. `leaf` is ORed into
 * the leaf entries. */
static void long_mode(u64 leaf)
{
	p.cr3 = 0x1000;
	p.cr4 = CR4_PAE;
	p.efer = EFER_LME | EFER_LMA | EFER_NXE;
	put64(0x1000, 0x2000 | P | W | U);
	put64(0x2000, 0x3000 | P | W | U);
	put64(0x2008, 0x1c0000000 | PS | leaf);
	put64(0x3000, 0x4000 | P | W | U);
	put64(0x3008, 0x12345600000 % BIT(40) | PS | leaf);
	put64(0x4028, 0x7777000 | leaf);
}

static void expect_ok(u64 linear, enum access a, u64 address)
{
	assert_int_equal(paging_walk(&source, &p, linear, a, &out, &fault), WALK_OK);
	assert_int_equal(out, address);
}

static void expect_fault(u64 linear, enum access a, u32 error)
{
	memset(&fault, 0xff, sizeof(fault));
	assert_int_equal(paging_walk(&source, &p, linear, a, &out, &fault), WALK_FAULT);
	assert_int_equal(fault.linear, linear);
	assert_int_equal(fault.error, error);
}

static void without_paging_linear_is_physical(void **state)
{
	(void)state;
	p.cr0 = CR0_PE;
	expect_ok(0x12345678, ACCESS_WRITE, 0x12345678);
	expect_ok(0x112345678, ACCESS_READ, 0x12345678);
}

static void four_levels_all_page_sizes(void **state)
{
	(void)state;
	long_mode(P | W | U);
	expect_ok(0x5123, ACCESS_READ, 0x7777123);
	expect_ok(0x234567, ACCESS_READ, (0x12345600000 % BIT(40)) + 0x34567);
	expect_ok(0x52345678, ACCESS_READ, 0x1d2345678);
}

static void accessed_and_dirty_are_set_as_the_cpu_does(void **state)
{
	(void)state;
	long_mode(P | W | U);
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
	assert_int_equal(get64(0x1000), 0x2000 | P | W | U | A);
	assert_int_equal(get64(0x4028), 0x7777000 | P | W | U | A);
	assert_int_equal(get64(0x2008) & (A | D), 0);
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000);
	assert_int_equal(get64(0x4028), 0x7777000 | P | W | U | A | D);
	assert_int_equal(get64(0x3000), 0x4000 | P | W | U | A); /* no D in a table's entry */
	expect_ok(0x40000000, ACCESS_WRITE, 0x1c0000000);
	assert_int_equal(get64(0x2008), 0x1c0000000 | PS | P | W | U | A | D);
}

static void a_faulting_write_sets_no_dirty_bit(void **state)
{
	(void)state;
	long_mode(P | U);
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_W);
	assert_int_equal(get64(0x4028) & D, 0);
}

static void absent_entries_at_each_level(void **state)
{
	(void)state;
	long_mode(P | W | U);
	expect_fault(0x6000, ACCESS_READ, 0);
	expect_fault(0x400000, ACCESS_WRITE, E_W);
	p.user = true;
	expect_fault(0x80000000, ACCESS_READ, E_U);
	expect_fault(0x8000000000, ACCESS_FETCH, E_U | E_I);
}

static void fetch_bit_needs_nx_or_smep(void **state)
{
	(void)state;
	long_mode(P | W | U);
	p.efer &= ~EFER_NXE;
	expect_fault(0x6000, ACCESS_FETCH, 0);
	p.cr4 |= CR4_SMEP;
	expect_fault(0x6000, ACCESS_FETCH, E_I);
}

static void no_execute(void **state)
{
	(void)state;
	long_mode(P | W | U | XD);
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
	expect_fault(0x5000, ACCESS_FETCH, E_P | E_I);
	p.efer &= ~EFER_NXE; /* now the bit is reserved */
	expect_fault(0x5000, ACCESS_READ, E_P | E_R);
	long_mode(P | W | U);
	put64(0x2000, get64(0x2000) | XD); /* of a table: for all below */
	expect_fault(0x5000, ACCESS_FETCH, E_P | E_I);
	expect_ok(0x40000000, ACCESS_FETCH, 0x1c0000000);
}

static void reserved_bits_in_long_mode(void **state)
{
	(void)state;
	long_mode(P | W | U);
	put64(0x4028, get64(0x4028) | BIT(40)); /* above the width */
	expect_fault(0x5000, ACCESS_READ, E_P | E_R);
	put64(0x4028, (0x7777000 | P | W | U) | BIT(52) | BIT(58)); /* ignored ones */
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
	put64(0x3008, get64(0x3008) | BIT(13));
	expect_fault(0x200000, ACCESS_READ, E_P | E_R);
	put64(0x3008, (0x600000 | PS | P | W | U) | BIT(12)); /* PAT */
	expect_ok(0x200000, ACCESS_READ, 0x600000);
	put64(0x2008, get64(0x2008) | BIT(29));
	expect_fault(0x40000000, ACCESS_READ, E_P | E_R);
	put64(0x1000, get64(0x1000) | PS);
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_R | E_W);
}

static void without_1g_pages_their_bit_is_reserved(void **state)
{
	(void)state;
	long_mode(P | W | U);
	p.no_page1g = true;
	expect_fault(0x40000000, ACCESS_READ, E_P | E_R);
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
}

/* user, wp, page U, page W -> allowed: read, write, fetch. Without SMEP and SMAP. */
static void user_and_write_rights(void **state)
{
	static const struct {
		bool user, wp, pu, pw, r, w, x;
	} row[] = {
		{0, 0, 0, 0, 1, 1, 1}, {0, 0, 1, 0, 1, 1, 1}, {0, 1, 0, 0, 1, 0, 1}, {0, 1, 0, 1, 1, 1, 1},
		{0, 1, 1, 0, 1, 0, 1}, {0, 1, 1, 1, 1, 1, 1}, {1, 0, 0, 1, 0, 0, 0}, {1, 0, 1, 0, 1, 0, 1},
		{1, 1, 1, 0, 1, 0, 1}, {1, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 1, 0, 0, 0},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		u32 e = E_P | (row[i].user ? E_U : 0);

		long_mode(P | (row[i].pu ? U : 0) | (row[i].pw ? W : 0));
		p.user = row[i].user;
		p.cr0 = CR0_PE | CR0_PG | (row[i].wp ? CR0_WP : 0);
		row[i].r ? expect_ok(0x5000, ACCESS_READ, 0x7777000) : expect_fault(0x5000, ACCESS_READ, e);
		row[i].w ? expect_ok(0x5000, ACCESS_WRITE, 0x7777000)
			 : expect_fault(0x5000, ACCESS_WRITE, e | E_W);
		row[i].x ? expect_ok(0x5000, ACCESS_FETCH, 0x7777000)
			 : expect_fault(0x5000, ACCESS_FETCH, e | E_I);
	}
}

static void rights_of_tables_limit_their_pages(void **state)
{
	(void)state;
	long_mode(P | W | U);
	put64(0x3000, 0x4000 | P | U);
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_W);
	put64(0x3000, 0x4000 | P | W);
	p.user = true;
	expect_fault(0x5000, ACCESS_READ, E_P | E_U);
}

/* What a walk that succeeds tells of the page. */
static void expect_page(u64 linear, u32 page)
{
	expect_ok(linear, ACCESS_READ, out);
	assert_int_equal(fault.page, page);
}

static void the_page_is_described(void **state)
{
	(void)state;
	out = 0x1234;
	p.cr0 &= ~CR0_PG;
	expect_page(0x1234, PF_USER | PF_WRITE);
	p.cr0 |= CR0_PG;
	out = 0x7777000;
	long_mode(P | W | U);
	expect_page(0x5000, PF_USER | PF_WRITE);
	long_mode(P | U | PTE_XD);
	expect_page(0x5000, PF_USER | PF_FETCH);
	long_mode(P | W | U);
	put64(0x2000, 0x3000 | P | W); /* by all levels */
	expect_page(0x5000, PF_WRITE);
}

static void smep_and_smap(void **state)
{
	(void)state;
	long_mode(P | W | U);
	p.cr4 |= CR4_SMEP | CR4_SMAP;
	expect_fault(0x5000, ACCESS_FETCH, E_P | E_I);
	expect_fault(0x5000, ACCESS_READ, E_P);
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_W);
	p.ac = true;
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
	expect_fault(0x5000, ACCESS_FETCH, E_P | E_I); /* AC is for data only */
	p.ac = false;
	p.user = true;
	expect_ok(0x5000, ACCESS_FETCH, 0x7777000);
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000);
	p.user = false;
	long_mode(P | W); /* a supervisor page: neither matters */
	p.cr4 |= CR4_SMEP | CR4_SMAP;
	expect_ok(0x5000, ACCESS_FETCH, 0x7777000);
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000);
}

static void protection_keys(void **state)
{
	(void)state;
	long_mode(P | W | U | KEY(5));
	p.pkru = 3u << 10;
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000); /* CR4.PKE is off */
	p.cr4 |= CR4_PKE;
	expect_fault(0x5000, ACCESS_READ, E_P | E_K);
	expect_ok(0x5000, ACCESS_FETCH, 0x7777000);
	p.pkru = 2u << 10; /* no writes */
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_W | E_K);
	p.cr0 &= ~CR0_WP;
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000);
	p.user = true;
	expect_fault(0x5000, ACCESS_WRITE, E_P | E_W | E_U | E_K);
	p.user = false;
	p.pkru = 1u << 10;
	long_mode(P | W | KEY(5)); /* keys are for user pages */
	p.cr4 |= CR4_PKE;
	expect_ok(0x5000, ACCESS_READ, 0x7777000);
}

/* 32-bit: page directory at 0x1000, table at 0x2000 (linear 0x5000 -> 0x345000), 4M page at linear 0x400000.
 */
static void mode_32(u64 cr4)
{
	p.cr3 = 0x1000;
	p.cr4 = cr4;
	put32(0x1000, 0x2000 | P | W | U);
	put32(0x1004, 0x00c00000 | PS | P | W | U);
	put32(0x2014, 0x345000 | P | W | U);
}

static void paging_32_bit(void **state)
{
	(void)state;
	mode_32(CR4_PSE);
	expect_ok(0x5678, ACCESS_WRITE, 0x345678);
	assert_int_equal(get32(0x2014), 0x345000 | P | W | U | A | D);
	assert_int_equal(get32(0x2010), 0); /* the neighbour */
	expect_ok(0x412345, ACCESS_READ, 0xc12345);
	assert_int_equal(get32(0x1004), 0xc00000 | PS | P | W | U | A);
	expect_ok(0xffffffff00005678, ACCESS_READ, 0x345678); /* addresses are 32 bits wide */
	expect_fault(0x800000, ACCESS_FETCH, 0);
	p.efer = EFER_NXE; /* no XD in 32-bit paging */
	expect_fault(0x800000, ACCESS_FETCH, 0);
}

static void pse36_addresses(void **state)
{
	(void)state;
	mode_32(CR4_PSE);
	put32(0x1004, 0x00c00000 | 0xa5u << 13 | PS | P | W | U);
	expect_ok(0x412345, ACCESS_READ, 0xa500c12345);
	p.phys_bits = 36; /* bits 20:17 of the entry are now reserved */
	expect_fault(0x412345, ACCESS_READ, E_P | E_R);
	put32(0x1004, 0x00c00000 | 0x5u << 13 | PS | P | W | U);
	expect_ok(0x412345, ACCESS_READ, 0x500c12345);
	p.phys_bits = 46; /* no more than 40 */
	put32(0x1004, 0x00c00000 | BIT32(21) | PS | P | W | U);
	expect_fault(0x412345, ACCESS_READ, E_P | E_R);
	p.phys_bits = 32;
	put32(0x1004, 0x00c00000 | BIT32(13) | PS | P | W | U);
	expect_fault(0x412345, ACCESS_READ, E_P | E_R);
}

static void without_pse_the_bit_is_ignored(void **state)
{
	(void)state;
	mode_32(0);
	put32(0x1004, 0x2000 | PS | P | W | U);
	expect_ok(0x405678, ACCESS_READ, 0x345678);
}

static void pae(void **state)
{
	(void)state;
	p.cr4 = CR4_PAE;
	p.efer = EFER_NXE;
	p.cr3 = ~0ull; /* must not be looked at */
	p.pdpte[1] = 0x3000 | P;
	put64(0x3000, 0x4000 | P | W | U);
	put64(0x3008, 0x2345600000 | PS | P | W | U);
	put64(0x4028, 0x7777777000 | P | W | U | XD);
	expect_ok(0x40005123, ACCESS_WRITE, 0x7777777123);
	assert_int_equal(get64(0x4028), 0x7777777000 | P | W | U | XD | A | D);
	expect_ok(0x40234567, ACCESS_READ, 0x2345634567);
	expect_fault(0x40005000, ACCESS_FETCH, E_P | E_I);
	expect_fault(0x5000, ACCESS_READ, 0);
	put64(0x4028, 0x7777777000 | P | W | U | BIT(52)); /* reserved here, ignored in long mode */
	expect_fault(0x40005000, ACCESS_READ, E_P | E_R);
	p.cr4 |= CR4_PKE;
	p.pkru = ~0u; /* keys exist in long mode only */
	expect_ok(0x40234567, ACCESS_READ, 0x2345634567);
}

static void tables_outside_of_memory_read_as_ones(void **state)
{
	(void)state;
	long_mode(P | W | U);
	p.cr3 = MEMORY;
	expect_fault(0x5000, ACCESS_READ, E_P | E_R);
	mode_32(CR4_PSE);
	p.efer = 0;
	p.cr3 = MEMORY;
	expect_fault(0x5000, ACCESS_READ, E_P | E_R);
}

static void a_lost_race_is_walked_again(void **state)
{
	(void)state;
	long_mode(P | W | U);
	races = 3;
	expect_ok(0x5000, ACCESS_WRITE, 0x7777000);
	assert_int_equal(races, 0);
	assert_true(get64(0x4028) & D);
}

/* A guest that changes the entry for ever gets a fault; L0 does not spin. */
static void endless_races_end_in_a_fault(void **state)
{
	(void)state;
	long_mode(P | W | U);
	races = ~0u;
	expect_fault(0x5000, ACCESS_WRITE, E_W);
}

static void the_source_may_give_up(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 4; n++) {
		long_mode(P | W | U);
		walks_given_up_at = n;
		assert_int_equal(paging_walk(&source, &p, 0x5000, ACCESS_READ, &out, &fault), WALK_GIVEN_UP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_paging_linear_is_physical, setup),
		cmocka_unit_test_setup(four_levels_all_page_sizes, setup),
		cmocka_unit_test_setup(accessed_and_dirty_are_set_as_the_cpu_does, setup),
		cmocka_unit_test_setup(a_faulting_write_sets_no_dirty_bit, setup),
		cmocka_unit_test_setup(absent_entries_at_each_level, setup),
		cmocka_unit_test_setup(fetch_bit_needs_nx_or_smep, setup),
		cmocka_unit_test_setup(no_execute, setup),
		cmocka_unit_test_setup(reserved_bits_in_long_mode, setup),
		cmocka_unit_test_setup(without_1g_pages_their_bit_is_reserved, setup),
		cmocka_unit_test_setup(user_and_write_rights, setup),
		cmocka_unit_test_setup(rights_of_tables_limit_their_pages, setup),
		cmocka_unit_test_setup(the_page_is_described, setup),
		cmocka_unit_test_setup(smep_and_smap, setup),
		cmocka_unit_test_setup(protection_keys, setup),
		cmocka_unit_test_setup(paging_32_bit, setup),
		cmocka_unit_test_setup(pse36_addresses, setup),
		cmocka_unit_test_setup(without_pse_the_bit_is_ignored, setup),
		cmocka_unit_test_setup(pae, setup),
		cmocka_unit_test_setup(tables_outside_of_memory_read_as_ones, setup),
		cmocka_unit_test_setup(a_lost_race_is_walked_again, setup),
		cmocka_unit_test_setup(endless_races_end_in_a_fault, setup),
		cmocka_unit_test_setup(the_source_may_give_up, setup),
	};

	return cmocka_run_group_tests_name("guest_walk", tests, NULL, NULL);
}
