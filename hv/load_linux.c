/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linux bzImage by the 64-bit entry. Linux documentation "The Linux/x86 Boot Protocol". The image is not
 * trusted: each field is checked before it is used as a size or an address.
 */
#include "hv/lib.h"
#include "hv/load.h"
#include "mm/guest_copy.h"
#include "mm/palloc.h"

/* Offsets in the image and in boot_params alike: "The Real-Mode Kernel Header". */
#define HDR_SETUP_SECTS    0x1f1
#define HDR_BOOT_FLAG      0x1fe
#define HDR_JUMP           0x201 /* header ends at 0x202 + this byte */
#define HDR_MAGIC          0x202
#define HDR_VERSION        0x206
#define HDR_LOADER         0x210
#define HDR_LOADFLAGS      0x211
#define HDR_CODE32_START   0x214
#define HDR_INITRD         0x218
#define HDR_INITRD_SIZE    0x21c
#define HDR_CMDLINE        0x228
#define HDR_INITRD_MAX     0x22c
#define HDR_ALIGNMENT      0x230
#define HDR_RELOCATABLE    0x234
#define HDR_XLOADFLAGS     0x236
#define HDR_CMDLINE_SIZE   0x238
#define HDR_SETUP_DATA     0x250
#define HDR_PREF_ADDRESS   0x258
#define HDR_INIT_SIZE      0x260
#define HDR_END            0x264 /* of what this loader reads */
#define HDR_END_MAX        0x290 /* of what boot_params has room for */
#define ZERO_PAGE_RSDP     0x070
#define ZERO_PAGE_E820_NR  0x1e8
#define ZERO_PAGE_E820     0x2d0
#define ZERO_PAGE_E820_MAX 128

#define MAGIC_HDRS       0x53726448 /* "HdrS" */
#define VERSION_MIN      0x020c     /* xloadflags */
#define XLF_KERNEL_64    BIT32(0)
#define LOADED_HIGH      BIT32(0)
#define LOADER_UNDEFINED 0xff
#define ENTRY_64         0x200 /* behind the start of the protected-mode kernel */

/* Where this loader's own things stand in the guest. */
#define AT_ZERO_PAGE 0x10000ull
#define AT_GDT       0x11000ull
#define AT_TABLES    0x12000ull /* PML4, PDPT, four page directories: 4 GiB, identity */
#define AT_STACK     0x1f000ull /* top */
#define AT_CMDLINE   0x20000ull
#define AT_END       0x30000ull

/* What the header says, checked. */
struct linux_header {
	u64 kernel_offset, kernel_size; /* protected-mode part of the file */
	u64 pref_address, alignment, init_size;
	u64 initrd_max, cmdline_max;
	u32 header_end;
	bool relocatable;
};

static bool header_parse(const struct image *i, struct linux_header *h, char *err, size_t err_size)
{
	u64 sects;

	if (!image_has(i, 0, HDR_END) || image_u16(i, HDR_BOOT_FLAG) != 0xaa55 ||
	    image_u32(i, HDR_MAGIC) != MAGIC_HDRS)
		return load_fail(err, err_size, "%s", NOT_THIS_KIND);
	if (image_u16(i, HDR_VERSION) < VERSION_MIN || !(image_u16(i, HDR_XLOADFLAGS) & XLF_KERNEL_64))
		return load_fail(err, err_size, "role=kernel: this Linux image has no 64-bit entry");
	sects = i->data[HDR_SETUP_SECTS] ? i->data[HDR_SETUP_SECTS] : 4;
	h->kernel_offset = (sects + 1) * 512;
	if (i->size <= h->kernel_offset + ENTRY_64)
		return load_fail(err, err_size, "role=kernel: the Linux image is cut off (%lu bytes)",
				 i->size);
	h->kernel_size = i->size - h->kernel_offset;
	h->pref_address = image_u64(i, HDR_PREF_ADDRESS);
	h->alignment = image_u32(i, HDR_ALIGNMENT);
	h->init_size = MAX((u64)image_u32(i, HDR_INIT_SIZE), h->kernel_size);
	h->initrd_max = image_u32(i, HDR_INITRD_MAX);
	h->cmdline_max = image_u32(i, HDR_CMDLINE_SIZE);
	h->header_end = MIN(HDR_MAGIC + (u32)i->data[HDR_JUMP], (u32)HDR_END_MAX);
	h->relocatable = i->data[HDR_RELOCATABLE];
	if (!h->alignment || (h->alignment & (h->alignment - 1)))
		return load_fail(err, err_size, "role=kernel: bad kernel_alignment %#lx in the Linux header",
				 h->alignment);
	if (h->header_end < HDR_END || !image_has(i, 0, h->header_end))
		return load_fail(err, err_size, "role=kernel: bad header length in the Linux image");
	return true;
}

