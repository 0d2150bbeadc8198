/* SPDX-License-Identifier: Apache-2.0 */
/* What a place whose key is off becomes: one NOP of exactly its length. */
/* SOURCES: hv/static_key.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "hv/static_key.h"

/* Of the image; static_keys_set is not called here. */
char image_start[1], rodata_start[1];
const struct static_site static_key_start[1], static_key_end[1];
void panic(const char *fmt, ...);
void panic(const char *fmt, ...)
{
	fail_msg("%s", fmt);
}

static void test_nops(void **state)
{
	static const char *const want[] = {"\x90", "\x66\x90", "\x0f\x1f\x00", "\x0f\x1f\x40\x00",
					   "\x0f\x1f\x44\x00\x00"};

	(void)state;
	for (u16 length = 1; length <= STATIC_SITE_MAX; length++) {
		u8 nops[STATIC_SITE_MAX + 1];

		memset(nops, 0xcc, sizeof(nops));
		assert_int_equal(static_site_nops(&(struct static_site){.length = length}, nops), length);
		assert_memory_equal(nops, want[length - 1], length);
		assert_int_equal(nops[length], 0xcc);
	}
}

static void test_no_site(void **state)
{
	u8 nops[STATIC_SITE_MAX];

	(void)state;
	assert_int_equal(static_site_nops(&(struct static_site){.length = 0}, nops), 0);
	assert_int_equal(static_site_nops(&(struct static_site){.length = STATIC_SITE_MAX + 1}, nops), 0);
	assert_int_equal(static_site_nops(&(struct static_site){.length = 3, .key = STATIC_KEYS}, nops), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_nops), cmocka_unit_test(test_no_site)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
