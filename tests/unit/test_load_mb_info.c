/* SPDX-License-Identifier: Apache-2.0 */
/* What a multiboot kernel is told: modules, memory, command lines, ACPI, in both versions of the protocol. */
/* SOURCES: hv/load_multiboot1.c hv/load_multiboot2.c hv/load_elf.c hv/load_map.c hv/load_mb.c */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include "tests/unit/mb_image.h"

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
	assert_in_range(i, 0x10000, 0x8ffff); /* away from AP trampolines and from where Xen copies it to */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(multiboot1_information),
		TEST(multiboot2_information),
		TEST(multiboot2_passes_the_rsdp_on),
		TEST(long_command_lines_fit),
		TEST(modules_that_do_not_fit_are_refused),
		TEST(without_l0_memory_it_fails_cleanly),
	};

	return cmocka_run_group_tests_name("load_mb_info", tests, NULL, NULL);
}
