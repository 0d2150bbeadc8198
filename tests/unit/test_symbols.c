/* SPDX-License-Identifier: Apache-2.0 */
/* Names of code addresses, from a table as tools/symbols makes it. */
/* SOURCES: hv/symbols.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "hv/symbols.h"

extern const char rodata_start[1];
extern const u32 symbol_count, symbol_first;
extern const u8 symbol_list[19];

const char rodata_start[1] = "";
const u32 symbol_count = 4, symbol_first = 0x200010;
/* Two names of one address, then a function longer than a byte can tell, then the last one. */
const u8 symbol_list[19] = "\0\0a\0\x10\0bb\0\x34\x12"
			   "ccc\0\0\0d";

static void at(u64 address, const char *name, u64 want)
{
	u64 offset = 0;

	assert_string_equal(symbol_at(address, &offset), name);
	assert_int_equal(offset, want);
}

static void test_names(void **state)
{
	(void)state;
	at(0x200010, "bb", 0);
	at(0x20001f, "bb", 15);
	at(0x200020, "ccc", 0);
	at(0x200020 + 0x1233, "ccc", 0x1233);
	at(0x200020 + 0x1234, "d", 0);
	at(0x300000, "d", 0x300000 - 0x201254);
}

static void test_no_code(void **state)
{
	u64 offset;

	(void)state;
	assert_null(symbol_at(0, &offset));
	assert_null(symbol_at(0x20000f, &offset));
	assert_null(symbol_at((uintptr_t)rodata_start, &offset));
	assert_null(symbol_at(~0ull, &offset));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
