/* SPDX-License-Identifier: Apache-2.0 */
/* A map of physical memory: ranges sorted by address, never overlapping, never empty. Pure; compiles on the
 * host. */
#ifndef NIDUS_MM_MEMMAP_H
#define NIDUS_MM_MEMMAP_H

#include "hv/types.h"

#define MEMMAP_MAX 512

/* Numbers as in the ACPI/e820 address-range types. When two firmware ranges overlap the less usable type
 * wins. */
enum mem_type { MEM_RAM = 1, MEM_RESERVED = 2, MEM_ACPI = 3, MEM_NVS = 4, MEM_BAD = 5, MEM_USED = 100 };

struct mem_range {
	u64 start, end; /* [start, end), bytes */
	enum mem_type type;
};

struct memmap {
	unsigned count;
	struct mem_range range[MEMMAP_MAX];
};

/* Add [start, end) as `type`; a less usable type wins where ranges overlap. False when the map is full (the
 * range is then lost). */
bool memmap_add(struct memmap *m, u64 start, u64 end, enum mem_type type);
/* Mark every page that [start, end) touches as MEM_USED (rounded outwards to pages). */
bool memmap_reserve(struct memmap *m, u64 start, u64 end);
/* Type at `addr`; MEM_RESERVED where nothing is said. */
enum mem_type memmap_type(const struct memmap *m, u64 addr);
/* First byte behind the highest RAM. */
u64 memmap_ram_top(const struct memmap *m);

#endif
