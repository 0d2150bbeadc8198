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
extern const u8 symbol_list[];

const char rodata_start[1] = "";
const u32 symbol_count = 4, symbol_first = 0x200010;
/* Two names of one address, then a function longer than a byte can tell with a name that is too long, then
 * the last one. */
#define LONG "cccccccccccccccccccccccccccccccccccccc" /* SYMBOL_MAX - 2 */
enum { A, B, C, D, CC, CCCC, CCCCC, CODES };
extern const u8 symbol_codes[CODES][2];
const u8 symbol_codes[CODES][2] = {
	{'a', 0}, {'b', 0}, {'c', 0}, {'d', 0}, {C, C + 1}, {CC, CC + 1}, {C, CCCC + 1},
};
/* clang-format off */
const u8 symbol_list[] = {
	0, 0x80 | A,
	0x10, B, 0x80 | B,
	0xb4, 0x24, CCCC, CCCC, CCCC, CCCC, CCCCC, CCCCC, CCCC, CCCC, CC, CC, CC, 0x80 | CC,
	0, 0x80 | D,
};
/* clang-format on */

static void at(u64 address, const char *name, u64 want)
{
	char found[SYMBOL_MAX];
	u64 offset = 0;

	assert_true(symbol_at(address, found, &offset));
	assert_string_equal(found, name);
	assert_int_equal(offset, want);
}

static void test_names(void **state)
{
	(void)state;
	at(0x200010, "bb", 0);
	at(0x20001f, "bb", 15);
	at(0x200020, LONG "c", 0);
	at(0x200020 + 0x1233, LONG "c", 0x1233);
	at(0x200020 + 0x1234, "d", 0);
	at(0x300000, "d", 0x300000 - 0x201254);
}

static void test_no_code(void **state)
{
	char name[SYMBOL_MAX];
	u64 offset;

	(void)state;
	assert_false(symbol_at(0, name, &offset));
	assert_false(symbol_at(0x20000f, name, &offset));
	assert_false(symbol_at((uintptr_t)rodata_start, name, &offset));
	assert_false(symbol_at(~0ull, name, &offset));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
