/* SPDX-License-Identifier: Apache-2.0 */
/* Loading multiboot1 and multiboot2 kernels: placement, boot information as the kernel reads it, refusals. */
/* SOURCES: hv/load_multiboot1.c hv/load_multiboot2.c hv/load_elf.c hv/load_map.c hv/load_mb.c */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/l1mem.c mm/memmap.c mm/ept.c */
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

static void put(u64 at, u64 v, unsigned size)
{
	memcpy(image + at, &v, size);
}

static u64 peek(u64 gpa, unsigned size)
{
	u64 v = 0;

	assert_true(guest_read(&guest.mem, GPA(gpa), &v, size));
	return v;
}

static void expect_text(u64 gpa, const char *want)
{
	char seen[128] = {0};

	assert_true(guest_read(&guest.mem, GPA(gpa), seen, sizeof(seen) - 1));
	assert_string_equal(seen, want);
}

/* --- images --- */

static void elf32(unsigned segments, u32 entry_point)
{
	memcpy(image, "\177ELF\1\1\1", 7);
	put(16, 2, 2);
	put(18, 3, 2);
	put(24, entry_point, 4);
	put(28, 52, 4);
	put(42, 32, 2);
	put(44, segments, 2);
}

static void segment32(unsigned n, u32 offset, u32 vaddr, u32 paddr, u32 filesz, u32 memsz)
{
	const u32 ph[8] = {1, offset, vaddr, paddr, filesz, memsz, 7, 0x1000};

	memcpy(image + 52 + n * 32, ph, sizeof(ph));
}

static void elf64(u64 entry_point, u64 offset, u64 vaddr, u64 paddr, u64 filesz, u64 memsz)
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

static void mb1_header(u64 at, u32 flags)
{
	header = at;
	put(at, 0x1badb002, 4);
	put(at + 4, flags, 4);
	put(at + 8, -(0x1badb002u + flags), 4);
}

static void mb1_addresses(u32 header_addr, u32 load, u32 load_end, u32 bss_end, u32 entry_addr)
{
	const u32 addr[5] = {header_addr, load, load_end, bss_end, entry_addr};

	memcpy(image + header + 12, addr, sizeof(addr));
}

/* A header without tags but the end; `tags` bytes are put in front of that by mb2_tag. */
static u64 mb2_end;

static void mb2_close(void)
{
	u32 length = (u32)(mb2_end + 8 - header);

	put(mb2_end, 0, 4);
	put(mb2_end + 4, 8, 4);
	put(header + 8, length, 4);
	put(header + 12, -(0xe85250d6u + length), 4);
}

static void mb2_header(u64 at)
{
	header = at;
	mb2_end = at + 16;
	put(at, 0xe85250d6, 4);
	put(at + 4, 0, 4);
	mb2_close();
}

static void mb2_tag(u16 type, u16 flags, const u32 *data, unsigned words)
{
	put(mb2_end, type | (u32)flags << 16, 4);
	put(mb2_end + 4, 8 + 4 * words, 4);
	memcpy(image + mb2_end + 8, data, 4 * words);
	mb2_end += ALIGN_UP(8ull + 4 * words, 8ull);
	mb2_close();
}

/* An ELF32 kernel of one segment: file from 0x1000 at 1 MiB, with bss. */
static void plain_elf(void)
{
	elf32(1, 0x100010);
	segment32(0, 0x1000, 0x100000, 0x100000, 0x800, 0x3000);
	memset(image + 0x1000, 0xc7, 0x800);
}

static int setup(void **state)
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

static int teardown(void **state)
{
	(void)state;
	guest_ram_destroy(&guest.mem);
	assert_int_equal(pages_live, 0);
	return 0;
}

typedef bool loader(struct guest *g, struct entry_state *out, char *err, size_t err_size);

static void expect_loaded(loader *load, u64 rip, u64 magic)
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

