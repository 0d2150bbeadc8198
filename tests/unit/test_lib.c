/* SPDX-License-Identifier: Apache-2.0 */
/* L0's own string functions against the C library's, under other names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define memcpy  our_memcpy
#define memmove our_memmove
#define memset  our_memset
#define memcmp  our_memcmp
#define strlen  our_strlen
#define strnlen our_strnlen
#define strcmp  our_strcmp
#define strncmp our_strncmp
#include "hv/lib.c"
#undef memcpy
#undef memmove
#undef memset
#undef memcmp
#undef strlen
#undef strnlen
#undef strcmp
#undef strncmp

static int sign(int v)
{
	return (v > 0) - (v < 0);
}

static void moving(void **state)
{
	unsigned char a[64], b[64];

	(void)state;
	for (unsigned from = 0; from < 20; from++) {
		for (unsigned to = 0; to < 20; to++) {
			for (unsigned n = 0; n < 40; n++) {
				for (unsigned i = 0; i < sizeof(a); i++)
					a[i] = b[i] = (unsigned char)i;
				assert_ptr_equal(our_memmove(a + to, a + from, n), a + to);
				memmove(b + to, b + from, n);
				assert_memory_equal(a, b, sizeof(a));
			}
		}
	}
}

static void copying_and_setting(void **state)
{
	unsigned char a[64], b[64], from[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 3);
	for (unsigned at = 0; at < 9; at++) {
		for (unsigned n = 0; n < 50; n++) {
			memset(a, 1, sizeof(a));
			memset(b, 1, sizeof(b));
			assert_ptr_equal(our_memcpy(a + at, from, n), a + at);
			memcpy(b + at, from, n);
			assert_memory_equal(a, b, sizeof(a));
			assert_ptr_equal(our_memset(a + at, 0x1ab, n), a + at);
			memset(b + at, 0x1ab, n);
			assert_memory_equal(a, b, sizeof(a));
		}
	}
}

static void comparing(void **state)
{
	static const char *const words[] = {"", "a", "b", "ab", "abc", "abd", "\xff", "a\xff"};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		assert_int_equal(our_strlen(words[i]), strlen(words[i]));
		assert_int_equal(our_strnlen(words[i], 2), strnlen(words[i], 2));
		for (unsigned k = 0; k < ARRAY_SIZE(words); k++) {
			assert_int_equal(sign(our_strcmp(words[i], words[k])),
					 sign(strcmp(words[i], words[k])));
			assert_int_equal(sign(our_strncmp(words[i], words[k], 2)),
					 sign(strncmp(words[i], words[k], 2)));
		}
	}
	assert_int_equal(sign(our_memcmp("\x01", "\xff", 1)), -1);
	assert_int_equal(our_memcmp("a\0b", "a\0b", 3), 0);
	assert_int_equal(our_strncmp("x", "y", 0), 0);
}

static void str_copy_always_ends(void **state)
{
	char b[4];

	(void)state;
	assert_true(str_copy(b, sizeof(b), "abc"));
	assert_string_equal(b, "abc");
	assert_false(str_copy(b, sizeof(b), "abcd"));
	assert_string_equal(b, "abc");
	assert_true(str_copy(b, 1, ""));
	assert_string_equal(b, "");
	b[0] = 'z';
	assert_false(str_copy(b, 0, "a"));
	assert_int_equal(b[0], 'z');
}

static void mul_div_keeps_all_bits(void **state)
{
	(void)state;
	assert_int_equal(mul_div(1000000, 2400000000, 1000000), 2400000000);
	assert_int_equal(mul_div(UINT64_MAX, UINT64_MAX, UINT64_MAX), UINT64_MAX);
	assert_int_equal(mul_div(UINT64_MAX, 10, 20), UINT64_MAX / 2);
	assert_int_equal(mul_div(UINT64_MAX, 2, 1), UINT64_MAX); /* does not fit */
	assert_int_equal(mul_div(5, 5, 0), UINT64_MAX);
	srand(5);
	for (unsigned i = 0; i < 1000; i++) {
		u64 a = (u64)rand() << 20, b = (u64)rand() << 10, c = (u64)rand() + 1;

		assert_int_equal(mul_div(a, b, c << 20), (u64)((unsigned __int128)a * b / (c << 20)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moving),
		cmocka_unit_test(copying_and_setting),
		cmocka_unit_test(comparing),
		cmocka_unit_test(str_copy_always_ends),
		cmocka_unit_test(mul_div_keeps_all_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
