/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buddy allocator. All its state is the page array, never the free pages themselves, so that free memory
 * above 4 GiB needs no mapping and a stray write into free memory does not break it.
 */
#include "mm/palloc.h"
#include "hv/lib.h"
#include "hv/panic.h"
#include "hv/spinlock.h"

#define NONE    0xffffffffu
#define LOW_END (640 * KIB)

struct page {
	u32 next, prev; /* free list, page numbers; heads of free blocks only */
	u16 owner;
	u8 order;  /* of the block this page is the head of */
	bool head; /* of a free block */
};

static struct page *pages;
static u64 nr_pages, free_pages;
static u64 array_start, array_end; /* where the page array itself lies */
static u32 free_list[PALLOC_ORDER_MAX + 1];
static struct spinlock lock;
static u64 low_page;

static void list_push(u32 n, unsigned order)
{
	struct page *p = &pages[n];

	*p = (struct page){
		.next = free_list[order], .prev = NONE, .owner = PAGE_FREE, .order = (u8)order, .head = true};
	if (p->next != NONE)
		pages[p->next].prev = n;
	free_list[order] = n;
}

static void list_remove(u32 n)
{
	struct page *p = &pages[n];

	if (p->prev != NONE)
		pages[p->prev].next = p->next;
	else
		free_list[p->order] = p->next;
	if (p->next != NONE)
		pages[p->next].prev = p->prev;
	p->head = false;
}

/* Put a block back, joined with its buddies as far as they are free. */
static void give(u32 n, unsigned order)
{
	free_pages += 1ull << order;
	while (order < PALLOC_ORDER_MAX) {
		u32 buddy = n ^ (1u << order);

		if (buddy >= nr_pages || !pages[buddy].head || pages[buddy].order != order)
			break;
		list_remove(buddy);
		n = MIN(n, buddy);
		order++;
	}
	list_push(n, order);
}

static void set_owner(u32 n, unsigned order, u16 owner)
{
	for (u32 i = 0; i < 1u << order; i++)
		pages[n + i].owner = owner;
}

/* All whole pages of [start, end), in blocks as large as their addresses allow. */
static void give_range(u64 start, u64 end)
{
	u64 n = ALIGN_UP(start, PAGE_SIZE) >> PAGE_SHIFT, last = end >> PAGE_SHIFT;

	while (n < last) {
		unsigned order = 0;

		while (order < PALLOC_ORDER_MAX && !(n & (1ull << order)) && n + (2ull << order) <= last)
			order++;
		set_owner((u32)n, order, PAGE_FREE);
		give((u32)n, order);
		n += 1ull << order;
	}
}

/* The part of [start, end) in [from, to) that is not the page array. */
static void give_clipped(u64 start, u64 end, u64 from, u64 to)
{
	start = MAX(start, from);
	end = MIN(end, to);
	if (start >= end)
		return;
	if (array_end <= start || array_start >= end) {
		give_range(start, end);
		return;
	}
	if (start < array_start)
		give_range(start, array_start);
	if (array_end < end)
		give_range(array_end, end);
}

static void give_map(const struct memmap *map, u64 from, u64 to)
{
	for (unsigned i = 0; i < map->count; i++)
		if (map->range[i].type == MEM_RAM)
			give_clipped(map->range[i].start, map->range[i].end, from, to);
}

/* Highest place below 4 GiB that holds the page array. */
static void place_array(const struct memmap *map)
{
	u64 size = ALIGN_UP(nr_pages * sizeof(struct page), PAGE_SIZE);

	for (unsigned i = map->count; i > 0; i--) {
		const struct mem_range *r = &map->range[i - 1];
		u64 start = MAX(ALIGN_UP(r->start, PAGE_SIZE), MIB), end = MIN(r->end & PAGE_MASK, 4 * GIB);

		if (r->type == MEM_RAM && start < end && end - start >= size) {
			array_start = end - size;
			array_end = end;
			return;
		}
	}
	panic("no room for the page array (%llu KiB)", (unsigned long long)(size / KIB));
}