static void expect_refused(loader *load, const char *what)
{
	strcpy(err, "untouched");
	assert_false(load(&guest, &entry, err, sizeof(err)));
	if (!strstr(err, what))
		fail_msg("'%s' does not say '%s'", err, what);
	assert_null(strchr(err, '\n'));
}

static void expect_not_mine(loader *load)
{
	strcpy(err, "untouched");
	assert_false(load(&guest, &entry, err, sizeof(err)));
	assert_string_equal(err, "");
}

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

/* --- boot information --- */

static u8 module_a[5000], module_b[3];

static void give_modules(void)
{
	memset(module_a, 0xaa, sizeof(module_a));
	memset(module_b, 0xbb, sizeof(module_b));
	guest.nr_modules = 4;
	guest.module[0] = (struct guest_module){ptr_hpa(module_a), sizeof(module_a), "a 1", ROLE_MODULE};
	guest.module[1] = (struct guest_module){ptr_hpa(module_b), sizeof(module_b), "", ROLE_DISK};
	guest.module[2] = (struct guest_module){ptr_hpa(module_b), sizeof(module_b), "b", ROLE_INITRD};
	guest.module[3] = (struct guest_module){ptr_hpa(module_b), 0, "empty", ROLE_MODULE};
}

static void expect_modules(u64 a_start, u64 a_end, u64 b_start, u64 b_end)
{
	u8 seen[5000];

	assert_int_equal(a_start % PAGE_SIZE | b_start % PAGE_SIZE, 0);
	assert_int_equal(a_end - a_start, sizeof(module_a));
	assert_int_equal(b_end - b_start, sizeof(module_b));
	assert_true(a_start >= 0x103000 && b_start >= a_end);
	assert_true(guest_read(&guest.mem, GPA(a_start), seen, sizeof(seen)));
	assert_memory_equal(seen, module_a, sizeof(seen));
	assert_int_equal(peek(b_start, 3), 0xbbbbbb);
}

static void multiboot1_information(void **state)
{
	u64 i, mods, ram = 0;

	(void)state;
	plain_elf();
	mb1_header(0x100, 3);
	give_modules();
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
	i = entry.rbx;
	assert_int_equal(peek(i, 4), 0x24d);
	assert_int_equal(peek(i + 4, 4), 639);
	assert_int_equal(peek(i + 8, 4), 15 * 1024);
	expect_text(peek(i + 16, 4), "lab first second");
	expect_text(peek(i + 64, 4), "Nidus");
	assert_int_equal(peek(i + 20, 4), 3);
	mods = peek(i + 24, 4);
	expect_modules(peek(mods, 4), peek(mods + 4, 4), peek(mods + 16, 4), peek(mods + 20, 4));
	expect_text(peek(mods + 8, 4), "a 1");
	expect_text(peek(mods + 24, 4), "b");
	assert_int_equal(peek(mods + 32, 4), peek(mods + 36, 4));
	for (u64 at = peek(i + 48, 4), end = at + peek(i + 44, 4); at < end; at += peek(at, 4) + 4)
		if (peek(at + 20, 4) == 1)
			ram += peek(at + 12, 8);
	assert_int_equal(ram, 15 * MIB + L1_EBDA);
}

/* The information tag of that type (the n-th), or 0. Checks the chain on the way. */
static u64 find_tag(u32 type, unsigned n)
{
	u64 end = entry.rbx + peek(entry.rbx, 4), at = entry.rbx + 8, found = 0;

	while (peek(at, 4)) {
		assert_true(at + 8 <= end);
		if (peek(at, 4) == type && !n--)
			found = at;
		at += ALIGN_UP(peek(at + 4, 4), 8ull);
	}
	assert_int_equal(at + 8, end);
	return found;
}

