/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page allocator: a buddy system over all usable RAM above 1 MiB, orders 0 (4 KiB) to 18 (1 GiB), with an
 * owner tag per page. Safe on all CPUs (one lock). Memory below 1 MiB is never handed out, except by
 * palloc_low_page.
 */
#ifndef NIDUS_MM_PALLOC_H
#define NIDUS_MM_PALLOC_H

#include "hv/types.h"
#include "mm/memmap.h"

#define PALLOC_ORDER_MAX 18

enum page_owner { PAGE_FREE, PAGE_ABSENT, PAGE_L0, PAGE_TABLE, PAGE_GUEST0 /* + guest id */ };

/* Build the allocator from RAM below 4 GiB that is not MEM_USED. The page array (for all RAM) is carved from
 * RAM itself. */
void palloc_init(const struct memmap *map);
/* Hand over the RAM above 4 GiB too: once hostpt_init has mapped it. */
void palloc_add_high(const struct memmap *map);
/* 2^order pages, aligned to their size, contents undefined. False when there are none. */
bool palloc(unsigned order, u16 owner, hpa_t *out);
void pfree(hpa_t a, unsigned order);
/* One zeroed page of L0's own; NULL when there is none. Free with page_free. */
void *page_alloc(void);
void page_free(void *p);
/* 2^order zeroed pages of L0's own; NULL when there are none. */
void *pages_alloc(unsigned order);
u64 palloc_free_bytes(void);
u16 palloc_owner(hpa_t a);
/* A page below 640 KiB for the AP trampoline; false when there is none. */
bool palloc_low_page(hpa_t *out);

#endif
