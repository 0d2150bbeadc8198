/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot 2 kernels: ELF or the address tag. "Multiboot2 Specification version 2.0". No EFI: we are a
 * BIOS-like loader. */
#include "hv/lib.h"
#include "hv/load.h"
#include "mm/guest_copy.h"

#define MB2_SEARCH       32768ull
#define MB2_HEADER_MAGIC 0xe85250d6u
#define MB2_LOADER_MAGIC 0x36d76289u
#define MB2_ARCH_I386    0u
#define TAG_OPTIONAL     BIT32(0)

/* Header tags, in the specification's order. */
enum header_tag {
	HEADER_END,
	HEADER_INFO_REQUEST,
	HEADER_ADDRESS,
	HEADER_ENTRY,
	HEADER_CONSOLE,
	HEADER_FRAMEBUFFER,
	HEADER_ALIGN,
	HEADER_EFI_BS,
	HEADER_EFI32_ENTRY,
	HEADER_EFI64_ENTRY,
	HEADER_RELOCATABLE,
	HEADER_TAGS,
};

/* Information tags this loader knows; those up to TAG_LAST exist in the specification. */
enum info_tag {
	TAG_END,
	TAG_CMDLINE,
	TAG_LOADER,
	TAG_MODULE,
	TAG_MEMINFO,
	TAG_MMAP = 6,
	TAG_ACPI_OLD = 14,
	TAG_ACPI_NEW,
	TAG_LAST = 21,
};

#define RSDP_OLD_SIZE 20u
#define RSDP_NEW_SIZE 36u
#define TAG_HEADER    8u
#define MMAP_ENTRY    24u

struct header {
	u64 at, length;
	bool has_address, has_entry;
	u64 address_at;
	u32 entry;
};

/* "Multiboot2 header": in the first 32768 bytes, aligned to eight. */
static bool find_header(const struct image *i, struct header *h)
{
	u64 end = MIN(i->size, MB2_SEARCH);

	for (u64 at = 0; at + 16 <= end; at += 8) {
		u32 arch = image_u32(i, at + 4), length = image_u32(i, at + 8);

		if (image_u32(i, at) != MB2_HEADER_MAGIC || arch != MB2_ARCH_I386 ||
		    (u32)(MB2_HEADER_MAGIC + arch + length + image_u32(i, at + 12)))
			continue;
		*h = (struct header){.at = at, .length = length};
		return true;
	}
	return false;
}

/* All information the kernel cannot do without is of a kind that the specification knows. */
static bool request_ok(const struct image *i, u64 at, u32 size)
{
	for (u32 n = TAG_HEADER; n + 4 <= size; n += 4)
		if (image_u32(i, at + n) > TAG_LAST)
			return false;
	return true;
}

/* One header tag. False: we must not load this kernel. */
static bool header_tag(const struct image *i, struct header *h, u64 at, u32 size)
{
	u16 type = image_u16(i, at), flags = image_u16(i, at + 2);

	if (type == HEADER_INFO_REQUEST)
		return (flags & TAG_OPTIONAL) || request_ok(i, at, size);
	if (type == HEADER_ADDRESS && size >= 24) {
		h->has_address = true;
		h->address_at = at + TAG_HEADER;
		return true;
	}
	if (type == HEADER_ENTRY && size >= 12) {
		h->has_entry = true;
		h->entry = image_u32(i, at + TAG_HEADER);
		return true;
	}
	return (flags & TAG_OPTIONAL) || (type >= HEADER_CONSOLE && type < HEADER_TAGS);
}

static bool read_tags(const struct image *i, struct header *h, char *err, size_t err_size)
{
	u64 at = h->at + 16, end = h->at + h->length;

	if (h->length < 16 || !image_has(i, h->at, h->length))
		return load_fail(err, err_size, "role=kernel: multiboot2 header is cut off");
	while (at + TAG_HEADER <= end) {
		u16 type = image_u16(i, at);
		u32 size = image_u32(i, at + 4);

		if (type == HEADER_END)
			return true;
		if (size < TAG_HEADER || size > end - at)
			return load_fail(err, err_size,
					 "role=kernel: bad tag size %u in the multiboot2 header", size);
		if (!header_tag(i, h, at, size))
			return load_fail(err, err_size,
					 "role=kernel: multiboot2 header tag %u cannot be served", type);
		at += ALIGN_UP((u64)size, 8ull);
	}
	return load_fail(err, err_size, "role=kernel: multiboot2 header without an end tag");
}

static bool load_addresses(struct load_map *l, const struct image *i, const struct header *h,
			   struct load_result *out, char *err, size_t err_size)
{
	struct flat_image f;
	u32 addr[5];

