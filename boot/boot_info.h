/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loader told us, in a form that is the same for multiboot1 and multiboot2. Everything is copied
 * into this structure (which lives in .bss) before anything else in memory is written; the loader's own
 * structures are never looked at again. Compiles on the host.
 */
#ifndef NIDUS_BOOT_BOOT_INFO_H
#define NIDUS_BOOT_BOOT_INFO_H

#include "hv/types.h"
#include "mm/memmap.h"

#define BOOT_MODULES_MAX 64
#define BOOT_STRINGS_MAX 16384

struct boot_module {
	hpa_t start;
	u64 size;           /* bytes */
	const char *string; /* the module's description, in boot_info.strings */
};

struct framebuffer {
	hpa_t base;
	u32 pitch, width, height; /* bytes, pixels, pixels (or characters for text) */
	u8 bpp;
	bool text; /* EGA text, 80x25 at 0xb8000 */
	u8 red_shift, green_shift, blue_shift;
};

struct boot_info {
	const char *cmdline;
	const char *loader; /* name of the loader */
	struct memmap mem;  /* sorted, without overlaps */
	unsigned nr_modules;
	struct boot_module module[BOOT_MODULES_MAX];
	bool has_fb;
	struct framebuffer fb;
	u8 rsdp[36]; /* copy of the RSDP of the loader's tag; all zero when there was none */
	char strings[BOOT_STRINGS_MAX];
	size_t strings_used;
	const char *error; /* why the loader's data could not be used, or NULL */
};

extern struct boot_info boot_info;

/* Translate. `info` is readable memory at its machine address. Pure: no write but to *out. */
void mb1_parse(const void *info, struct boot_info *out);
void mb2_parse(const void *info, struct boot_info *out);

#endif
