/* SPDX-License-Identifier: Apache-2.0 */
/* format() against the C library's snprintf, and log lines. */
/* SOURCES: hv/print.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "hv/console.h"
#include "hv/print.h"

static char console[4096];
static size_t console_used;

void console_write(const char *s, size_t n)
{
	assert_true(console_used + n < sizeof(console));
	memcpy(console + console_used, s, n);
	console_used += n;
	console[console_used] = '\0';
}

#define SAME(...)                                                                                            \
	do {                                                                                                 \
		char ours[128], theirs[128];                                                                 \
		int a = format(ours, sizeof(ours), __VA_ARGS__),                                             \
		    b = snprintf(theirs, sizeof(theirs), __VA_ARGS__);                                       \
		assert_string_equal(ours, theirs);                                                           \
		assert_int_equal(a, b);                                                                      \
	} while (0)

static void as_the_c_library(void **state)
{
	(void)state;
	SAME("plain");
	SAME("%%");
	SAME("%d %d %d", 0, -1, 2147483647);
	SAME("%d", -2147483647 - 1);
	SAME("%ld %lld", -1l, -9223372036854775807ll - 1);
	SAME("%u %lu %llu", 4294967295u, 18446744073709551615ul, 1ull);
	SAME("%x %X %#x %#lx", 0xdeadbeef, 0xdeadbeef, 0x12, 0x123456789abcdeful);
	SAME("%08x|%8x|%-8x|%3x", 0xbeef, 0xbeef, 0xbeef, 0xbeef);
	SAME("%#010x|%05d|%-5d|%5d", 0xbeef, -42, -42, -42);
	SAME("%016lx", 0x1234ul);
	SAME("%s|%10s|%-10s|%.2s|%.*s", "abc", "abc", "abc", "abc", 1, "abc");
	SAME("%c%c", 'a', 'b');
	SAME("%zu", (size_t)77);
	SAME("%p", (void *)0x1000);
}

static void a_short_buffer_ends_with_nul(void **state)
{
	char b[8];

	(void)state;
	memset(b, 'x', sizeof(b));
	assert_int_equal(format(b, 4, "%s", "abcdefgh"), 8);
	assert_string_equal(b, "abc");
	assert_int_equal(b[4], 'x');
	assert_int_equal(format(NULL, 0, "%d", 12345), 5);
}

static void null_strings_and_unknown_conversions(void **state)
{
	char b[32];
	const char *volatile none = NULL, *volatile odd = "%q%";

	(void)state;
	format(b, sizeof(b), "%s", none);
	assert_string_equal(b, "(null)");
#pragma GCC diagnostic ignored "-Wformat-security"
	assert_int_equal(format(b, sizeof(b), odd), 1);
	assert_string_equal(b, "q");
}

static void log_lines(void **state)
{
	char big[2000];

	(void)state;
	log_level = LOG_WARN;
	log_info("not shown");
	assert_int_equal(console_used, 0);
	log_warn("guest %s ended: exit %d", "a", 0);
	assert_string_equal(console, "nidus: guest a ended: exit 0\r\n");
	memset(big, 'y', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	console_used = 0;
	log_level = LOG_ERROR;
	log_always("guest a started");
	assert_string_equal(console, "nidus: guest a started\r\n");
	console_used = 0;
	log_error("%s", big);
	assert_in_range(console_used, 400, 512);
	assert_memory_equal(console + console_used - 3, "y\r\n", 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_c_library),
		cmocka_unit_test(a_short_buffer_ends_with_nul),
		cmocka_unit_test(null_strings_and_unknown_conversions),
		cmocka_unit_test(log_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