	for (unsigned n = 0; n < 4; n++)
		addr[n] = image_u32(i, h->address_at + 4 * n);
	addr[4] = h->entry;
	/* load_addr of all ones: the file is loaded from its start. */
	if (addr[1] == ~0u)
		addr[1] = addr[0] - (u32)h->at;
	if (!h->has_entry || !flat_from_header(i, h->at, addr, &f))
		return load_fail(err, err_size,
				 "role=kernel: addresses in the multiboot2 header do not fit the file");
	*out = (struct load_result){.entry = f.entry, .end = f.load + f.load_size + f.bss_size};
	return load_flat(l, i, &f, err, err_size);
}

static bool load_kernel(struct load_map *l, const struct image *i, struct load_result *out, char *err,
			size_t err_size)
{
	struct header h;

	if (!find_header(i, &h))
		return load_fail(err, err_size, "%s", NOT_THIS_KIND);
	if (!read_tags(i, &h, err, err_size))
		return false;
	if (h.has_address)
		return load_addresses(l, i, &h, out, err, err_size);
	if (!load_elf(l, i, out, err, err_size))
		return err[0] ? false
			      : load_fail(err, err_size,
					  "role=kernel: multiboot2 image is neither ELF nor has addresses");
	if (h.has_entry)
		out->entry = h.entry;
	return true;
}

/* --- boot information --- */

static void tag_begin(struct info_writer *w, enum info_tag type, u64 payload)
{
	info_align(w, 8);
	info_u32(w, type);
	info_u32(w, (u32)(TAG_HEADER + payload));
}

static void tag_string(struct info_writer *w, enum info_tag type, const char *s)
{
	tag_begin(w, type, strlen(s) + 1);
	info_string(w, s);
}

static void tag_module(struct info_writer *w, const struct placed_module *m)
{
	tag_begin(w, TAG_MODULE, 8 + strlen(m->string) + 1);
	info_u32(w, (u32)m->start);
	info_u32(w, (u32)(m->start + m->size));
	info_string(w, m->string);
}

static void tag_mmap(struct info_writer *w, const struct memmap *map)
{
	tag_begin(w, TAG_MMAP, 8 + (u64)map->count * MMAP_ENTRY);
	info_u32(w, MMAP_ENTRY);
	info_u32(w, 0); /* entry version */
	for (unsigned i = 0; i < map->count; i++) {
		info_u64(w, map->range[i].start);
		info_u64(w, map->range[i].end - map->range[i].start);
		info_u32(w, mb_mem_type(map->range[i].type));
		info_u32(w, 0);
	}
}

/* The platform's RSDP as it stands in the guest's memory. */
static void tag_acpi(struct info_writer *w, const struct guest *g)
{
	u8 rsdp[RSDP_NEW_SIZE];

	if (!guest_read(&g->mem, GPA(L1_ACPI_RSDP), rsdp, sizeof(rsdp)) || memcmp(rsdp, "RSD PTR ", 8))
		return;
	tag_begin(w, TAG_ACPI_OLD, RSDP_OLD_SIZE);
	info_bytes(w, rsdp, RSDP_OLD_SIZE);
	if (rsdp[15] < 2) /* revision: the long form came with ACPI 2.0 */
		return;
	tag_begin(w, TAG_ACPI_NEW, RSDP_NEW_SIZE);
	info_bytes(w, rsdp, RSDP_NEW_SIZE);
}

static u64 info_size(const struct guest *g, const struct memmap *map, const struct placed_module *mod,
		     unsigned nr)
{
	u64 size = LOAD_GDT_SIZE + 256; /* fixed tags, each rounded up */

	size += strlen(g->cmdline) + 32 + sizeof(MB_LOADER_NAME) + (u64)map->count * MMAP_ENTRY;
	for (unsigned i = 0; i < nr; i++)
		size += strlen(mod[i].string) + 32;
	return size;
}

static bool write_info(struct info_writer *w, const struct guest *g, const struct memmap *map,
		       const struct placed_module *mod, unsigned nr, struct entry_state *out)
{
	u32 total[2] = {0, 0};
	u64 start;

	if (!load_gdt(w->l, w->at, 32, out))
		return false;
	w->at += LOAD_GDT_SIZE;
	start = w->at;
	info_bytes(w, total, sizeof(total)); /* the size follows when it is known */
	tag_string(w, TAG_CMDLINE, g->cmdline);
	tag_string(w, TAG_LOADER, MB_LOADER_NAME);
	for (unsigned i = 0; i < nr; i++)
		tag_module(w, &mod[i]);
	tag_begin(w, TAG_MEMINFO, 8);
	info_u32(w, mb_mem_lower(g));
	info_u32(w, mb_mem_upper(g));
	tag_mmap(w, map);
	tag_acpi(w, g);
	tag_begin(w, TAG_END, 0);
	total[0] = (u32)(w->at - start);
	out->rbx = start;
	return w->ok && load_copy(w->l, start, total, sizeof(total));
}

bool load_multiboot2(struct guest *g, struct entry_state *out, char *err, size_t err_size)
{
	static const struct mb_version version = {.magic = MB2_LOADER_MAGIC,
						  .load_kernel = load_kernel,
						  .info_size = info_size,
						  .write_info = write_info};

	return load_multiboot(&version, g, out, err, err_size);
}