static void multiboot2_information(void **state)
{
	u64 t, ram = 0;

	(void)state;
	plain_elf();
	mb2_header(0x200);
	give_modules();
	expect_loaded(load_multiboot2, 0x100010, 0x36d76289);
	expect_text(find_tag(1, 0) + 8, "first second");
	expect_text(find_tag(2, 0) + 8, "Nidus");
	t = find_tag(4, 0);
	assert_int_equal(peek(t + 8, 4), 639);
	assert_int_equal(peek(t + 12, 4), 15 * 1024);
	expect_modules(peek(find_tag(3, 0) + 8, 4), peek(find_tag(3, 0) + 12, 4), peek(find_tag(3, 1) + 8, 4),
		       peek(find_tag(3, 1) + 12, 4));
	expect_text(find_tag(3, 1) + 16, "b");
	expect_text(find_tag(3, 2) + 16, "empty");
	t = find_tag(6, 0);
	assert_int_equal(peek(t + 8, 4), 24);
	for (u64 at = t + 16; at < t + peek(t + 4, 4); at += 24)
		if (peek(at + 16, 4) == 1)
			ram += peek(at + 8, 8);
	assert_int_equal(ram, 15 * MIB + L1_EBDA);
	assert_int_equal(find_tag(14, 0) | find_tag(15, 0), 0); /* no RSDP stands in this guest */
}

static void multiboot2_passes_the_rsdp_on(void **state)
{
	const u8 rsdp[36] = "RSD PTR xNIDUS \2rsdtlen_xsdtxsdtx";
	u8 seen[36];

	(void)state;
	plain_elf();
	mb2_header(0x200);
	assert_true(guest_write(&guest.mem, GPA(L1_ACPI_RSDP), rsdp, sizeof(rsdp)));
	expect_loaded(load_multiboot2, 0x100010, 0x36d76289);
	assert_int_equal(peek(find_tag(14, 0) + 4, 4), 28);
	assert_int_equal(peek(find_tag(15, 0) + 4, 4), 44);
	assert_true(guest_read(&guest.mem, GPA(find_tag(15, 0) + 8), seen, sizeof(seen)));
	assert_memory_equal(seen, rsdp, sizeof(rsdp));
}

static void long_command_lines_fit(void **state)
{
	static char line[2048];

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	plain_elf();
	guest.cmdline = line;
	guest.nr_modules = ARRAY_SIZE(guest.module);
	for (unsigned i = 0; i < guest.nr_modules; i++)
		guest.module[i] = (struct guest_module){ptr_hpa(module_b), 1, line, ROLE_MODULE};
	mb1_header(0x100, 0);
	expect_loaded(load_multiboot1, 0x100010, 0x2badb002);
	mb2_header(0x200);
	expect_loaded(load_multiboot2, 0x100010, 0x36d76289);
	assert_int_equal(peek(find_tag(3, 31) + 16 + 2046, 2), 'x');
}

static void modules_that_do_not_fit_are_refused(void **state)
{
	(void)state;
	plain_elf();
	mb1_header(0x100, 0);
	guest.nr_modules = 1;
	guest.module[0] = (struct guest_module){ptr_hpa(module_a), 16 * MIB, "", ROLE_MODULE};
	expect_refused(load_multiboot1, "mem=16M: no room for a module");
	guest.module[0].size = ~0ull;
	expect_refused(load_multiboot1, "no room for a module");
}

static void without_l0_memory_it_fails_cleanly(void **state)
{
	(void)state;
	plain_elf();
	mb1_header(0x100, 0);
	mb2_header(0x200);
	pages_failing = 1;
	expect_refused(load_multiboot1, "no memory");
	pages_failing = 1;
	expect_refused(load_multiboot2, "no memory");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
		TEST(multiboot1_information),
		TEST(multiboot2_information),
		TEST(multiboot2_passes_the_rsdp_on),
		TEST(long_command_lines_fit),
		TEST(modules_that_do_not_fit_are_refused),
		TEST(without_l0_memory_it_fails_cleanly),
	};

	return cmocka_run_group_tests_name("load_multiboot", tests, NULL, NULL);
}
