/* SPDX-License-Identifier: Apache-2.0 */
/* An L1's memory: where RAM is, where it is not, what the guest is told, and that all comes back to the
 * allocator. */
/* SOURCES: mm/l1mem.c mm/ept.c mm/memmap.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "mm/hostpt.h"
#include "mm/l1mem.h"
#include "mm/palloc.h"

/*
 * The allocator's stand-in: machine memory is counted, and only orders up to `max_order` are there. Blocks
 * start as rubbish.
 */
static u64 free_bytes;
static unsigned max_order;
static u64 guest_bytes; /* now user pages */
static bool zero_at_handover;
static struct {
	char *start;
	u64 size, left; /* of a block that may come back in parts */
} block[16];

bool palloc(unsigned order, u16 owner, hpa_t *out)
{
	u64 size = PAGE_SIZE << order;

	assert_int_equal(owner, PAGE_GUEST0 + 3);
	if (order > max_order || size > free_bytes)
		return false;
	free_bytes -= size;
	*out = ptr_hpa(aligned_alloc(size, size));
	for (unsigned i = 0;; i++) {
		assert_true(i < 16);
		if (block[i].left)
			continue;
		block[i].start = hpa_ptr(*out);
		block[i].size = block[i].left = size;
		break;
	}
	memset(hpa_ptr(*out), 0x5a, 64);
	memset((char *)hpa_ptr(*out) + size - 64, 0x5a, 64);
	return true;
}

void *pages_alloc(unsigned order)
{
	return calloc(PAGE_SIZE, 1u << order);
}

void pfree(hpa_t a, unsigned order)
{
	u64 size = PAGE_SIZE << order;
	char *p = hpa_ptr(a);

	free_bytes += size;
	for (unsigned i = 0; i < 16; i++) {
		if (!block[i].left || p < block[i].start || p + size > block[i].start + block[i].size)
			continue;
		assert_true(block[i].left >= size && !((u64)(p - block[i].start) & (size - 1)));
		block[i].left -= size;
		if (!block[i].left)
			free(block[i].start);
		return;
	}
	free(p); /* of pages_alloc */
}

u64 palloc_free_bytes(void)
{
	return free_bytes;
}

void hostpt_set_guest(hpa_t a, u64 size, bool guest)
{
	const char *p = hpa_ptr(a);

	if (guest)
		zero_at_handover &= !p[0] && !p[63] && !p[size - 64] && !p[size - 1];
	guest_bytes += guest ? size : 0 - size;
}

static struct l1mem mem;
static struct memmap map;

static int setup(void **state)
{
	(void)state;
	free_bytes = 1 * GIB;
	max_order = PALLOC_ORDER_MAX;
	guest_bytes = 0;
	zero_at_handover = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	l1mem_destroy(&mem);
	assert_int_equal(free_bytes, 1 * GIB);
	assert_int_equal(guest_bytes, 0);
	return 0;
}

static void memory_comes_in_large_zeroed_chunks(void **state)
{
	(void)state;
	free_bytes = 60 * MIB; /* no block of 64 */
	assert_true(l1mem_create(&mem, 50 * MIB + 1, 3));
	free_bytes += 1 * GIB - 60 * MIB;
	assert_int_equal(mem.ram, 52 * MIB);
	assert_int_equal(mem.count, 3); /* 32 + 16 + 4 */
	assert_int_equal(mem.chunk[0].size, 32 * MIB);
	assert_int_equal(mem.chunk[2].gpa, 48 * MIB);
	assert_int_equal(guest_bytes, 52 * MIB);
	assert_true(zero_at_handover);
}

static void one_chunk_when_there_is_a_block_for_it(void **state)
{
	(void)state;
	assert_true(l1mem_create(&mem, 50 * MIB + 1, 3));
	assert_int_equal(mem.count, 1);
	assert_int_equal(mem.chunk[0].size, 52 * MIB);
	assert_int_equal(free_bytes, 1 * GIB - 52 * MIB);
	assert_int_equal(guest_bytes, 52 * MIB);
	assert_true(zero_at_handover);
}

static void a_fragmented_machine_gives_smaller_chunks(void **state)
{
	(void)state;
	max_order = 10;
	assert_true(l1mem_create(&mem, 16 * MIB, 3));
	assert_int_equal(mem.count, 4);
	for (unsigned i = 0; i < mem.count; i++)
		assert_int_equal(mem.chunk[i].gpa, i * 4 * MIB);
}

static void too_much_leaves_nothing_behind(void **state)
{
	(void)state;
	assert_false(l1mem_create(&mem, 2 * GIB, 3));
	assert_false(l1mem_create(&mem, ~0ull, 3));
	assert_false(l1mem_create(&mem, 0, 3));
	max_order = 8; /* no 2 MiB block left */
	assert_false(l1mem_create(&mem, 4 * MIB, 3));
	assert_int_equal(mem.count, 0);
	assert_int_equal(free_bytes, 1 * GIB);
	assert_int_equal(guest_bytes, 0);
}

/* RAM of a large guest, made by hand: 3 GiB low in 1 GiB chunks and 1 GiB above 4 GiB. */
static void large_guest(struct l1mem *m)
{
	*m = (struct l1mem){.count = 4, .ram = 4 * GIB, .low = 3 * GIB, .high = GIB};
	for (unsigned i = 0; i < 4; i++)
		m->chunk[i] = (struct l1mem_chunk){i == 3 ? 4 * GIB : i * GIB, (10 - i) * GIB, GIB};
}

