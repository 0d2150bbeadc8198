/* SPDX-License-Identifier: Apache-2.0 */
/* Guests' consoles: raw bytes, prefixed lines that never tear, unfinished lines, whose the keyboard is. */
/* SOURCES: hv/guest_console.c hv/console.c hv/print.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "hv/console.h"
#include "hv/dev/machine.h"
#include "hv/guest.h"
#include "hv/guest_console.h"
#include "hv/screen.h"
#include "hv/uart.h"
#include "hv/print.h"
#include "hv/timer.h"

u64 tsc_hz = 1000000000000; /* nothing is ever quiet long enough, until a test says so */
struct guest *guests[GUESTS_MAX];
unsigned nr_guests;

static struct guest pair[2];
static char screen[8192], keys[2][64], typed[64];
static size_t typed_at;
static struct timer *armed[2];

/* The only console is COM1; it never shows a carriage return. */
bool uart_init(u32 baud)
{
	return baud == 115200;
}

void uart_write(const char *s, size_t n)
{
	size_t used = strlen(screen);

	assert_true(used + n < sizeof(screen));
	for (; n; n--, s++)
		if (*s != '\r')
			screen[used++] = *s;
}

int uart_getc(void)
{
	return typed[typed_at] ? typed[typed_at++] : -1;
}

bool fb_init(const struct framebuffer *screen_info)
{
	(void)screen_info;
	return false;
}

void fb_write(const char *s, size_t n)
{
	fail_msg("no framebuffer: %.*s", (int)n, s);
}

void vga_init(void)
{
}

void vga_write(const char *s, size_t n)
{
	fail_msg("no screen: %.*s", (int)n, s);
}

void machine_console_input(struct machine *m, u8 c)
{
	char *to = keys[m == pair[1].machine];

	to[strlen(to)] = (char)c;
}

void timer_arm(struct timer *t, u64 deadline)
{
	struct guest *g = t->arg;

	t->deadline = deadline;
	t->cpu = (struct cpu *)16;
	armed[g->id] = t;
}

void timer_cancel(struct timer *t)
{
	t->cpu = NULL;
	for (unsigned i = 0; i < 2; i++)
		if (armed[i] == t)
			armed[i] = NULL;
}

static void fire(unsigned id)
{
	struct timer *t = armed[id];

	assert_non_null(t);
	timer_cancel(t);
	t->fn(t->arg);
}

static void say(unsigned id, const char *s)
{
	while (*s)
		guest_console_putc(&pair[id], (u8)*s++);
}

static void type(const char *s)
{
	strcpy(typed, s);
	typed_at = 0;
	guest_console_input();
}

static int start(void **state)
{
	(void)state;
	for (u16 i = 0; i < 2; i++) {
		pair[i] = (struct guest){.id = i, .console_prefix = true};
		strcpy(pair[i].name, i ? "blue" : "red");
		pair[i].machine = (struct machine *)(uintptr_t)(64 + i);
		guests[i] = &pair[i];
	}
	nr_guests = 2;
	console_early_init();
	return 0;
}

static int stop(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		guest_console_flush(&pair[i]);
	memset(screen, 0, sizeof(screen));
	memset(keys, 0, sizeof(keys));
	tsc_hz = 1000000000000;
	return 0;
}

static void test_raw(void **state)
{
	(void)state;
	pair[0].console_prefix = false;
	say(0, "a\r\nb");
	assert_string_equal(screen, "a\nb");
	guest_console_flush(&pair[0]); /* what L0 says next is a line of its own */
	assert_string_equal(screen, "a\nb\n");
	guest_console_flush(&pair[0]);
	assert_string_equal(screen, "a\nb\n");
}

