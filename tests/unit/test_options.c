/* SPDX-License-Identifier: Apache-2.0 */
/* The two command-line languages: every key, every kind of mistake, and the text that names it. */
/* SOURCES: hv/options.c hv/print.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hv/console.h"
#include "hv/options.h"

void console_write(const char *s, size_t n)
{
	(void)s;
	(void)n;
}

static struct options opt;
static struct option_error errors[8];

static unsigned parse(const char *line)
{
	memset(errors, 0, sizeof(errors));
	return options_parse(line, &opt, errors, ARRAY_SIZE(errors));
}

static void defaults(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_true(opt.com1 && !opt.screen_given && opt.mitigations && opt.hv_guest && !opt.trace);
	assert_int_equal(opt.baud, 115200);
	assert_int_equal(opt.loglevel, LOG_INFO);
	assert_int_equal(opt.when_done, END_POWEROFF);
}

static void every_option(void **state)
{
	(void)state;
	assert_int_equal(parse(" console=com1,9600,vga  loglevel=debug when-done=halt\tpanic=reboot "
			       "mitigations=off trace=on hv-guest=off "),
			 0);
	assert_true(opt.com1 && opt.vga && !opt.fb && opt.screen_given);
	assert_int_equal(opt.baud, 9600);
	assert_int_equal(opt.loglevel, LOG_DEBUG);
	assert_int_equal(opt.when_done, END_HALT);
	assert_int_equal(opt.on_panic, END_REBOOT);
	assert_false(opt.mitigations || opt.hv_guest);
	assert_true(opt.trace);
	assert_int_equal(parse("console=none"), 0);
	assert_true(!opt.com1 && !opt.vga && !opt.fb && opt.screen_given);
	assert_int_equal(parse("console=fb,com1"), 0);
	assert_true(opt.com1 && opt.fb && !opt.vga);
}

/* Unknown: a warning that names it, and what follows still counts. */
static void unknown_options_warn(void **state)
{
	(void)state;
	assert_int_equal(parse("frobnicate=7 loglevel=warn quiet"), 2);
	assert_false(errors[0].fatal);
	assert_non_null(strstr(errors[0].text, "frobnicate=7"));
	assert_false(errors[1].fatal);
	assert_non_null(strstr(errors[1].text, "quiet"));
	assert_int_equal(opt.loglevel, LOG_WARN);
}

/* Malformed: fatal, names option and value, and leaves what was before. */
static void malformed_values_stop(void **state)
{
	static const char *const bad[][3] = {
		{"loglevel=loud", "loglevel", "loud"},
		{"loglevel", "loglevel", "\"\""},
		{"loglevel=", "loglevel", "\"\""},
		{"console=com2", "console", "com2"},
		{"console=com1,115201", "console", "115201"},
		{"console=com1,0", "console", "com1,0"},
		{"console=com1,", "console", "com1,"},
		{"console=", "console", "\"\""},
		{"when-done=explode", "when-done", "explode"},
		{"panic=on", "panic", "on"},
		{"mitigations=on", "mitigations", "on"},
		{"trace=maybe", "trace", "maybe"},
		{"hv-guest=on", "hv-guest", "on"},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parse(bad[i][0]), 1);
		assert_true(errors[0].fatal);
		assert_non_null(strstr(errors[0].text, bad[i][1]));
		assert_non_null(strstr(errors[0].text, bad[i][2]));
		assert_true(opt.com1 && !opt.screen_given && opt.mitigations);
	}
}

static void file_name_in_front(void **state)
{
	(void)state;
	assert_int_equal(parse("build/nidus32.elf loglevel=error"), 0);
	assert_int_equal(opt.loglevel, LOG_ERROR);
	assert_int_equal(parse("loglevel=error build/nidus32.elf"), 1);
}

static void more_errors_than_room(void **state)
{
	(void)state;
	assert_int_equal(parse("a b c d e f g h i j k"), ARRAY_SIZE(errors));
}

