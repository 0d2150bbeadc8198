/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot2 "Boot information format" to struct boot_info. Pure: reads the loader's memory, writes only
 * *out. */
#include "boot/internal.h"
#include "hv/lib.h"

enum mb2_tag_type {
	TAG_END = 0,
	TAG_CMDLINE = 1,
	TAG_LOADER = 2,
	TAG_MODULE = 3,
	TAG_MMAP = 6,
	TAG_FRAMEBUFFER = 8,
	TAG_ACPI_OLD = 14,
	TAG_ACPI_NEW = 15,
};

struct mb2_tag {
	u32 type, size; /* size: without the padding to 8 bytes */
};

struct mb2_module {
	struct mb2_tag tag;
	u32 start, end;
	char string[];
};

struct mb2_mmap {
	struct mb2_tag tag;
	u32 entry_size, entry_version;
};

struct mb2_mmap_entry {
	u64 addr, len;
	u32 type, zero;
};

struct mb2_framebuffer {
	struct mb2_tag tag;
	u64 addr;
	u32 pitch, width, height;
	u8 bpp, type;
	u16 reserved;
	u8 colours[6];
} __attribute__((packed));

static const char *text_of(const struct mb2_tag *tag, struct boot_info *out)
{
	return boot_string(out, (const char *)(tag + 1), tag->size - sizeof(*tag));
}

static void parse_module(const struct mb2_tag *tag, struct boot_info *out)
{
	const struct mb2_module *m = (const void *)tag;

	if (tag->size >= sizeof(*m))
		boot_module_add(out, m->start, m->end, m->string, tag->size - sizeof(*m));
}

static void parse_mmap(const struct mb2_tag *tag, struct boot_info *out)
{
	const struct mb2_mmap *m = (const void *)tag;
	struct mb2_mmap_entry e;

	if (tag->size < sizeof(*m) || m->entry_size < sizeof(e))
		return;
	for (u32 at = sizeof(*m); at + sizeof(e) <= tag->size && m->entry_size <= tag->size - at;
	     at += m->entry_size) {
		memcpy(&e, (const u8 *)tag + at, sizeof(e));
		boot_memory(out, e.addr, e.len, e.type);
	}
}

static void parse_framebuffer(const struct mb2_tag *tag, struct boot_info *out)
{
	struct mb2_framebuffer f = {0};

	if (tag->size < offsetof(struct mb2_framebuffer, colours))
		return;
	memcpy(&f, tag, MIN(tag->size, sizeof(f)));
	boot_framebuffer(out,
			 (struct framebuffer){.base = HPA(f.addr),
					      .pitch = f.pitch,
					      .width = f.width,
					      .height = f.height,
					      .bpp = f.bpp},
			 f.type, f.colours);
}

/* Both tags hold a copy of the RSDP; the new one (ACPI 2.0 and later) wins in whatever order they come. */
static void parse_rsdp(const struct mb2_tag *tag, struct boot_info *out)
{
	u32 size = MIN(tag->size - (u32)sizeof(*tag), (u32)sizeof(out->rsdp));

	if (size < 20 || (tag->type == TAG_ACPI_OLD && out->rsdp[15] >= 2))
		return;
	memset(out->rsdp, 0, sizeof(out->rsdp));
	memcpy(out->rsdp, tag + 1, tag->type == TAG_ACPI_OLD ? 20 : size);
}

static void parse_tag(const struct mb2_tag *tag, struct boot_info *out)
{
	switch (tag->type) {
	case TAG_CMDLINE:
		out->cmdline = text_of(tag, out);
		break;
	case TAG_LOADER:
		out->loader = text_of(tag, out);
		break;
	case TAG_MODULE:
		parse_module(tag, out);
		break;
	case TAG_MMAP:
		parse_mmap(tag, out);
		break;
	case TAG_FRAMEBUFFER:
		parse_framebuffer(tag, out);
		break;
	case TAG_ACPI_OLD:
	case TAG_ACPI_NEW:
		parse_rsdp(tag, out);
		break;
	default: /* not needed, or of a later revision */
		break;
	}
}

void mb2_parse(const void *info, struct boot_info *out)
{
	const u8 *base = info;
	u32 total;

	memcpy(&total, base, sizeof(total));
	out->cmdline = out->loader = "";
	for (u64 at = 8; at + sizeof(struct mb2_tag) <= total;) {
		const struct mb2_tag *tag = (const void *)(base + at);

		if (tag->type == TAG_END || tag->size < sizeof(*tag) || tag->size > total - at)
			break;
		parse_tag(tag, out);
		at += ALIGN_UP((u64)tag->size, 8ull);
	}
	if (out->mem.count == 0)
		out->error = "the loader gave no memory map";
}