static void translation_knows_what_is_ram(void **state)
{
	struct l1mem m;
	hpa_t hpa;
	u64 run;

	(void)state;
	large_guest(&m);
	assert_true(l1mem_translate(&m, GPA(GIB + 5), &hpa, &run));
	assert_int_equal(hpa.v, 9 * GIB + 5);
	assert_int_equal(run, GIB - 5);
	assert_true(l1mem_translate(&m, GPA(5 * GIB - 1), &hpa, &run));
	assert_int_equal(hpa.v, 8 * GIB - 1);
	assert_int_equal(run, 1);
	assert_false(l1mem_translate(&m, GPA(3 * GIB), &hpa, &run));
	assert_false(l1mem_translate(&m, GPA(4 * GIB - 1), &hpa, &run));
	assert_false(l1mem_translate(&m, GPA(5 * GIB), &hpa, &run));
	assert_false(l1mem_translate(&m, GPA(~0ull), &hpa, &run));
	assert_false(l1mem_translate(&m, GPA(L1_LAPIC), &hpa, NULL));
}

static void video_memory_is_no_ram(void **state)
{
	struct l1mem m;
	hpa_t hpa;
	u64 run;

	(void)state;
	large_guest(&m);
	assert_true(l1mem_translate(&m, GPA(0x9ffff), &hpa, &run));
	assert_int_equal(run, 1);
	assert_false(l1mem_translate(&m, GPA(0xa0000), &hpa, &run));
	assert_false(l1mem_translate(&m, GPA(0xbffff), &hpa, &run));
	assert_true(l1mem_translate(&m, GPA(0xc0000), &hpa, &run));
	assert_int_equal(run, GIB - 0xc0000);
}

static void *host_page(void *ctx)
{
	void *p = aligned_alloc(PAGE_SIZE, PAGE_SIZE);

	(void)ctx;
	memset(p, 0, PAGE_SIZE);
	return p;
}

static void host_release(void *ctx, void *page)
{
	(void)ctx;
	free(page);
}

/* EPT01 and l1mem_translate must agree about every byte, and large pages be used. */
static void ept01_says_the_same(void **state)
{
	static const u64 probe[] = {0,           0x9ffff, 0xa0000,     0xbffff, 0xc0000,     0xfffff,
				    MIB,         2 * MIB, GIB - 1,     GIB,     3 * GIB - 1, 3 * GIB,
				    4 * GIB - 1, 4 * GIB, 5 * GIB - 1, 5 * GIB, L1_LAPIC};
	const struct ept_source source = {.page = host_page, .release = host_release};
	struct l1mem m;
	struct ept ept;

	(void)state;
	large_guest(&m);
	assert_true(ept_init(&ept, &source, 3));
	assert_true(l1mem_map(&m, &ept));
	for (unsigned i = 0; i < ARRAY_SIZE(probe); i++) {
		struct ept_leaf leaf = ept_lookup(&ept, probe[i]);
		hpa_t hpa = HPA(0);
		bool ram = l1mem_translate(&m, GPA(probe[i]), &hpa, NULL);

		assert_int_equal(leaf.entry != 0, ram);
		assert_int_equal(leaf.hpa, ram ? hpa.v : 0);
		if (ram)
			assert_int_equal(leaf.entry & (EPT_RWX | EPT_TYPE_MASK | EPT_IPAT),
					 EPT_RWX | EPT_TYPE(MEMTYPE_WB));
	}
	assert_int_equal(ept_lookup(&ept, GIB).level, 3);
	assert_int_equal(ept_lookup(&ept, 2 * MIB).level, 2);
	ept_destroy(&ept);
}

/* BT-08: all that the map calls RAM is there, and RAM that the map does not show is only what lies below 1
 * MiB. */
static void the_map_promises_what_is_there(void **state)
{
	struct l1mem m;
	u64 ram = 0;

	(void)state;
	large_guest(&m);
	l1mem_memmap(&m, &map);
	for (unsigned i = 0; i < map.count; i++) {
		const struct mem_range *r = &map.range[i];
		u64 run = 0;
		hpa_t hpa;

		assert_true(!i || r->start >= map.range[i - 1].end);
		if (r->type != MEM_RAM)
			continue;
		ram += r->end - r->start;
		for (u64 at = r->start; at < r->end; at += run)
			assert_true(l1mem_translate(&m, GPA(at), &hpa, &run));
	}
	assert_int_equal(ram, 4 * GIB - MIB + L1_EBDA);
	assert_int_equal(memmap_type(&map, L1_ACPI_RSDP), MEM_RESERVED);
	assert_int_equal(memmap_type(&map, L1_LAPIC), MEM_RESERVED);
	assert_int_equal(memmap_type(&map, L1_IOAPIC), MEM_RESERVED);
	assert_int_equal(memmap_type(&map, 4 * GIB), MEM_RAM);
	assert_int_equal(memmap_ram_top(&map), 5 * GIB);
}

static void a_small_guest_has_no_high_ram(void **state)
{
	(void)state;
	assert_true(l1mem_create(&mem, 64 * MIB, 3));
	l1mem_memmap(&mem, &map);
	assert_int_equal(memmap_ram_top(&map), 64 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_comes_in_large_zeroed_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(one_chunk_when_there_is_a_block_for_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_fragmented_machine_gives_smaller_chunks, setup, teardown),
		cmocka_unit_test_setup_teardown(too_much_leaves_nothing_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(translation_knows_what_is_ram, setup, teardown),
		cmocka_unit_test_setup_teardown(video_memory_is_no_ram, setup, teardown),
		cmocka_unit_test_setup_teardown(ept01_says_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(the_map_promises_what_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(a_small_guest_has_no_high_ram, setup, teardown),
	};

	return cmocka_run_group_tests_name("l1mem", tests, NULL, NULL);
}
