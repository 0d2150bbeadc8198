/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiboot images made by hand, a guest to load them into, and what is expected of a loader. For the tests
 * of hv/load_multiboot*.c; included by one test file each.
 */
#ifndef NIDUS_TESTS_UNIT_MB_IMAGE_H
#define NIDUS_TESTS_UNIT_MB_IMAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "hv/guest.h"
#include "tests/unit/guest_ram.h"

int vformat(char *buf, size_t n, const char *fmt, va_list ap)
{
	return vsnprintf(buf, n, fmt, ap);
}

static u8 image[0x9000];
static u64 header; /* where the multiboot header of the image stands */
static struct guest guest;
static struct entry_state entry;
static char err[200];

static inline void put(u64 at, u64 v, unsigned size)
{
	memcpy(image + at, &v, size);
}

static inline u64 peek(u64 gpa, unsigned size)
{
	u64 v = 0;

	assert_true(guest_read(&guest.mem, GPA(gpa), &v, size));
	return v;
}

static inline void expect_text(u64 gpa, const char *want)
{
	char seen[128] = {0};

	assert_true(guest_read(&guest.mem, GPA(gpa), seen, sizeof(seen) - 1));
	assert_string_equal(seen, want);
}

/* --- images --- */

static inline void elf32(unsigned segments, u32 entry_point)
{
	memcpy(image, "\177ELF\1\1\1", 7);
	put(16, 2, 2);
	put(18, 3, 2);
	put(24, entry_point, 4);
	put(28, 52, 4);
	put(42, 32, 2);
	put(44, segments, 2);
}

static inline void segment32(unsigned n, u32 offset, u32 vaddr, u32 paddr, u32 filesz, u32 memsz)
{
	const u32 ph[8] = {1, offset, vaddr, paddr, filesz, memsz, 7, 0x1000};

	memcpy(image + 52 + n * 32, ph, sizeof(ph));
}

static inline void elf64(u64 entry_point, u64 offset, u64 vaddr, u64 paddr, u64 filesz, u64 memsz)
{
	const u64 ph[7] = {1 | 7ull << 32, offset, vaddr, paddr, filesz, memsz, 0x1000};

	memcpy(image, "\177ELF\2\1\1", 7);
	put(16, 2, 2);
	put(18, 62, 2);
	put(24, entry_point, 8);
	put(32, 64, 8);
	put(54, 56, 2);
	put(56, 1, 2);
	memcpy(image + 64, ph, sizeof(ph));
}

static inline void mb1_header(u64 at, u32 flags)
{
	header = at;
	put(at, 0x1badb002, 4);
	put(at + 4, flags, 4);
	put(at + 8, -(0x1badb002u + flags), 4);
}

static inline void mb1_addresses(u32 header_addr, u32 load, u32 load_end, u32 bss_end, u32 entry_addr)
{
	const u32 addr[5] = {header_addr, load, load_end, bss_end, entry_addr};

	memcpy(image + header + 12, addr, sizeof(addr));
}

/* A header without tags but the end; `tags` bytes are put in front of that by mb2_tag. */
static u64 mb2_end;

static inline void mb2_close(void)
{
	u32 length = (u32)(mb2_end + 8 - header);

	put(mb2_end, 0, 4);
	put(mb2_end + 4, 8, 4);
	put(header + 8, length, 4);
	put(header + 12, -(0xe85250d6u + length), 4);
}

static inline void mb2_header(u64 at)
{
	header = at;
	mb2_end = at + 16;
	put(at, 0xe85250d6, 4);
	put(at + 4, 0, 4);
	mb2_close();
}

static inline void mb2_tag(u16 type, u16 flags, const u32 *data, unsigned words)
{
	put(mb2_end, type | (u32)flags << 16, 4);
	put(mb2_end + 4, 8 + 4 * words, 4);
	memcpy(image + mb2_end + 8, data, 4 * words);
	mb2_end += ALIGN_UP(8ull + 4 * words, 8ull);
	mb2_close();
}

/* An ELF32 kernel of one segment: file from 0x1000 at 1 MiB, with bss. */
static inline void plain_elf(void)
{
	elf32(1, 0x100010);
	segment32(0, 0x1000, 0x100000, 0x100000, 0x800, 0x3000);
	memset(image + 0x1000, 0xc7, 0x800);
}

static inline int setup(void **state)
{
	u8 rubbish[0x1000];

	(void)state;
	memset(image, 0, sizeof(image));
	memset(&guest, 0, sizeof(guest));
	guest_ram_create(&guest.mem, 16 * MIB);
	memset(rubbish, 0xee, sizeof(rubbish));
	for (u64 at = MIB; at < MIB + 64 * KIB; at += sizeof(rubbish))
		assert_true(guest_write(&guest.mem, GPA(at), rubbish, sizeof(rubbish)));
	guest.kernel = (struct guest_module){.start = ptr_hpa(image), .size = sizeof(image)};
	strcpy(guest.name, "lab");
	guest.cmdline = "first second";
	strcpy(err, "untouched");
	pages_failing = 0;
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	guest_ram_destroy(&guest.mem);
	assert_int_equal(pages_live, 0);
	return 0;
}

typedef bool loader(struct guest *g, struct entry_state *out, char *err, size_t err_size);

static inline void expect_loaded(loader *load, u64 rip, u64 magic)
{
	if (!load(&guest, &entry, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(entry.mode, ENTRY_PROTECTED);
	assert_int_equal(entry.rip, rip);
	assert_int_equal(entry.rax, magic);
	assert_int_equal(entry.rbx % 8, 0);
	assert_int_equal(peek(entry.gdt_base + 16, 8), 0x00cf9b000000ffff);
	assert_int_equal(peek(entry.gdt_base + 24, 8), 0x00cf93000000ffff);
}

static inline void expect_refused(loader *load, const char *what)
{
	strcpy(err, "untouched");
	assert_false(load(&guest, &entry, err, sizeof(err)));
	if (!strstr(err, what))
		fail_msg("'%s' does not say '%s'", err, what);
	assert_null(strchr(err, '\n'));
}

static inline void expect_not_mine(loader *load)
{
	strcpy(err, "untouched");
	assert_false(load(&guest, &entry, err, sizeof(err)));
	assert_string_equal(err, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