/* The kernel's address: where it likes to be, else the first place that its alignment allows. */
static bool place_kernel(struct load_map *l, const struct linux_header *h, u64 *at, char *err,
			 size_t err_size)
{
	*at = h->pref_address;
	if (*at >= MIB && load_claim(l, *at, h->init_size))
		return true;
	if (h->relocatable && load_place_low(l, MIB, L1MEM_HIGH, h->init_size, h->alignment, at))
		return true;
	return load_fail(err, err_size, "mem=%luM: Linux needs %lu MiB at %#lx", in_mib(l->mem->ram),
			 in_mib(h->init_size), h->pref_address);
}

/* All role=initrd modules behind each other, as Linux takes them: each starts at a multiple of four. */
static u64 initrd_bytes(const struct guest *g)
{
	u64 sum = 0;

	for (unsigned i = 0; i < g->nr_modules; i++)
		if (g->module[i].role == ROLE_INITRD)
			sum = ALIGN_UP(sum, 4ull) + g->module[i].size;
	return sum;
}

static bool load_initrd(struct load_map *l, struct guest *g, const struct linux_header *h, u64 *start,
			u64 *size, char *err, size_t err_size)
{
	u64 at;

	*start = 0;
	*size = initrd_bytes(g);
	if (!*size)
		return true;
	if (!load_place_high(l, MIB, h->initrd_max + 1, *size, PAGE_SIZE, start))
		return load_fail(err, err_size, "role=initrd: %lu MiB do not fit beside the kernel, mem=%luM",
				 in_mib(*size), in_mib(l->mem->ram));
	at = *start;
	for (unsigned i = 0; i < g->nr_modules; i++) {
		if (g->module[i].role != ROLE_INITRD)
			continue;
		at = ALIGN_UP(at, 4ull);
		if (!load_copy(l, at, hpa_ptr(g->module[i].start), g->module[i].size))
			return load_fail(err, err_size, "role=initrd: outside of RAM");
		at += g->module[i].size;
	}
	return true;
}

static bool load_cmdline(struct load_map *l, const struct guest *g, const struct linux_header *h, char *err,
			 size_t err_size)
{
	size_t n = strlen(g->cmdline);

	if (n > h->cmdline_max || n >= AT_END - AT_CMDLINE)
		return load_fail(err, err_size, "command line: %lu characters, this kernel takes %lu", n,
				 h->cmdline_max);
	return load_copy(l, AT_CMDLINE, g->cmdline, n + 1);
}

static void put(u8 *page, unsigned offset, u64 value, unsigned size)
{
	memcpy(page + offset, &value, size);
}

static u32 e820_type(enum mem_type t)
{
	return t == MEM_USED ? MEM_RESERVED : (u32)t;
}

static void put_e820(u8 *page, const struct memmap *map)
{
	unsigned n = MIN(map->count, (unsigned)ZERO_PAGE_E820_MAX);

	page[ZERO_PAGE_E820_NR] = (u8)n;
	for (unsigned i = 0; i < n; i++) {
		const struct mem_range *r = &map->range[i];

		put(page, ZERO_PAGE_E820 + i * 20, r->start, 8);
		put(page, ZERO_PAGE_E820 + i * 20 + 8, r->end - r->start, 8);
		put(page, ZERO_PAGE_E820 + i * 20 + 16, e820_type(r->type), 4);
	}
}

