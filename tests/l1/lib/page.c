/* SPDX-License-Identifier: Apache-2.0 */
/* Page arena and page tables. SDM "4-Level Paging". */
#include "page.h"
#include "print.h"
#include "report.h"
#include "x86.h"

#define ARENA_PAGES 768

static u8 arena[ARENA_PAGES][4096] __attribute__((aligned(4096)));
static u32 arena_used;

void *pages_alloc(u32 count, u64 align)
{
	u64 base = addr_of(arena[arena_used]);
	u64 start = (base + align - 1) & ~(align - 1);

	arena_used += (u32)((start - base) / PAGE_SIZE) + count;
	if (arena_used > ARENA_PAGES) {
		print("FAIL page-arena page.c:%d got %u want %u\nDONE 1 checks, 1 failed\n", __LINE__,
		      arena_used, ARENA_PAGES);
		machine_exit(2);
	}
	memset(ptr_to(start), 0, count * PAGE_SIZE);
	return ptr_to(start);
}

void *page_alloc(void)
{
	return pages_alloc(1, PAGE_SIZE);
}

static u64 *next_table(u64 *entry)
{
	if (!(*entry & PTE_P))
		*entry = addr_of(page_alloc()) | PTE_RAM;
	return ptr_to(*entry & 0x000ffffffffff000);
}

static void split_2m(u64 *entry)
{
	u64 old = *entry;
	u64 *table = page_alloc();

	for (u64 i = 0; i < 512; i++)
		table[i] = (old & ~PTE_PS) + i * PAGE_SIZE;
	*entry = addr_of(table) | PTE_RAM;
}

u64 *page_entry_2m(u64 va)
{
	u64 *pdpt = next_table(&page_pml4[va >> 39 & 511]);

	return next_table(&pdpt[va >> 30 & 511]) + (va >> 21 & 511);
}

u64 *page_entry(u64 va)
{
	u64 *pde = page_entry_2m(va);

	if ((*pde & PTE_P) && (*pde & PTE_PS))
		split_2m(pde);
	return next_table(pde) + (va >> 12 & 511);
}

void page_map(u64 va, u64 pa, u64 flags)
{
	*page_entry(va) = pa | flags;
	invlpg(va);
}

void page_map_2m(u64 va, u64 pa, u64 flags)
{
	*page_entry_2m(va) = pa | flags | PTE_PS;
	invlpg(va);
}
