/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two loader parsers only. */
#ifndef NIDUS_BOOT_INTERNAL_H
#define NIDUS_BOOT_INTERNAL_H

#include "boot/boot_info.h"

/* Copy a string of at most `max` bytes into out->strings; "" and out->error when it is full. Never NULL. */
const char *boot_string(struct boot_info *out, const char *s, size_t max);
/* One entry of the firmware's map; unknown types are reserved. */
void boot_memory(struct boot_info *out, u64 start, u64 size, u32 type);
/* One module [start, end). More than there is room for: out->error. */
void boot_module_add(struct boot_info *out, u64 start, u64 end, const char *string, size_t max);
/* The framebuffer as multiboot describes it (type 1: RGB, 2: EGA text); other types are ignored. `colours`:
 * position and size of R, G, B. */
void boot_framebuffer(struct boot_info *out, struct framebuffer fb, u8 type, const u8 colours[6]);

#endif