/* A line of L0's ends whatever line stands there unfinished, and the guest goes on in a new one. */
static void test_log_lines_stand_alone(void **state)
{
	(void)state;
	pair[0].console_prefix = false;
	say(0, "one");
	log_info("two");
	log_info("three");
	say(0, "four\n");
	log_info("five");
	assert_string_equal(screen, "one\nnidus: two\nnidus: three\nfour\nnidus: five\n");
	memset(screen, 0, sizeof(screen));
	pair[0].console_prefix = true;
	tsc_hz = 0;
	say(0, "login: ");
	fire(0);
	log_info("six");
	say(0, "root\n");
	assert_string_equal(screen, "red: login: \nnidus: six\nred: root\n");
}

/* Prefixed and raw guests in one machine: the raw ones share a line, no prefixed one joins it. */
static void test_raw_beside_prefixed(void **state)
{
	(void)state;
	pair[0].console_prefix = false;
	say(0, "one");
	say(1, "two\n");
	say(0, "three");
	pair[1].console_prefix = false;
	say(1, "four\n");
	assert_string_equal(screen, "one\nblue: two\nthreefour\n");
}

static void test_lines_never_tear(void **state)
{
	const char *red = "one two three\r\n\r\nfour\r\n", *blue = "eins zwei drei\nvier\n";

	(void)state;
	while (*red || *blue) {
		if (*red)
			guest_console_putc(&pair[0], (u8)*red++);
		if (*blue)
			guest_console_putc(&pair[1], (u8)*blue++);
	}
	assert_string_equal(screen,
			    "red: one two three\nblue: eins zwei drei\nred: \nblue: vier\nred: four\n");
}

/* A prompt appears after a while; the rest of the line follows it, unless somebody else spoke. */
static void test_unfinished(void **state)
{
	(void)state;
	say(0, "login: ");
	assert_string_equal(screen, "");
	fire(0); /* too early: more may come */
	assert_string_equal(screen, "");
	assert_non_null(armed[0]);
	tsc_hz = 0;
	fire(0);
	assert_string_equal(screen, "red: login: ");
	say(0, "root\n");
	assert_string_equal(screen, "red: login: root\n");
	say(0, "login: ");
	fire(0);
	say(1, "hello\n");
	say(0, "x\n");
	assert_string_equal(screen, "red: login: root\nred: login: \nblue: hello\nred: x\n");
}

static void test_long_line(void **state)
{
	char want[3010] = "red: ";

	(void)state;
	for (unsigned i = 0; i < 3000; i++) {
		guest_console_putc(&pair[0], 'x');
		want[5 + i] = 'x';
	}
	say(0, "\n");
	strcat(want, "\n");
	assert_string_equal(screen, want);
}

static void test_flush(void **state)
{
	(void)state;
	say(0, "last words");
	guest_console_flush(&pair[0]);
	assert_string_equal(screen, "red: last words\n");
	assert_null(armed[0]);
}

static void test_input(void **state)
{
	(void)state;
	type("ab");
	assert_string_equal(keys[0], "ab");
	type("\x1d"
	     "1cd");
	assert_string_equal(keys[1], "cd");
	assert_string_equal(screen, "nidus: input goes to guest blue\n");
	type("\x1d\x1d"
	     "e\x1d"
	     "7\x1dxf"); /* itself; no such guest; no digit */
	assert_string_equal(keys[1], "cd\x1d"
				     "ef");
	type("\x1d");
	type("0g");
	assert_string_equal(keys[0], "abg");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_raw, start, stop),
		cmocka_unit_test_setup_teardown(test_log_lines_stand_alone, start, stop),
		cmocka_unit_test_setup_teardown(test_raw_beside_prefixed, start, stop),
		cmocka_unit_test_setup_teardown(test_lines_never_tear, start, stop),
		cmocka_unit_test_setup_teardown(test_unfinished, start, stop),
		cmocka_unit_test_setup_teardown(test_long_line, start, stop),
		cmocka_unit_test_setup_teardown(test_flush, start, stop),
		cmocka_unit_test_setup_teardown(test_input, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