/* boot_params, built in L0's memory and copied over in one go. */
static bool write_zero_page(const struct load_map *l, const struct guest *g, const struct image *i,
			    const struct linux_header *h, u64 kernel, u64 initrd, u64 initrd_size)
{
	struct memmap *map = mb_memmap(g);
	u8 *page = page_alloc();
	bool ok = false;

	if (map && page) {
		memcpy(page + HDR_SETUP_SECTS, i->data + HDR_SETUP_SECTS, h->header_end - HDR_SETUP_SECTS);
		page[HDR_LOADER] = LOADER_UNDEFINED;
		page[HDR_LOADFLAGS] |= LOADED_HIGH;
		put(page, HDR_CODE32_START, kernel, 4);
		put(page, HDR_INITRD, initrd, 4);
		put(page, HDR_INITRD_SIZE, initrd_size, 4);
		put(page, HDR_CMDLINE, AT_CMDLINE, 4);
		put(page, HDR_SETUP_DATA, 0, 8);
		put(page, ZERO_PAGE_RSDP, L1_ACPI_RSDP, 8);
		put_e820(page, map);
		ok = load_copy(l, AT_ZERO_PAGE, page, PAGE_SIZE);
	}
	if (page)
		page_free(page);
	mb_memmap_free(map);
	return ok;
}

/* SDM "4-Level Paging": 2-MByte pages, identity, for the low 4 GiB. */
static bool write_tables(const struct load_map *l)
{
	u64 *page = page_alloc();
	bool ok = page != NULL;

	for (u64 dir = 0; ok && dir < 4; dir++) {
		for (u64 i = 0; i < 512; i++)
			page[i] = (dir * 512 + i) * 2 * MIB | 0x83; /* present, writable, large */
		ok = load_copy(l, AT_TABLES + (2 + dir) * PAGE_SIZE, page, PAGE_SIZE);
	}
	for (unsigned i = 0; ok && i < 512; i++)
		page[i] = i < 4 ? (AT_TABLES + (2 + i) * PAGE_SIZE) | 3 : 0;
	ok = ok && load_copy(l, AT_TABLES + PAGE_SIZE, page, PAGE_SIZE);
	for (unsigned i = 0; ok && i < 512; i++)
		page[i] = i ? 0 : (AT_TABLES + PAGE_SIZE) | 3;
	ok = ok && load_copy(l, AT_TABLES, page, PAGE_SIZE);
	if (page)
		page_free(page);
	return ok;
}

bool load_linux(struct guest *g, struct entry_state *out, char *err, size_t err_size)
{
	struct image image = load_image(&g->kernel);
	u64 kernel, initrd, initrd_size;
	struct linux_header h;
	struct load_map l;

	if (!header_parse(&image, &h, err, err_size))
		return false;
	load_map_init(&l, g);
	if (!load_claim(&l, AT_ZERO_PAGE, AT_END - AT_ZERO_PAGE))
		return load_fail(err, err_size, "mem=%luM: too small for Linux", in_mib(g->mem.ram));
	if (!place_kernel(&l, &h, &kernel, err, err_size) ||
	    !load_initrd(&l, g, &h, &initrd, &initrd_size, err, err_size) ||
	    !load_cmdline(&l, g, &h, err, err_size))
		return false;
	*out = (struct entry_state){.mode = ENTRY_LONG,
				    .rip = kernel + ENTRY_64,
				    .rsp = AT_STACK,
				    .cr3 = AT_TABLES,
				    .rsi = AT_ZERO_PAGE};
	if (!load_copy(&l, kernel, image.data + h.kernel_offset, h.kernel_size) ||
	    !load_gdt(&l, AT_GDT, 64, out) || !write_tables(&l) ||
	    !write_zero_page(&l, g, &image, &h, kernel, initrd, initrd_size))
		return load_fail(err, err_size, "role=kernel: no memory while loading Linux");
	return true;
}
