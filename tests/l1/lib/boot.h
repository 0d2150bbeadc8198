/* SPDX-License-Identifier: Apache-2.0 */
/* What the loader said, copied before anything else can overwrite it. */
#pragma once

#include "types.h"

enum { MEM_RAM = 1, MEM_RESERVED = 2, MEM_ACPI = 3, MEM_NVS = 4 };

struct mem_range {
	u64 base, size;
	u32 type;
};

struct boot {
	u32 magic, flags;
	char cmdline[512];
	u32 range_count;
	struct mem_range ranges[32];
	u32 mem_upper_kb;
	u32 module_count, module_start, module_end;
};

extern struct boot boot;

void boot_read(void);
u64 boot_ram_bytes(void);
bool boot_option(const char *word); /* a word of the command line */
extern u8 image_end[];
