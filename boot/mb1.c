/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot 0.6.96 "Boot information format" to struct boot_info. Pure: reads the loader's memory, writes
 * only *out. */
#include "boot/internal.h"
#include "hv/lib.h"

#define HAS_MEM      BIT32(0)
#define HAS_CMDLINE  BIT32(2)
#define HAS_MODULES  BIT32(3)
#define HAS_MMAP     BIT32(6)
#define HAS_LOADER   BIT32(9)
#define HAS_FB       BIT32(12)
#define STRING_MAX   8192
#define MODULES_SANE 1024

struct mb1_info {
	u32 flags, mem_lower, mem_upper, boot_device, cmdline;
	u32 mods_count, mods_addr;
	u32 syms[4];
	u32 mmap_length, mmap_addr;
	u32 drives_length, drives_addr, config_table, loader_name, apm_table;
	u32 vbe_control_info, vbe_mode_info;
	u16 vbe_mode, vbe_interface_seg, vbe_interface_off, vbe_interface_len;
	u64 fb_addr;
	u32 fb_pitch, fb_width, fb_height;
	u8 fb_bpp, fb_type, colours[6];
} __attribute__((packed));

struct mb1_module {
	u32 start, end, string, reserved;
};

/* `size` counts what follows it. */
struct mb1_mmap {
	u32 size;
	u64 addr, len;
	u32 type;
} __attribute__((packed));

_Static_assert(offsetof(struct mb1_info, fb_addr) == 88, "multiboot: framebuffer_addr");
_Static_assert(sizeof(struct mb1_mmap) == 24, "multiboot: mmap entry");

static const void *at(u32 address)
{
	return hpa_ptr(HPA(address));
}

static void parse_mmap(const struct mb1_info *mb, struct boot_info *out)
{
	const u8 *p = at(mb->mmap_addr);
	u64 left = mb->mmap_length;

	while (left >= sizeof(struct mb1_mmap)) {
		struct mb1_mmap e;
		u64 step;

		memcpy(&e, p, sizeof(e));
		step = (u64)e.size + sizeof(e.size);
		if (e.size < sizeof(e) - sizeof(e.size) || step > left)
			break;
		boot_memory(out, e.addr, e.len, e.type);
		p += step;
		left -= step;
	}
}

static void parse_memory(const struct mb1_info *mb, struct boot_info *out)
{
	if (mb->flags & HAS_MMAP) {
		parse_mmap(mb, out);
	} else if (mb->flags & HAS_MEM) {
		boot_memory(out, 0, mb->mem_lower * KIB, MEM_RAM);
		boot_memory(out, MIB, mb->mem_upper * KIB, MEM_RAM);
	}
}

static void parse_modules(const struct mb1_info *mb, struct boot_info *out)
{
	const u8 *p = at(mb->mods_addr);

	for (u32 i = 0; i < MIN(mb->mods_count, (u32)MODULES_SANE); i++) {
		struct mb1_module m;

		memcpy(&m, p + i * sizeof(m), sizeof(m));
		boot_module_add(out, m.start, m.end, m.string ? at(m.string) : NULL, STRING_MAX);
	}
}

void mb1_parse(const void *info, struct boot_info *out)
{
	struct mb1_info mb;

	memcpy(&mb, info, sizeof(mb));
	out->cmdline = boot_string(out, mb.flags & HAS_CMDLINE ? at(mb.cmdline) : NULL, STRING_MAX);
	out->loader = boot_string(out, mb.flags & HAS_LOADER ? at(mb.loader_name) : NULL, STRING_MAX);
	parse_memory(&mb, out);
	if (mb.flags & HAS_MODULES)
		parse_modules(&mb, out);
	if (mb.flags & HAS_FB)
		boot_framebuffer(out,
				 (struct framebuffer){.base = HPA(mb.fb_addr),
						      .pitch = mb.fb_pitch,
						      .width = mb.fb_width,
						      .height = mb.fb_height,
						      .bpp = mb.fb_bpp},
				 mb.fb_type, mb.colours);
	if (out->mem.count == 0)
		out->error = "the loader gave no memory map";
}
