/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot1 and multiboot2 kernels: finding the header, loading ELF and images given by addresses, refusals.
 */
/* SOURCES: hv/load_multiboot1.c hv/load_multiboot2.c hv/load_elf.c hv/load_map.c hv/load_mb.c */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include "tests/unit/mb_image.h"

/* --- ELF --- */

static void elf_segments_are_copied_and_bss_cleared(void **state)
{
	(void)state;
	plain_elf();
	mb1_header(0x100, 3);
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
	assert_int_equal(peek(0x100000, 8), 0xc7c7c7c7c7c7c7c7);
	assert_int_equal(peek(0x1007ff, 1), 0xc7);
	for (u64 at = 0x100800; at < 0x103000; at += 8)
		assert_int_equal(peek(at, 8), 0);
	assert_int_equal(peek(0x103000, 1), 0xee);
}

static void elf64_and_virtual_entry_points(void **state)
{
	(void)state;
	elf64(0xffffffff80000040, 0x1000, 0xffffffff80000000, 0x200000, 0x100, 0x100);
	mb1_header(0x100, 0);
	expect_loaded(load_multiboot1, 0x200040, 0x2badb002);
	mb2_header(0x200);
	expect_loaded(load_multiboot2, 0x200040, 0x36d76289);
}

static void low_segments_are_possible(void **state)
{
	(void)state;
	plain_elf();
	segment32(0, 0x1000, 0x3e80, 0x3e80, 0x800, 0x90000); /* most of what lies below 640 KiB */
	mb1_header(0x100, 0);
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
	assert_true(entry.rbx >= MIB || entry.rbx >= 0x3e80 + 0x90000);
}

static void segments_outside_of_ram_are_refused(void **state)
{
	static const struct {
		u32 paddr, memsz;
	} row[] = {
		{0xa0000, 0x1000},   {0x9f000, 0x1000},    {0xff000, 0x2000},        {0xfff000, 0x1001},
		{0x1000000, 0x1000}, {0xfffff000, 0x1000}, {0xfffff000, 0xffffffff}, {0x100000, 0xffffffff},
	};

	(void)state;
	plain_elf();
	mb1_header(0x100, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		segment32(0, 0x1000, row[i].paddr, row[i].paddr, 0x100, row[i].memsz);
		expect_refused(load_multiboot1, "mem=16M");
	}
}

static void broken_elf_is_refused(void **state)
{
	(void)state;
	mb1_header(0x100, 0);
	plain_elf();
	segment32(0, 0x8fff, 0x100000, 0x100000, 2, 2);
	expect_refused(load_multiboot1, "behind the file");
	segment32(0, 0xffffffff, 0x100000, 0x100000, 2, 2);
	expect_refused(load_multiboot1, "behind the file");
	segment32(0, 0x1000, 0x100000, 0x100000, 0x800, 0x7ff);
	expect_refused(load_multiboot1, "behind the file");
	plain_elf();
	put(28, 0xfffffff0, 4); /* program headers */
	expect_refused(load_multiboot1, "ELF header");
	plain_elf();
	put(44, 0xffff, 2);
	expect_refused(load_multiboot1, "ELF header");
	plain_elf();
	put(42, 8, 2);
	expect_refused(load_multiboot1, "ELF header");
	plain_elf();
	put(52, 2, 4); /* no PT_LOAD */
	expect_refused(load_multiboot1, "loadable");
	plain_elf();
	put(24, 0xfffffff0, 4);
	expect_refused(load_multiboot1, "entry point");
	elf64(0x200000, 0x1000, 0x200000, ~0ull - 0xfff, 0x100, 0x2000);
	expect_refused(load_multiboot1, "mem=16M");
	elf64(0x200000, ~0ull - 0xff, 0x200000, 0x200000, 0x200, 0x2000);
	expect_refused(load_multiboot1, "behind the file");
}

static void overlapping_segments_are_refused(void **state)
{
	(void)state;
	plain_elf();
	elf32(2, 0x100010);
	segment32(1, 0x1000, 0x102fff, 0x102fff, 1, 1);
	mb1_header(0x100, 0);
	expect_refused(load_multiboot1, "overlaps");
}

/* --- finding the header --- */

static void headers_count_only_where_the_specification_says(void **state)
{
	(void)state;
	plain_elf();
	expect_not_mine(load_multiboot1);
	expect_not_mine(load_multiboot2);
	mb1_header(8192 - 12, 0);
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
	expect_not_mine(load_multiboot2);
	put(header + 8, 1, 4); /* checksum */
	expect_not_mine(load_multiboot1);
	memset(image + header, 0, 12);
	mb1_header(8192, 0);
	expect_not_mine(load_multiboot1);
	mb1_header(0x802, 0); /* not aligned */
	expect_not_mine(load_multiboot1);
	mb2_header(32768 - 24);
	expect_loaded(load_multiboot2, 0x100010, 0x36d76289);
	memset(image + header, 0, 24);
	mb2_header(32768);
	expect_not_mine(load_multiboot2);
}

static void short_files_are_nobodys(void **state)
{
	(void)state;
	plain_elf();
	mb1_header(0, 0);
	for (guest.kernel.size = 0; guest.kernel.size < 12; guest.kernel.size++) {
		expect_not_mine(load_multiboot1);
		expect_not_mine(load_multiboot2);
	}
	guest.kernel.size = 12;
	expect_refused(load_multiboot1, "neither ELF");
	mb1_header(0, BIT32(16));
	expect_refused(load_multiboot1, "cut off");
}

