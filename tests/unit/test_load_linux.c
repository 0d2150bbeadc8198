/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a bzImage: what the kernel finds, and that hostile headers end in one line. Linux "The Linux/x86
 * Boot Protocol". */
/* SOURCES: hv/load_linux.c hv/load_map.c hv/load_mb.c */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "hv/guest.h"
#include "hv/x86.h"
#include "tests/unit/guest_ram.h"

int vformat(char *buf, size_t n, const char *fmt, va_list ap)
{
	return vsnprintf(buf, n, fmt, ap);
}

#define SETUP_SECTS 3
#define KERNEL_SIZE 10000
#define IMAGE_SIZE  ((SETUP_SECTS + 1) * 512 + KERNEL_SIZE)

static u8 image[IMAGE_SIZE];
static struct guest guest;
static struct entry_state entry;
static char err[200];

static void put(unsigned at, u64 v, unsigned size)
{
	memcpy(image + at, &v, size);
}

static void make_image(void)
{
	memset(image, 0, sizeof(image));
	put(0x1f1, SETUP_SECTS, 1);
	put(0x1fe, 0xaa55, 2);
	put(0x200, 0x66eb, 2); /* jump: header ends at 0x268 */
	put(0x202, 0x53726448, 4);
	put(0x206, 0x020f, 2);
	put(0x22c, 0x7fffffff, 4);
	put(0x230, 0x200000, 4);
	put(0x234, 1, 1);
	put(0x236, 1, 2);
	put(0x238, 2047, 4);
	put(0x250, 0xdead, 8); /* setup_data must not be believed */
	put(0x258, 0x1000000, 8);
	put(0x260, 0x300000, 4);
	for (unsigned i = 0; i < KERNEL_SIZE; i++)
		image[(SETUP_SECTS + 1) * 512 + i] = (u8)(i * 7);
}

