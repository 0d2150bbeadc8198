/* SPDX-License-Identifier: Apache-2.0 */
/* MSR and I/O bitmaps: the hardware's layout bit by bit, ranges, wrap, merging. SDM "MSR-Bitmap Address",
 * "I/O-Bitmap Addresses". */
/* SOURCES: hv/bitmap.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "hv/bitmap.h"

static u8 msr[MSR_BITMAP_SIZE], io[IO_BITMAP_SIZE];

static int setup(void **state)
{
	(void)state;
	memset(msr, 0, sizeof(msr));
	memset(io, 0, sizeof(io));
	return 0;
}

static unsigned bits_set(const u8 *p, size_t n)
{
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (unsigned)__builtin_popcount(p[i]);
	return sum;
}

/* Exactly one bit, where the SDM has it. */
static void msr_bits_stand_where_the_cpu_looks(void **state)
{
	static const struct {
		u32 msr;
		enum msr_access access;
		unsigned byte, bit;
	} row[] = {
		{0, MSR_ACCESS_READ, 0, 0},
		{0x1b, MSR_ACCESS_READ, 3, 3},
		{0x1fff, MSR_ACCESS_READ, 1023, 7},
		{0xc0000080, MSR_ACCESS_READ, 1024 + 16, 0},
		{0xc0001fff, MSR_ACCESS_READ, 2047, 7},
		{0x10, MSR_ACCESS_WRITE, 2048 + 2, 0},
		{0xc0000000, MSR_ACCESS_WRITE, 3072, 0},
		{0xc0001fff, MSR_ACCESS_WRITE, 4095, 7},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		memset(msr, 0, sizeof(msr));
		assert_false(msr_bitmap_test(msr, row[i].msr, row[i].access));
		assert_true(msr_bitmap_set(msr, row[i].msr, row[i].access, true));
		assert_int_equal(msr[row[i].byte], 1 << row[i].bit);
		assert_int_equal(bits_set(msr, sizeof(msr)), 1);
		assert_true(msr_bitmap_test(msr, row[i].msr, row[i].access));
		assert_false(msr_bitmap_test(msr, row[i].msr, row[i].access ^ MSR_ACCESS_BOTH));
		assert_true(msr_bitmap_set(msr, row[i].msr, MSR_ACCESS_BOTH, false));
		assert_int_equal(bits_set(msr, sizeof(msr)), 0);
	}
}

static void msrs_outside_are_always_intercepted(void **state)
{
	static const u32 outside[] = {0x2000, 0x40000000, 0xbfffffff, 0xc0002000, 0xffffffff};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(outside); i++) {
		assert_true(msr_bitmap_test(msr, outside[i], MSR_ACCESS_READ));
		assert_true(msr_bitmap_test(msr, outside[i], MSR_ACCESS_WRITE));
		assert_false(msr_bitmap_set(msr, outside[i], MSR_ACCESS_BOTH, false));
	}
	assert_int_equal(bits_set(msr, sizeof(msr)), 0);
}

static void io_bits_cover_all_bytes_of_an_access(void **state)
{
	(void)state;
	io_bitmap_set(io, 0x3f8, 8, true);
	assert_int_equal(io[0x3f8 / 8], 0xff);
	assert_int_equal(bits_set(io, sizeof(io)), 8);
	assert_false(io_bitmap_test(io, 0x3f7, 1));
	assert_true(io_bitmap_test(io, 0x3f7, 2));
	assert_true(io_bitmap_test(io, 0x3f5, 4));
	assert_false(io_bitmap_test(io, 0x3f4, 4));
	assert_true(io_bitmap_test(io, 0x3ff, 1));
	assert_false(io_bitmap_test(io, 0x400, 4));
	io_bitmap_set(io, 0x3f9, 6, false);
	assert_int_equal(io[0x3f8 / 8], 0x81);
}

static void io_bitmap_b_follows_a(void **state)
{
	(void)state;
	io_bitmap_set(io, 0x8000, 1, true);
	assert_int_equal(io[4096], 1);
	assert_true(io_bitmap_test(io, 0x7ffd, 4));
	assert_false(io_bitmap_test(io, 0x7ffc, 4));
}

/* SDM: an access that wraps around the port space exits whatever the bitmaps say. */
static void a_wrapping_access_is_always_intercepted(void **state)
{
	(void)state;
	assert_false(io_bitmap_test(io, 0xffff, 1));
	assert_true(io_bitmap_test(io, 0xffff, 2));
	assert_true(io_bitmap_test(io, 0xfffd, 4));
	assert_false(io_bitmap_test(io, 0xfffc, 4));
	io_bitmap_set(io, 0xfffe, 100, true);
	assert_int_equal(bits_set(io, sizeof(io)), 2);
	assert_int_equal(io[8191], 0xc0);
}

static void merging_only_adds(void **state)
{
	u8 a[4096], b[4096], out[4096];

	(void)state;
	for (unsigned i = 0; i < 4096; i++) {
		a[i] = (u8)(i * 37);
		b[i] = (u8)(i * 101 >> 3);
	}
	bitmap_merge(out, a, b, sizeof(out));
	for (unsigned i = 0; i < 4096; i++)
		assert_int_equal(out[i], a[i] | b[i]);
	bitmap_merge(a, a, b, sizeof(a)); /* in place */
	assert_memory_equal(a, out, sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(msr_bits_stand_where_the_cpu_looks, setup),
		cmocka_unit_test_setup(msrs_outside_are_always_intercepted, setup),
		cmocka_unit_test_setup(io_bits_cover_all_bytes_of_an_access, setup),
		cmocka_unit_test_setup(io_bitmap_b_follows_a, setup),
		cmocka_unit_test_setup(a_wrapping_access_is_always_intercepted, setup),
		cmocka_unit_test_setup(merging_only_adds, setup),
	};

	return cmocka_run_group_tests_name("bitmap", tests, NULL, NULL);
}
