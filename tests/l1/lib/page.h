/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of memory, and the library's own page tables: 4 GiB one to one in 2 MiB pages; finer or further maps
 * on demand. */
#pragma once

#include "types.h"

#define PTE_P   BIT(0)
#define PTE_W   BIT(1)
#define PTE_U   BIT(2)
#define PTE_A   BIT(5)
#define PTE_D   BIT(6)
#define PTE_PS  BIT(7)
#define PTE_NX  BIT(63)
#define PTE_RAM (PTE_P | PTE_W | PTE_U)

extern u64 page_pml4[512];

/* A zeroed page of the image's own arena. There is no way to give it back; a program needs few. */
void *page_alloc(void);
void *pages_alloc(u32 count, u64 align);

/* The 4 KiB (2 MiB) entry that maps va; tables are made and large pages are split as needed. Flush with
 * invlpg(). */
u64 *page_entry(u64 va);
u64 *page_entry_2m(u64 va);
void page_map(u64 va, u64 pa, u64 flags);
void page_map_2m(u64 va, u64 pa, u64 flags);