static int setup(void **state)
{
	(void)state;
	make_image();
	memset(&guest, 0, sizeof(guest));
	guest_ram_create(&guest.mem, 64 * MIB);
	guest.kernel = (struct guest_module){.start = ptr_hpa(image), .size = sizeof(image)};
	guest.cmdline = "console=ttyS0 quiet";
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

static u64 peek(u64 gpa, unsigned size)
{
	u64 v = 0;

	assert_true(guest_read(&guest.mem, GPA(gpa), &v, size));
	return v;
}

static void expect_refused(const char *what)
{
	assert_false(load_linux(&guest, &entry, err, sizeof(err)));
	assert_non_null(strstr(err, what));
	assert_null(strchr(err, '\n'));
}

static void the_kernel_finds_itself_loaded(void **state)
{
	static u8 copy[KERNEL_SIZE];

	(void)state;
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	assert_int_equal(entry.mode, ENTRY_LONG);
	assert_int_equal(entry.rip, 0x1000200);
	assert_true(guest_read(&guest.mem, GPA(0x1000000), copy, sizeof(copy)));
	assert_memory_equal(copy, image + (SETUP_SECTS + 1) * 512, sizeof(copy));
}

static void boot_params_say_what_the_protocol_wants(void **state)
{
	char line[64] = {0};
	u64 zp, ram = 0;

	(void)state;
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	zp = entry.rsi;
	assert_int_equal(peek(zp + 0x1fe, 2), 0xaa55);
	assert_int_equal(peek(zp + 0x202, 4), 0x53726448);
	assert_int_equal(peek(zp + 0x210, 1), 0xff);
	assert_int_equal(peek(zp + 0x211, 1) & 1, 1);
	assert_int_equal(peek(zp + 0x214, 4), 0x1000000);
	assert_int_equal(peek(zp + 0x218, 8), 0); /* no initrd */
	assert_int_equal(peek(zp + 0x250, 8), 0);
	assert_int_equal(peek(zp + 0x070, 8), L1_ACPI_RSDP);
	assert_int_equal(peek(zp + 0x1ef, 1), 0); /* sentinel */
	assert_true(guest_read(&guest.mem, GPA(peek(zp + 0x228, 4)), line, sizeof(line) - 1));
	assert_string_equal(line, guest.cmdline);
	for (unsigned i = 0; i < peek(zp + 0x1e8, 1); i++)
		if (peek(zp + 0x2d0 + i * 20 + 16, 4) == MEM_RAM)
			ram += peek(zp + 0x2d0 + i * 20 + 8, 8);
	assert_int_equal(ram, 63 * MIB + L1_EBDA);
}

static void page_tables_and_segments_are_flat(void **state)
{
	struct paging p;
	struct page_fault f;
	gpa_t gpa;

	(void)state;
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	p = (struct paging){
		.cr0 = CR0_PG | CR0_PE, .cr3 = entry.cr3, .cr4 = CR4_PAE, .efer = EFER_LMA, .phys_bits = 40};
	for (u64 at = 0x12345; at < 4 * GIB; at += 0x7654321) {
		assert_true(guest_walk(&guest.mem, &p, at, ACCESS_WRITE, &gpa, &f));
		assert_int_equal(gpa.v, at);
	}
	assert_false(guest_walk(&guest.mem, &p, 4 * GIB, ACCESS_READ, &gpa, &f));
	assert_int_equal(entry.gdt_limit, 31);
	assert_int_equal(peek(entry.gdt_base + 16, 8), 0x00af9b000000ffff);
	assert_int_equal(peek(entry.gdt_base + 24, 8), 0x00cf93000000ffff);
}

static void initrds_stand_high_and_behind_each_other(void **state)
{
	static u8 first[5001], second[100];
	u8 seen[5104];
	u64 at;

	(void)state;
	memset(first, 0x11, sizeof(first));
	memset(second, 0x22, sizeof(second));
	guest.nr_modules = 3;
	guest.module[0] = (struct guest_module){ptr_hpa(first), sizeof(first), "", ROLE_INITRD};
	guest.module[1] = (struct guest_module){ptr_hpa(second), sizeof(second), "", ROLE_DISK};
	guest.module[2] = (struct guest_module){ptr_hpa(second), sizeof(second), "", ROLE_INITRD};
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	at = peek(entry.rsi + 0x218, 4);
	assert_int_equal(peek(entry.rsi + 0x21c, 4), 5004 + 100);
	assert_int_equal(at, 64 * MIB - 0x2000);
	assert_true(guest_read(&guest.mem, GPA(at), seen, sizeof(seen)));
	assert_memory_equal(seen, first, sizeof(first));
	assert_int_equal(seen[5001] | seen[5002] | seen[5003], 0);
	assert_memory_equal(seen + 5004, second, sizeof(second));
}

static void initrd_addr_max_is_kept(void **state)
{
	static u8 initrd[100];

	(void)state;
	put(0x22c, 0x2ffffff, 4);
	guest.nr_modules = 1;
	guest.module[0] = (struct guest_module){ptr_hpa(initrd), sizeof(initrd), "", ROLE_INITRD};
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	assert_int_equal(peek(entry.rsi + 0x218, 4), 0x2fff000);
	put(0x22c, 0x10000, 4);
	expect_refused("role=initrd");
}

static void an_initrd_that_is_too_large_is_refused(void **state)
{
	static u8 initrd[100];

	(void)state;
	guest.nr_modules = 1;
	guest.module[0] = (struct guest_module){ptr_hpa(initrd), 46 * MIB, "", ROLE_INITRD};
	expect_refused("role=initrd");
	guest.module[0].size = ~0ull;
	expect_refused("role=initrd");
}

static void a_relocatable_kernel_moves_down(void **state)
{
	(void)state;
	put(0x258, 0x7000000, 8);
	assert_true(load_linux(&guest, &entry, err, sizeof(err)));
	assert_int_equal(entry.rip, 0x200200);
	assert_int_equal(peek(entry.rsi + 0x214, 4), 0x200000);
	put(0x234, 0, 1);
	expect_refused("mem=64M");
}

static void a_kernel_larger_than_ram_is_refused(void **state)
{
	(void)state;
	put(0x260, 0x40000000, 4);
	expect_refused("mem=64M");
	put(0x260, 0xffffffff, 4);
	expect_refused("mem=64M");
}

static void other_files_are_left_to_other_loaders(void **state)
{
	(void)state;
	put(0x202, 0, 4);
	assert_false(load_linux(&guest, &entry, err, sizeof(err)));
	assert_string_equal(err, "");
	for (guest.kernel.size = 0; guest.kernel.size < 0x264; guest.kernel.size += 0x11) {
		assert_false(load_linux(&guest, &entry, err, sizeof(err)));
		assert_string_equal(err, "");
	}
}

static void bad_headers_end_in_one_line(void **state)
{
	(void)state;
	put(0x236, 0, 2);
	expect_refused("64-bit");
	make_image();
	put(0x206, 0x20b, 2);
	expect_refused("64-bit");
	make_image();
	put(0x230, 0x300000, 4);
	expect_refused("alignment");
	put(0x230, 0, 4);
	expect_refused("alignment");
	make_image();
	put(0x1f1, 255, 1);
	expect_refused("cut off");
	make_image();
	put(0x201, 0x10, 1);
	expect_refused("header length");
	make_image();
	put(0x238, 5, 4);
	expect_refused("command line");
	make_image();
	put(0x258, ~0ull - 0x1000, 8);
	put(0x234, 0, 1);
	expect_refused("mem=64M");
}

static void without_l0_memory_it_fails_cleanly(void **state)
{
	(void)state;
	for (int n = 1; n <= 3; n++) {
		pages_failing = n;
		expect_refused("no memory");
		assert_int_equal(pages_live, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_kernel_finds_itself_loaded, setup, teardown),
		cmocka_unit_test_setup_teardown(boot_params_say_what_the_protocol_wants, setup, teardown),
		cmocka_unit_test_setup_teardown(page_tables_and_segments_are_flat, setup, teardown),
		cmocka_unit_test_setup_teardown(initrds_stand_high_and_behind_each_other, setup, teardown),
		cmocka_unit_test_setup_teardown(initrd_addr_max_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(an_initrd_that_is_too_large_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_relocatable_kernel_moves_down, setup, teardown),
		cmocka_unit_test_setup_teardown(a_kernel_larger_than_ram_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(other_files_are_left_to_other_loaders, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_headers_end_in_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(without_l0_memory_it_fails_cleanly, setup, teardown),
	};

	return cmocka_run_group_tests_name("load_linux", tests, NULL, NULL);
}
