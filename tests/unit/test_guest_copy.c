/* SPDX-License-Identifier: Apache-2.0 */
/* Guest memory access: all or nothing, across chunks, never outside of the guest's RAM. */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "hv/x86.h"
#include "tests/unit/guest_ram.h"

static struct l1mem mem;

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

static void what_is_written_is_read(void **state)
{
	static u8 in[4 * MIB], out[sizeof(in)];

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (u8)(i * 31 + (i >> 12));
	/* Over two chunk borders, at odd addresses. */
	assert_true(guest_write(&mem, GPA(MIB + 3), in, sizeof(in)));
	assert_true(guest_read(&mem, GPA(MIB + 3), out, sizeof(out)));
	assert_memory_equal(in, out, sizeof(in));
	assert_true(guest_zero(&mem, GPA(2 * MIB - 1), 3 * MIB));
	assert_true(guest_read(&mem, GPA(MIB + 3), out, sizeof(out)));
	memset(in + MIB - 4, 0, 3 * MIB);
	assert_memory_equal(in, out, sizeof(in));
}

static void small_sizes_copy_exactly(void **state)
{
	(void)state;
	for (unsigned n = 0; n <= 17; n++) {
		u8 in[17], out[17];

		memset(in, 0xc3, sizeof(in));
		memset(out, 0x11, sizeof(out));
		assert_true(guest_zero(&mem, GPA(2 * MIB - 32), 64));
		assert_true(guest_write(&mem, GPA(2 * MIB - 5), in, n));
		assert_true(guest_read(&mem, GPA(2 * MIB - 5), out, n));
		for (unsigned i = 0; i < 17; i++)
			assert_int_equal(out[i], i < n ? 0xc3 : 0x11);
		assert_true(guest_read(&mem, GPA(2 * MIB - 5 + n), out, 1));
		assert_int_equal(out[0], 0);
	}
}

static void outside_of_ram_nothing_is_touched(void **state)
{
	u8 buf[64], same[64];

	(void)state;
	memset(buf, 0x77, sizeof(buf));
	memset(same, 0x77, sizeof(same));
	assert_false(guest_read(&mem, GPA(8 * MIB - 10), buf, 20));
	assert_memory_equal(buf, same, sizeof(buf));
	assert_false(guest_write(&mem, GPA(8 * MIB - 10), buf, 20));
	assert_false(guest_zero(&mem, GPA(8 * MIB - 10), 20));
	assert_true(guest_read(&mem, GPA(8 * MIB - 10), buf, 10));
	assert_int_equal(buf[0] | buf[9], 0);
	/* Into the video hole, over the end of the address space, and sizes that would wrap. */
	assert_false(guest_write(&mem, GPA(0x9fff8), same, 16));
	assert_false(guest_read(&mem, GPA(~0ull - 3), buf, 8));
	assert_false(guest_read(&mem, GPA(0), buf, ~0ull));
	assert_false(guest_read(&mem, GPA(1), buf, ~0ull));
}

static void compare_exchange_works_once(void **state)
{
	u64 v;

	(void)state;
	assert_true(guest_cmpxchg64(&mem, GPA(0x1008), 0, 5));
	assert_false(guest_cmpxchg64(&mem, GPA(0x1008), 0, 6));
	assert_true(guest_read64(&mem, GPA(0x1008), &v));
	assert_int_equal(v, 5);
	assert_true(guest_cmpxchg32(&mem, GPA(0x100c), 0, 7));
	assert_false(guest_cmpxchg32(&mem, GPA(0x100c), 0, 7));
	assert_true(guest_read64(&mem, GPA(0x1008), &v));
	assert_int_equal(v, 5 | 7ull << 32);
	assert_true(guest_and64(&mem, GPA(0x1008), ~4ull));
	assert_true(guest_read64(&mem, GPA(0x1008), &v));
	assert_int_equal(v, 1 | 7ull << 32);
}

static void atomic_accesses_must_be_aligned_ram(void **state)
{
	u64 v;

	(void)state;
	assert_false(guest_read64(&mem, GPA(0x1004), &v));
	assert_false(guest_cmpxchg64(&mem, GPA(0x1001), 0, 1));
	assert_false(guest_cmpxchg32(&mem, GPA(0x1002), 0, 1));
	assert_false(guest_read64(&mem, GPA(8 * MIB), &v));
	assert_false(guest_cmpxchg64(&mem, GPA(0xa0000), 0, 1));
	assert_false(guest_cmpxchg32(&mem, GPA(8 * MIB), 0, 1));
	assert_false(guest_and64(&mem, GPA(0x1001), 0));
	assert_false(guest_and64(&mem, GPA(8 * MIB), 0));
}