static void very_long_words_are_cut(void **state)
{
	char line[2000];

	(void)state;
	memset(line, 'z', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(parse(line), 1);
	assert_true(strlen(errors[0].text) < sizeof(errors[0].text));
	memcpy(line, "loglevel=", 9);
	assert_int_equal(parse(line), 1);
	assert_true(errors[0].fatal);
}

/* --- guests --- */

static struct guest_desc g;
static char err[160];

static bool guest(const char *line)
{
	err[0] = '\0';
	return guest_desc_parse(line, &g, err, sizeof(err));
}

static void guest_defaults_hold(void **state)
{
	(void)state;
	assert_true(guest(""));
	assert_string_equal(g.name, "");
	assert_int_equal(g.role, ROLE_KERNEL);
	assert_int_equal(g.mem, 256 * MIB);
	assert_int_equal(g.vcpus, 1);
	assert_true(g.vmx && g.apicv && g.restart);
	assert_false(g.hyperv || g.pmu || g.entry_trace);
	assert_int_equal(g.console, CONSOLE_AUTO);
	assert_string_equal(g.cmdline, "");
	assert_string_equal(g.path, "");
}

static void every_guest_key(void **state)
{
	(void)state;
	assert_true(guest("vmlinuz guest=lab role=module mem=1G vcpus=4 cpus=0,2-3,64 vmx=off hyperv=on "
			  "pmu=on apicv=off "
			  "console=prefix entry-trace=on restart=off -- console=ttyS0  a=\"b c\" -- x"));
	assert_string_equal(g.name, "lab");
	assert_int_equal(g.role, ROLE_MODULE);
	assert_int_equal(g.mem, GIB);
	assert_int_equal(g.vcpus, 4);
	assert_int_equal(g.cpus[0], BIT(0) | BIT(2) | BIT(3));
	assert_int_equal(g.cpus[1], BIT(0));
	assert_false(g.vmx || g.apicv || g.restart);
	assert_true(g.hyperv && g.pmu && g.entry_trace);
	assert_int_equal(g.console, CONSOLE_PREFIX);
	assert_string_equal(g.cmdline, "console=ttyS0  a=\"b c\" -- x"); /* verbatim */
	assert_memory_equal(g.path, "vmlinuz ", 8);
}

static void empty_command_lines(void **state)
{
	(void)state;
	assert_true(guest("guest=a --"));
	assert_string_equal(g.cmdline, "");
	assert_true(guest("-- quiet"));
	assert_string_equal(g.cmdline, "quiet");
	assert_true(guest("guest=a x--y=1") == false);
}

/* One line that names key and value; the guest's name is known wherever it stands. */
static void guest_mistakes(void **state)
{
	static const char *const bad[][2] = {
		{"mem=12Q guest=lab", "mem=12Q: bad size"},
		{"guest=lab mem=0", "mem=0: bad size"},
		{"guest=lab mem=", "mem=: bad size"},
		{"guest=lab mem=17179869184G", "mem=17179869184G: bad size"},
		{"guest=lab vcpus=0", "vcpus=0: bad number"},
		{"guest=lab vcpus=256", "vcpus=256: bad number"},
		{"guest=lab vcpus=two", "vcpus=two: bad number"},
		{"guest=lab cpus=3-1", "cpus=3-1: bad CPU list"},
		{"guest=lab cpus=256", "cpus=256: bad CPU list"},
		{"guest=lab cpus=0,", "cpus=0,: bad CPU list"},
		{"guest=lab cpus=0-", "cpus=0-: bad CPU list"},
		{"guest=lab role=king", "role=king: unknown role"},
		{"guest=lab hyperv=yes", "hyperv=yes: neither on nor off"},
		{"guest=lab console=loud", "console=loud: neither raw nor prefix"},
		{"guest=lab colour=blue", "colour=blue: unknown key"},
		{"guest=lab mem", "mem: not KEY=VALUE"},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(guest(bad[i][0]));
		assert_string_equal(err, bad[i][1]);
		assert_string_equal(g.name, "lab");
	}
}

static void guest_names(void **state)
{
	(void)state;
	assert_true(guest("guest=a234567890123456789012345678901"));
	assert_int_equal(strlen(g.name), 31);
	assert_false(guest("guest=a2345678901234567890123456789012"));
	assert_false(guest("guest="));
	assert_false(guest("guest=\"lab\""));
	assert_false(guest("guest=l\x01"));
}

static void sizes(void **state)
{
	static const struct {
		const char *s;
		bool ok;
		u64 v;
	} cases[] = {
		{"4096", true, 4096},
		{"512M", true, 512 * MIB},
		{"2g", true, 2 * GIB},
		{"0x100000", true, MIB},
		{"0x10M", true, 16 * MIB},
		{"1T", true, 1024 * GIB},
		{"0", true, 0},
		{"", false, 0},
		{"M", false, 0},
		{"1MM", false, 0},
		{"1 M", false, 0},
		{"-1", false, 0},
		{"0x", false, 0},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"16777216T", false, 0},
		{"1P", false, 0},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 v = 0;
		bool ok = parse_size(cases[i].s, strlen(cases[i].s), &v);

		if (ok != cases[i].ok || (ok && v != cases[i].v))
			fail_msg("%s: %d %llu", cases[i].s, ok, (unsigned long long)v);
	}
}

/* Any bytes: never a crash, never an unterminated text. */
static void random_lines(void **state)
{
	static const char *const pieces[] = {"guest=", "mem=", "cpus=", "console=", "com1", ",", "-",
					     "=",      " ",    "--",    " -- ",     "on",   "9", "0x",
					     "K",      "\t",   "\xff",  "role=",    "disk"};

	(void)state;
	srand(4);
	for (unsigned round = 0; round < 20000; round++) {
		char line[256] = "";

		for (unsigned i = (unsigned)rand() % 20; i; i--)
			strcat(line, pieces[(unsigned)rand() % ARRAY_SIZE(pieces)]);
		parse(line);
		guest(line);
		assert_true(strlen(g.name) < sizeof(g.name) && strlen(err) < sizeof(err));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_option),
		cmocka_unit_test(unknown_options_warn),
		cmocka_unit_test(malformed_values_stop),
		cmocka_unit_test(file_name_in_front),
		cmocka_unit_test(more_errors_than_room),
		cmocka_unit_test(very_long_words_are_cut),
		cmocka_unit_test(guest_defaults_hold),
		cmocka_unit_test(every_guest_key),
		cmocka_unit_test(empty_command_lines),
		cmocka_unit_test(guest_mistakes),
		cmocka_unit_test(guest_names),
		cmocka_unit_test(sizes),
		cmocka_unit_test(random_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
