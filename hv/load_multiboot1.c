/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot 0.6.96 kernels: ELF or the address-override form. "Multiboot Specification version 0.6.96". */
#include "hv/lib.h"
#include "hv/load.h"

#define MB1_SEARCH       8192ull
#define MB1_HEADER_MAGIC 0x1badb002u
#define MB1_LOADER_MAGIC 0x2badb002u
#define MB1_REQUIRED     0x0000fff8u /* required features this loader does not know: bits 15:3 */
#define MB1_ADDRESSES    BIT32(16)
#define MB1_INFO_SIZE    116u
#define MB1_MMAP_ENTRY   24u
#define MB1_MODULE_ENTRY 16u

/* Info flags, in the order of the structure. */
#define INFO_MEMORY  BIT32(0)
#define INFO_CMDLINE BIT32(2)
#define INFO_MODULES BIT32(3)
#define INFO_MMAP    BIT32(6)
#define INFO_LOADER  BIT32(9)

/* Offset of the header, or -1. "OS image format": in the first 8192 bytes, aligned to four. */
static s64 find_header(const struct image *i)
{
	for (u64 at = 0; at + 12 <= MIN(i->size, MB1_SEARCH); at += 4)
		if (image_u32(i, at) == MB1_HEADER_MAGIC &&
		    !(u32)(MB1_HEADER_MAGIC + image_u32(i, at + 4) + image_u32(i, at + 8)))
			return (s64)at;
	return -1;
}

static bool load_addresses(struct load_map *l, const struct image *i, u64 header, struct load_result *out,
			   char *err, size_t err_size)
{
	struct flat_image f;
	u32 addr[5];

	if (!image_has(i, header, 32))
		return load_fail(err, err_size, "role=kernel: multiboot header is cut off");
	for (unsigned n = 0; n < 5; n++)
		addr[n] = image_u32(i, header + 12 + 4 * n);
	if (!flat_from_header(i, header, addr, &f))
		return load_fail(err, err_size,
				 "role=kernel: addresses in the multiboot header do not fit the file");
	*out = (struct load_result){.entry = f.entry, .end = f.load + f.load_size + f.bss_size};
	return load_flat(l, i, &f, err, err_size);
}

static bool load_kernel(struct load_map *l, const struct image *i, struct load_result *out, char *err,
			size_t err_size)
{
	s64 header = find_header(i);
	u32 flags;

	if (header < 0)
		return load_fail(err, err_size, "%s", NOT_THIS_KIND);
	flags = image_u32(i, (u64)header + 4);
	if (flags & MB1_REQUIRED)
		return load_fail(err, err_size, "role=kernel: multiboot header asks for unknown features %#x",
				 flags & MB1_REQUIRED);
	if (flags & MB1_ADDRESSES)
		return load_addresses(l, i, (u64)header, out, err, err_size);
	if (load_elf(l, i, out, err, err_size))
		return true;
	return err[0] ? false
		      : load_fail(err, err_size,
				  "role=kernel: multiboot image is neither ELF nor has addresses");
}

/* "Boot information format". */
struct mb1_info {
	u32 flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr, syms[4];
	u32 mmap_length, mmap_addr, drives_length, drives_addr, config_table, loader_name, rest[12];
};
_Static_assert(sizeof(struct mb1_info) == MB1_INFO_SIZE, "multiboot: information structure");

static u64 info_size(const struct guest *g, const struct memmap *map, const struct placed_module *mod,
		     unsigned nr)
{
	u64 size = LOAD_GDT_SIZE + MB1_INFO_SIZE + 64;

	size += strlen(g->name) + strlen(g->cmdline) + 2 + sizeof(MB_LOADER_NAME);
	size += (u64)map->count * MB1_MMAP_ENTRY + nr * MB1_MODULE_ENTRY;
	for (unsigned i = 0; i < nr; i++)
		size += strlen(mod[i].string) + 1;
	return size;
}

/* The kernel's first word is the program, as loaders pass it: here the guest's name. */
static u64 write_cmdline(struct info_writer *w, const struct guest *g)
{
	u64 at = w->at;

	info_bytes(w, g->name, strlen(g->name));
	info_bytes(w, " ", 1);
	info_string(w, g->cmdline);
	return at;
}

static u64 write_modules(struct info_writer *w, const struct placed_module *mod, unsigned nr)
{
	u32 string[MB_MODULES_MAX];
	u64 at;

	for (unsigned i = 0; i < nr; i++)
		string[i] = (u32)info_string(w, mod[i].string);
	info_align(w, 8);
	at = w->at;
	for (unsigned i = 0; i < nr; i++) {
		info_u32(w, (u32)mod[i].start);
		info_u32(w, (u32)(mod[i].start + mod[i].size));
		info_u32(w, string[i]);
		info_u32(w, 0);
	}
	return at;
}

static u64 write_mmap(struct info_writer *w, const struct memmap *map)
{
	u64 at = w->at;

	for (unsigned i = 0; i < map->count; i++) {
		info_u32(w, MB1_MMAP_ENTRY - 4); /* the size does not count itself */
		info_u64(w, map->range[i].start);
		info_u64(w, map->range[i].end - map->range[i].start);
		info_u32(w, mb_mem_type(map->range[i].type));
	}
	return at;
}

static bool write_info(struct info_writer *w, const struct guest *g, const struct memmap *map,
		       const struct placed_module *mod, unsigned nr, struct entry_state *out)
{
	struct mb1_info info = {
		.flags = INFO_MEMORY | INFO_CMDLINE | INFO_MODULES | INFO_MMAP | INFO_LOADER,
		.mem_lower = mb_mem_lower(g),
		.mem_upper = mb_mem_upper(g),
		.mods_count = nr,
		.mmap_length = map->count * MB1_MMAP_ENTRY,
	};

	if (!load_gdt(w->l, w->at, 32, out))
		return false;
	w->at += LOAD_GDT_SIZE;
	info.mmap_addr = (u32)write_mmap(w, map);
	info.mods_addr = (u32)write_modules(w, mod, nr);
	info.cmdline = (u32)write_cmdline(w, g);
	info.loader_name = (u32)info_string(w, MB_LOADER_NAME);
	info_align(w, 8);
	out->rbx = w->at;
	info_bytes(w, &info, sizeof(info));
	return w->ok;
}

bool load_multiboot1(struct guest *g, struct entry_state *out, char *err, size_t err_size)
{
	static const struct mb_version version = {.magic = MB1_LOADER_MAGIC,
						  .load_kernel = load_kernel,
						  .info_size = info_size,
						  .write_info = write_info};

	return load_multiboot(&version, g, out, err, err_size);
}