/* BIOS keeps its own data at both ends of low memory; page 0 is never it. The highest usable page is the
 * customary choice. */
static void find_low_page(const struct memmap *map)
{
	for (unsigned i = 0; i < map->count; i++) {
		const struct mem_range *r = &map->range[i];
		u64 end = MIN(r->end & PAGE_MASK, LOW_END);

		if (r->type == MEM_RAM && end >= ALIGN_UP(r->start, PAGE_SIZE) + PAGE_SIZE && end > PAGE_SIZE)
			low_page = end - PAGE_SIZE;
	}
}

void palloc_init(const struct memmap *map)
{
	nr_pages = memmap_ram_top(map) >> PAGE_SHIFT;
	place_array(map);
	pages = hpa_ptr(HPA(array_start));
	for (u64 i = 0; i < nr_pages; i++)
		pages[i] = (struct page){.owner = PAGE_ABSENT};
	for (unsigned i = 0; i <= PALLOC_ORDER_MAX; i++)
		free_list[i] = NONE;
	free_pages = 0;
	low_page = 0;
	find_low_page(map);
	give_map(map, MIB, 4 * GIB);
}

void palloc_add_high(const struct memmap *map)
{
	give_map(map, 4 * GIB, UINT64_MAX);
}

/* Lock held. The first page number of a free block of exactly `order`, split off a larger one where needed;
 * NONE: there is none. */
static u32 take(unsigned order)
{
	unsigned have = order;
	u32 n;

	while (have <= PALLOC_ORDER_MAX && free_list[have] == NONE)
		have++;
	if (have > PALLOC_ORDER_MAX)
		return NONE;
	n = free_list[have];
	list_remove(n);
	while (have > order) {
		have--;
		list_push(n + (1u << have), have);
	}
	free_pages -= 1ull << order;
	return n;
}

bool palloc(unsigned order, u16 owner, hpa_t *out)
{
	u32 n;

	BUG_ON(order > PALLOC_ORDER_MAX || owner == PAGE_FREE || owner == PAGE_ABSENT);
	spin_lock(&lock);
	n = take(order);
	if (n != NONE)
		set_owner(n, order, owner);
	spin_unlock(&lock);
	if (n == NONE)
		return false;
	*out = HPA((u64)n << PAGE_SHIFT);
	return true;
}

void pfree(hpa_t a, unsigned order)
{
	u64 n = a.v >> PAGE_SHIFT;

	BUG_ON(order > PALLOC_ORDER_MAX || n + (1ull << order) > nr_pages || (n & MASK(order)));
	for (u64 i = n; i < n + (1ull << order); i++) /* the caller's pages: nobody else changes them */
		BUG_ON(pages[i].owner == PAGE_FREE || pages[i].owner == PAGE_ABSENT);
	spin_lock(&lock);
	set_owner((u32)n, order, PAGE_FREE);
	give((u32)n, order);
	spin_unlock(&lock);
}

void *pages_alloc(unsigned order)
{
	hpa_t a;

	if (!palloc(order, PAGE_L0, &a))
		return NULL;
	return memset(hpa_ptr(a), 0, PAGE_SIZE << order);
}

void *page_alloc(void)
{
	return pages_alloc(0);
}

void page_free(void *p)
{
	if (p)
		pfree(ptr_hpa(p), 0);
}

u64 palloc_free_bytes(void)
{
	return free_pages << PAGE_SHIFT;
}

u16 palloc_owner(hpa_t a)
{
	u64 n = a.v >> PAGE_SHIFT;

	return n < nr_pages ? pages[n].owner : (u16)PAGE_ABSENT;
}

bool palloc_low_page(hpa_t *out)
{
	*out = HPA(low_page);
	return low_page != 0;
}
