/* SPDX-License-Identifier: Apache-2.0 */
/* What both loader parsers do: copy strings, ranges and modules into struct boot_info, with bounds. Pure. */
#include "boot/internal.h"
#include "hv/lib.h"

const char *boot_string(struct boot_info *out, const char *s, size_t max)
{
	size_t len = s ? strnlen(s, max) : 0;
	char *to = out->strings + out->strings_used;

	if (len == 0)
		return "";
	if (len + 1 > sizeof(out->strings) - out->strings_used) {
		out->error = "the loader's strings are longer than 16 KiB together";
		return "";
	}
	memcpy(to, s, len);
	to[len] = '\0';
	out->strings_used += len + 1;
	return to;
}

/* A RAM range that finds no room is only less memory; a hole in RAM that finds none would be handed out, so
 * that is an error. */
void boot_memory(struct boot_info *out, u64 start, u64 size, u32 type)
{
	u64 end = start + size < start ? UINT64_MAX : start + size;
	enum mem_type t = type >= MEM_RAM && type <= MEM_BAD ? (enum mem_type)type : MEM_RESERVED;

	if (!memmap_add(&out->mem, start, end, t) && t != MEM_RAM)
		out->error = "the firmware's memory map has too many ranges";
}

void boot_module_add(struct boot_info *out, u64 start, u64 end, const char *string, size_t max)
{
	if (out->nr_modules == BOOT_MODULES_MAX) {
		out->error = "more than 64 modules";
		return;
	}
	out->module[out->nr_modules++] = (struct boot_module){
		.start = HPA(start),
		.size = end > start ? end - start : 0,
		.string = boot_string(out, string, max),
	};
}

void boot_framebuffer(struct boot_info *out, struct framebuffer fb, u8 type, const u8 colours[6])
{
	if (type != 1 && type != 2)
		return;
	fb.text = type == 2;
	if (!fb.text) {
		fb.red_shift = colours[0];
		fb.green_shift = colours[2];
		fb.blue_shift = colours[4];
	}
	out->fb = fb;
	out->has_fb = true;
}
