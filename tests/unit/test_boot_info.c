/* SPDX-License-Identifier: Apache-2.0 */
/* Both multiboot parsers, fed structures at 32-bit addresses as a loader leaves them, good and damaged. */
/* SOURCES: boot/boot_info.c boot/mb1.c boot/mb2.c mm/memmap.c */
#define _GNU_SOURCE /* MAP_32BIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "boot/boot_info.h"

#define ARENA_SIZE 0x40000

static unsigned char *arena; /* below 4 GiB */
static size_t used;
static struct boot_info info;

static int group_setup(void **state)
{
	(void)state;
	arena = mmap(NULL, ARENA_SIZE + PAGE_SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	return arena == MAP_FAILED ? -1 : mprotect(arena + ARENA_SIZE, PAGE_SIZE, PROT_NONE);
}

static int fresh(void **state)
{
	(void)state;
	memset(arena, 0xcc, ARENA_SIZE);
	memset(&info, 0, sizeof(info));
	used = 0;
	return 0;
}

static void *take(size_t size)
{
	void *p = arena + used;

	used = ALIGN_UP(used + size, 8ul);
	assert_true(used <= ARENA_SIZE);
	return memset(p, 0, size);
}

static u32 low(const void *p)
{
	assert_true((uintptr_t)p < 4 * GIB);
	return (u32)(uintptr_t)p;
}

static u32 text(const char *s)
{
	return low(memcpy(take(strlen(s) + 1), s, strlen(s) + 1));
}

/* --- multiboot2 --- */

static unsigned char *mbi; /* total size at its start */

static void mb2_begin(void)
{
	mbi = take(8);
}

static void mb2_tag(u32 type, const void *data, u32 size)
{
	u32 *t = take(8 + size);

	t[0] = type;
	t[1] = 8 + size;
	memcpy(t + 2, data, size);
}

static void mb2_end(void)
{
	u32 total;

	mb2_tag(0, "", 0);
	total = (u32)(arena + used - mbi);
	memcpy(mbi, &total, 4);
}

struct mb2_entry {
	u64 addr, len;
	u32 type, zero;
};

static void mb2_mmap(const struct mb2_entry *e, unsigned n, u32 entry_size)
{
	unsigned char data[2048] = {0};
	u32 head[2] = {entry_size, 0};

	memcpy(data, head, 8);
	for (unsigned i = 0; i < n; i++)
		memcpy(data + 8 + i * entry_size, &e[i], sizeof(*e));
	mb2_tag(6, data, 8 + n * entry_size);
}

static void mb2_module(u32 start, u32 end, const char *string)
{
	unsigned char data[512];
	u32 head[2] = {start, end};

	memcpy(data, head, 8);
	memcpy(data + 8, string, strlen(string) + 1);
	mb2_tag(3, data, 8 + (u32)strlen(string) + 1);
}

static const struct mb2_entry plain_map[] = {{0, 0x9fc00, 1, 0},
					     {0x100000, 0x7f00000, 1, 0},
					     {0xfffc0000, 0x40000, 2, 0},
					     {0x100000000, 0x40000000, 1, 0}};

static void mb2_everything(void **state)
{
	(void)state;
	mb2_begin();
	mb2_tag(1, "loglevel=debug console=com1", 28);
	mb2_tag(2, "GRUB 2.06", 10);
	mb2_module(0x400000, 0x400801, "guest=lab role=kernel -- a=b");
	mb2_mmap(plain_map, 4, 24);
	mb2_tag(99, "later revision", 15);
	mb2_end();
	mb2_parse(mbi, &info);
	memset(arena, 0, ARENA_SIZE); /* nothing may point into the loader's memory any more */
	assert_null(info.error);
	assert_string_equal(info.cmdline, "loglevel=debug console=com1");
	assert_string_equal(info.loader, "GRUB 2.06");
	assert_int_equal(info.nr_modules, 1);
	assert_int_equal(info.module[0].start.v, 0x400000);
	assert_int_equal(info.module[0].size, 0x801);
	assert_string_equal(info.module[0].string, "guest=lab role=kernel -- a=b");
	assert_int_equal(memmap_ram_top(&info.mem), 0x140000000);
	assert_false(info.has_fb);
}

/* Entries of a later revision may be longer than those we know. */
static void mb2_long_map_entries(void **state)
{
	(void)state;
	mb2_begin();
	mb2_mmap(plain_map, 4, 40);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_int_equal(info.mem.count, 4);
	assert_int_equal(memmap_type(&info.mem, 0x100000), MEM_RAM);
}

static void mb2_zero_entry_size_is_no_endless_loop(void **state)
{
	(void)state;
	mb2_begin();
	mb2_mmap(plain_map, 1, 0);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_non_null(info.error);
}

/* BT-04: 30 modules and a 4 KiB command line. */
static void mb2_thirty_modules_and_a_long_command_line(void **state)
{
	static char line[4096];
	char string[64];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	mb2_begin();
	mb2_tag(1, line, sizeof(line));
	for (u32 i = 0; i < 30; i++) {
		snprintf(string, sizeof(string), "guest=g%u mem=1M -- tail %u", i, i * i);
		mb2_module(0x1000000 + i * 0x1000, 0x1000001 + i * 0x1000, string);
	}
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_null(info.error);
	assert_string_equal(info.cmdline, line);
	assert_int_equal(info.nr_modules, 30);
	for (u32 i = 0; i < 30; i++) {
		snprintf(string, sizeof(string), "guest=g%u mem=1M -- tail %u", i, i * i);
		assert_string_equal(info.module[i].string, string);
		assert_int_equal(info.module[i].size, 1);
	}
}

static void too_many_modules(void **state)
{
	(void)state;
	mb2_begin();
	mb2_mmap(plain_map, 4, 24);
	for (u32 i = 0; i < BOOT_MODULES_MAX + 1; i++)
		mb2_module(0x1000000, 0x1001000, "m");
	mb2_end();
	mb2_parse(mbi, &info);
	assert_int_equal(info.nr_modules, BOOT_MODULES_MAX);
	assert_non_null(info.error);
}

static void too_long_strings(void **state)
{
	static char line[BOOT_STRINGS_MAX + 1];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	mb2_begin();
	mb2_tag(1, line, sizeof(line));
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_non_null(info.error);
	assert_string_equal(info.cmdline, "");
}

/* A string without its NUL ends with its tag. */
static void mb2_unterminated_string(void **state)
{
	(void)state;
	mb2_begin();
	mb2_tag(1, "abcdefgh", 8);
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_string_equal(info.cmdline, "abcdefgh");
}

static void mb2_damaged_tags_end_the_walk(void **state)
{
	u32 *t;

	(void)state;
	mb2_begin();
	mb2_mmap(plain_map, 4, 24);
	t = take(16);
	t[0] = 1;
	t[1] = 4; /* shorter than its own header */
	mb2_end();
	mb2_parse(mbi, &info);
	assert_null(info.error);
	assert_string_equal(info.cmdline, "");

	fresh(NULL);
	mb2_begin();
	mb2_mmap(plain_map, 4, 24);
	t = take(16);
	t[0] = 1;
	t[1] = 0xfffffff0; /* beyond the end */
	mb2_end();
	mb2_parse(mbi, &info);
	assert_int_equal(info.mem.count, 4);
	assert_string_equal(info.cmdline, "");
}

/* BT-06: the old tag alone is enough; with both, the new one wins whichever comes last. */
static void mb2_rsdp_tags(void **state)
{
	unsigned char old[20] = "RSD PTR ", new[36] = "RSD PTR ";

	(void)state;
	new[15] = 2;
	new[24] = 0x77;
	mb2_begin();
	mb2_tag(14, old, sizeof(old));
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_memory_equal(info.rsdp, old, 20);
	for (int order = 0; order < 2; order++) {
		fresh(NULL);
		mb2_begin();
		mb2_tag(order ? 15 : 14, order ? new : old, order ? 36 : 20);
		mb2_tag(order ? 14 : 15, order ? old : new, order ? 20 : 36);
		mb2_mmap(plain_map, 4, 24);
		mb2_end();
		mb2_parse(mbi, &info);
		assert_memory_equal(info.rsdp, new, 36);
	}
}

static void mb2_framebuffers(void **state)
{
	struct {
		u64 addr;
		u32 pitch, width, height;
		u8 bpp, type;
		u16 zero;
		u8 colours[6];
	} __attribute__((packed)) fb = {0x80000000, 3200, 800, 600, 32, 1, 0, {16, 8, 8, 8, 0, 8}};

	(void)state;
	mb2_begin();
	mb2_tag(8, &fb, sizeof(fb));
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_true(info.has_fb);
	assert_false(info.fb.text);
	assert_int_equal(info.fb.base.v, 0x80000000);
	assert_int_equal(info.fb.pitch, 3200);
	assert_int_equal(info.fb.red_shift, 16);
	assert_int_equal(info.fb.blue_shift, 0);

	fresh(NULL);
	fb.type = 2;
	mb2_begin();
	mb2_tag(8, &fb, 24); /* no colour information follows text */
	mb2_mmap(plain_map, 4, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_true(info.has_fb && info.fb.text);
}

/* Ranges that overlap, wrap around, or are of no known type. */
static void odd_memory_maps(void **state)
{
	static const struct mb2_entry odd[] = {{0x100000, 0x1000000, 1, 0},
					       {0x200000, 0x1000, 20, 0},
					       {0x1000, 0, 1, 0},
					       {0x300000, 0x1000, 2, 0},
					       {0xfffffffffffff000, 0x2000, 2, 0}};

	(void)state;
	mb2_begin();
	mb2_mmap(odd, 5, 24);
	mb2_end();
	mb2_parse(mbi, &info);
	assert_null(info.error);
	assert_int_equal(memmap_type(&info.mem, 0x200800), MEM_RESERVED);
	assert_int_equal(memmap_type(&info.mem, 0x300800), MEM_RESERVED);
	assert_int_equal(memmap_type(&info.mem, 0x301000), MEM_RAM);
	assert_int_equal(memmap_type(&info.mem, 0x1000), MEM_RESERVED);
	assert_int_equal(memmap_ram_top(&info.mem), 0x1100000);
}

/* --- multiboot1 --- */

struct mb1_map {
	u32 size;
	u64 addr, len;
	u32 type;
} __attribute__((packed));

static void mb1_everything(void **state)
{
	u32 *mb = take(128), *mods = take(32);
	struct mb1_map *m = take(2 * sizeof(*m));

	(void)state;
	m[0] = (struct mb1_map){20, 0x100000, 0x3f00000, 1};
	m[1] = (struct mb1_map){20, 0x100000000, 0x10000000, 1};
	mods[0] = 0x234567;
	mods[1] = 0x234568;
	mods[2] = text("first");
	mods[4] = 0x800000;
	mods[5] = 0x800000; /* a module of no bytes and no string */
	mb[0] = 1 << 2 | 1 << 3 | 1 << 6 | 1 << 9;
	mb[4] = text("panic=halt");
	mb[5] = 2;
	mb[6] = low(mods);
	mb[11] = 2 * sizeof(*m);
	mb[12] = low(m);
	mb[16] = text("qemu");
	mb1_parse(mb, &info);
	memset(arena, 0, ARENA_SIZE);
	assert_null(info.error);
	assert_string_equal(info.cmdline, "panic=halt");
	assert_string_equal(info.loader, "qemu");
	assert_int_equal(info.nr_modules, 2);
	assert_int_equal(info.module[0].size, 1);
	assert_string_equal(info.module[0].string, "first");
	assert_int_equal(info.module[1].size, 0);
	assert_string_equal(info.module[1].string, "");
	assert_int_equal(memmap_ram_top(&info.mem), 0x110000000);
}

static void mb1_without_a_map(void **state)
{
	u32 *mb = take(128);

	(void)state;
	mb[0] = 1;
	mb[1] = 639;
	mb[2] = 0x10000;
	mb1_parse(mb, &info);
	assert_null(info.error);
	assert_string_equal(info.cmdline, "");
	assert_int_equal(memmap_type(&info.mem, 639 * KIB - 1), MEM_RAM);
	assert_int_equal(memmap_ram_top(&info.mem), MIB + 0x10000 * KIB);

	fresh(NULL);
	mb1_parse(take(128), &info);
	assert_non_null(info.error);
}

static void mb1_damaged_map_entries_end_the_walk(void **state)
{
	u32 *mb = take(128);
	struct mb1_map *m = take(2 * sizeof(*m));

	(void)state;
	m[0] = (struct mb1_map){20, 0x100000, 0x100000, 1};
	m[1] = (struct mb1_map){0xfffffffc, 0x200000, 0x100000, 1}; /* size + 4 wraps to 0 in 32 bits */
	mb[0] = 1 << 6;
	mb[11] = 2 * sizeof(*m);
	mb[12] = low(m);
	mb1_parse(mb, &info);
	assert_int_equal(info.mem.count, 1);
	assert_int_equal(memmap_ram_top(&info.mem), 0x200000);
}

/* Random bytes as boot information: the parser stays inside the structure's stated size. */
static void mb2_random_tags(void **state)
{
	(void)state;
	srand(3);
	for (unsigned round = 0; round < 2000; round++) {
		u32 total = 1024;
		unsigned char *p;

		fresh(NULL);
		p = arena + ARENA_SIZE - 1024; /* what lies behind is not mapped */
		for (unsigned i = 0; i < 1024; i++)
			p[i] = (unsigned char)(rand() % 4 ? 0 : rand());
		for (unsigned i = 8; i < 1024; i += 8 * (1 + (unsigned)rand() % 8)) {
			u32 head[2] = {(u32)rand() % 17, (u32)rand() % 200};

			memcpy(p + i, head, 8);
		}
		memcpy(p, &total, 4);
		mb2_parse(p, &info);
		assert_true(info.nr_modules <= BOOT_MODULES_MAX && info.strings_used <= BOOT_STRINGS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(mb2_everything, fresh),
		cmocka_unit_test_setup(mb2_long_map_entries, fresh),
		cmocka_unit_test_setup(mb2_zero_entry_size_is_no_endless_loop, fresh),
		cmocka_unit_test_setup(mb2_thirty_modules_and_a_long_command_line, fresh),
		cmocka_unit_test_setup(too_many_modules, fresh),
		cmocka_unit_test_setup(too_long_strings, fresh),
		cmocka_unit_test_setup(mb2_unterminated_string, fresh),
		cmocka_unit_test_setup(mb2_damaged_tags_end_the_walk, fresh),
		cmocka_unit_test_setup(mb2_rsdp_tags, fresh),
		cmocka_unit_test_setup(mb2_framebuffers, fresh),
		cmocka_unit_test_setup(odd_memory_maps, fresh),
		cmocka_unit_test_setup(mb1_everything, fresh),
		cmocka_unit_test_setup(mb1_without_a_map, fresh),
		cmocka_unit_test_setup(mb1_damaged_map_entries_end_the_walk, fresh),
		cmocka_unit_test_setup(mb2_random_tags, fresh),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
