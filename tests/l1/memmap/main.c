/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory map promises RAM: first and last page of each range must hold what is written to them. Every
 * other address the guest can name may hold anything, but reading it must neither fault nor stop the machine.
 */
#include "l1.h"

const char test_title[] = "memory map";

static bool in_image(u64 addr)
{
	return addr >= 0x400000 && addr < addr_of(image_end);
}

static bool keeps(u64 page)
{
	volatile u64 *p = ptr_to(0x4000000000ull + (page & (PAGE_2M - 1)));
	u64 old;
	bool ok;

	page_map_2m(addr_of(p), page & ~(PAGE_2M - 1), PTE_RAM);
	old = *p;
	*p = page ^ 0x5a5a5a5a5a5a5a5a;
	ok = *p == (page ^ 0x5a5a5a5a5a5a5a5a);
	*p = old;
	return ok;
}

static u64 read_once(u64 page)
{
	volatile u64 *p = ptr_to(0x4000000000ull + (page & (PAGE_2M - 1)));

	page_map_2m(addr_of(p), page & ~(PAGE_2M - 1), PTE_RAM);
	return *p;
}

static void check_ranges(void)
{
	u32 bad = 0, overlaps = 0;

	for (u32 i = 0; i < boot.range_count; i++) {
		const struct mem_range *r = &boot.ranges[i];
		u64 first = (r->base + 4095) & ~4095ull, last = ((r->base + r->size) & ~4095ull) - 4096;

		for (u32 j = 0; j < i; j++)
			overlaps += r->base < boot.ranges[j].base + boot.ranges[j].size &&
				    boot.ranges[j].base < r->base + r->size;
		if (r->type != MEM_RAM || r->size < 4096 || !first)
			continue;
		if (!in_image(first))
			count_eq(bad, "first-page", keeps(first), true);
		if (!in_image(last))
			count_eq(bad, "last-page", keeps(last), true);
	}
	expect_eq("ram-ranges-hold-data", bad, 0);
	expect_eq("ranges-do-not-overlap", overlaps, 0);
}

/* Every 2 MiB up to 8 GiB, then the last page below each power of two up to the physical width. */
static void probe_everything(void)
{
	u64 sum = 0;

	for (u64 page = 0; page < 0x200000000; page += PAGE_2M)
		if (page != 0xfec00000 && page != 0xfee00000)
			sum += read_once(page + PAGE_2M - PAGE_SIZE);
	for (u32 bit = 33; bit <= phys_bits(); bit++)
		sum += read_once(BIT(bit) - PAGE_SIZE);
	asm volatile("" : : "r"(sum));
	expect_true("every-address-can-be-read", true);
}

void test_main(void)
{
	expect_eq("loaded-by-multiboot", boot.magic, 0x2badb002);
	expect_true("has-memory-map", boot.range_count > 0);
	expect_true("ram-for-this-image", boot_ram_bytes() > addr_of(image_end) - 0x400000);
	check_ranges();
	probe_everything();
}