/* --- linear: 4 KiB pages, 32-bit paging: page directory at 0x1000, one table at 0x2000 for the first 4 MiB
 * --- */

static struct paging paging(void)
{
	return (struct paging){.cr0 = CR0_PG | CR0_PE | CR0_WP, .cr3 = 0x1000, .phys_bits = 36};
}

static void map(u32 linear, u32 entry)
{
	u32 pde = 0x2000 | 7;

	assert_true(guest_write(&mem, GPA(0x1000), &pde, 4));
	assert_true(guest_write(&mem, GPA(0x2000 + (linear >> 12) * 4), &entry, 4));
}

static void linear_copies_cross_pages(void **state)
{
	struct paging p = paging();
	struct page_fault f;
	u8 in[6000], out[6000];
	bool mmio;

	(void)state;
	map(0x10000, 0x300000 | 3);
	map(0x11000, 0x500000 | 3);
	memset(in, 0xab, sizeof(in));
	assert_true(guest_write_linear(&mem, &p, 0x10800, in, sizeof(in), &f, &mmio));
	assert_true(guest_read_linear(&mem, &p, 0x10800, out, sizeof(out), ACCESS_READ, &f, &mmio));
	assert_memory_equal(in, out, sizeof(in));
	assert_true(guest_read(&mem, GPA(0x300800), out, 2048));
	assert_memory_equal(in, out, 2048);
	assert_true(guest_read(&mem, GPA(0x500000), out, 3952));
	assert_memory_equal(in, out, 3952);
}

static void a_write_that_faults_later_writes_nothing(void **state)
{
	struct paging p = paging();
	struct page_fault f = {0};
	u8 in[32], out[16];
	bool mmio;

	(void)state;
	map(0x10000, 0x300000 | 3);
	map(0x11000, 0x500000 | 1); /* read-only */
	memset(in, 0xab, sizeof(in));
	assert_false(guest_write_linear(&mem, &p, 0x10ff0, in, 32, &f, &mmio));
	assert_false(mmio);
	assert_int_equal(f.linear, 0x11000);
	assert_int_equal(f.error, 3);
	assert_true(guest_read(&mem, GPA(0x300ff0), out, 16));
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(out[i], 0);
}

static void device_memory_is_told_apart_from_faults(void **state)
{
	struct paging p = paging();
	struct page_fault f = {.linear = 1, .error = 99};
	u8 buf[32] = {0};
	bool mmio;

	(void)state;
	map(0x10000, 0x300000 | 3);
	map(0x11000, 0xfee00000 | 3);
	assert_false(guest_read_linear(&mem, &p, 0x11020, buf, 4, ACCESS_READ, &f, &mmio));
	assert_true(mmio);
	assert_false(guest_write_linear(&mem, &p, 0x10ff0, buf, 32, &f, &mmio));
	assert_true(mmio);
	assert_int_equal(f.error, 99);
	assert_false(guest_read_linear(&mem, &p, 0x12000, buf, 4, ACCESS_FETCH, &f, &mmio));
	assert_false(mmio);
	assert_int_equal(f.linear, 0x12000);
}

static void linear_addresses_wrap_at_4_gib(void **state)
{
	struct paging p = paging();
	struct page_fault f;
	u32 pde = 0x3000 | 3, pte = 0x400000 | 3;
	u8 in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8];
	bool mmio;

	(void)state;
	map(0, 0x600000 | 3);
	assert_true(guest_write(&mem, GPA(0x1000 + 1023 * 4), &pde, 4));
	assert_true(guest_write(&mem, GPA(0x3000 + 1023 * 4), &pte, 4));
	assert_true(guest_write_linear(&mem, &p, 0xfffffffc, in, 8, &f, &mmio));
	assert_true(guest_read(&mem, GPA(0x400ffc), out, 4));
	assert_true(guest_read(&mem, GPA(0x600000), out + 4, 4));
	assert_memory_equal(in, out, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(small_sizes_copy_exactly, setup, teardown),
		cmocka_unit_test_setup_teardown(outside_of_ram_nothing_is_touched, setup, teardown),
		cmocka_unit_test_setup_teardown(compare_exchange_works_once, setup, teardown),
		cmocka_unit_test_setup_teardown(atomic_accesses_must_be_aligned_ram, setup, teardown),
		cmocka_unit_test_setup_teardown(linear_copies_cross_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(a_write_that_faults_later_writes_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(device_memory_is_told_apart_from_faults, setup, teardown),
		cmocka_unit_test_setup_teardown(linear_addresses_wrap_at_4_gib, setup, teardown),
	};

	return cmocka_run_group_tests_name("guest_copy", tests, NULL, NULL);
}