static void unknown_required_features_are_refused(void **state)
{
	(void)state;
	plain_elf();
	mb1_header(0x100, BIT32(3));
	expect_refused(load_multiboot1, "unknown features 0x8");
	mb1_header(0x100, BIT32(2) | BIT32(17)); /* video, and an optional one */
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
}

/* --- images by address --- */

static void address_fields_of_multiboot1(void **state)
{
	(void)state;
	memset(image + 0x400, 0x5b, 0x1000);
	mb1_header(0x100, BIT32(16));
	/* Loaded from file offset 0x80 (load = header - 0x80) up to 0x300000, bss to 0x300100. */
	mb1_addresses(0x200080, 0x200000, 0x201000, 0x203000, 0x200123);
	expect_loaded(load_multiboot1, 0x200123, 0x2badb002);
	assert_int_equal(peek(0x200080, 4), 0x1badb002);
	assert_int_equal(peek(0x200380, 1), 0x5b);
	assert_int_equal(peek(0x201000, 8), 0);
	mb1_addresses(0x200080, 0x200000, 0, 0, 0x200000); /* all of the file, no bss */
	put(sizeof(image) - 1, 0x99, 1);
	expect_loaded(load_multiboot1, 0x200000, 0x2badb002);
	assert_int_equal(peek(0x200000 + sizeof(image) - 0x80 - 1, 1), 0x99);
}

static void contradicting_addresses_are_refused(void **state)
{
	static const u32 row[][5] = {
		{0x200000, 0x200001, 0, 0, 0x200000},               /* header in front of the image */
		{0x200101, 0x200000, 0, 0, 0x200000},               /* starts in front of the file */
		{0x200080, 0x200000, 0x1fffff, 0, 0x200000},        /* ends before it starts */
		{0x200080, 0x200000, 0x20a000, 0, 0x200000},        /* longer than the file */
		{0x200080, 0x200000, 0x201000, 0x200fff, 0x200000}, /* bss ends inside */
	};

	(void)state;
	mb1_header(0x100, BIT32(16));
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++) {
		mb1_addresses(row[i][0], row[i][1], row[i][2], row[i][3], row[i][4]);
		expect_refused(load_multiboot1, "do not fit the file");
	}
	mb1_addresses(0x200080, 0x200000, 0x201000, 0xffffffff, 0x200000);
	expect_refused(load_multiboot1, "mem=16M");
}

static void address_tag_of_multiboot2(void **state)
{
	const u32 address[4] = {0x200040, 0x200000, 0x201000, 0x202000}, entry_tag[1] = {0x200077};

	(void)state;
	mb2_header(0x40);
	mb2_tag(2, 0, address, 4);
	expect_refused(load_multiboot2, "do not fit the file"); /* an entry tag must be there, too */
	mb2_tag(3, 0, entry_tag, 1);
	expect_loaded(load_multiboot2, 0x200077, 0x36d76289);
	assert_int_equal(peek(0x200040, 4), 0xe85250d6);
	assert_int_equal(peek(0x201000, 8), 0);
}

/* --- multiboot2 header tags --- */

static void tags_that_must_and_need_not_be_known(void **state)
{
	const u32 known[2] = {6, 4}, unknown[1] = {22}, none[1] = {0};

	(void)state;
	plain_elf();
	mb2_header(0x200);
	mb2_tag(1, 0, known, 2);
	mb2_tag(1, 1, unknown, 1);
	mb2_tag(6, 0, none, 0);
	mb2_tag(999, 1, none, 1);
	expect_loaded(load_multiboot2, 0x100010, 0x36d76289);
	mb2_tag(1, 0, unknown, 1);
	expect_refused(load_multiboot2, "tag 1 ");
	mb2_header(0x200);
	mb2_tag(999, 0, none, 1);
	expect_refused(load_multiboot2, "tag 999 ");
}

static void malformed_tags_are_refused(void **state)
{
	const u32 none[1] = {0};

	(void)state;
	plain_elf();
	mb2_header(0x200);
	mb2_tag(6, 0, none, 1);
	put(0x214, 7, 4);
	expect_refused(load_multiboot2, "bad tag size");
	put(0x214, 0xfffffff8, 4);
	expect_refused(load_multiboot2, "bad tag size");
	put(0x214, 0x20, 4); /* swallows the end tag */
	expect_refused(load_multiboot2, "bad tag size");
	put(0x214, 0x18, 4);
	expect_refused(load_multiboot2, "without an end");
	mb2_header(0x200);
	put(0x208, 0xffffff00, 4);
	put(0x20c, -(0xe85250d6u + 0xffffff00u), 4);
	expect_refused(load_multiboot2, "cut off");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(elf_segments_are_copied_and_bss_cleared),
		TEST(elf64_and_virtual_entry_points),
		TEST(low_segments_are_possible),
		TEST(segments_outside_of_ram_are_refused),
		TEST(broken_elf_is_refused),
		TEST(overlapping_segments_are_refused),
		TEST(headers_count_only_where_the_specification_says),
		TEST(short_files_are_nobodys),
		TEST(unknown_required_features_are_refused),
		TEST(address_fields_of_multiboot1),
		TEST(contradicting_addresses_are_refused),
		TEST(address_tag_of_multiboot2),
		TEST(tags_that_must_and_need_not_be_known),
		TEST(malformed_tags_are_refused),
	};

	return cmocka_run_group_tests_name("load_multiboot", tests, NULL, NULL);
}
