/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loaders of hv/load_*.c share: placing things in a guest's low memory without overlaps, flat
 * segments, and a bounded view of an image. Private to them.
 */
#ifndef NIDUS_HV_LOAD_H
#define NIDUS_HV_LOAD_H

#include "hv/guest.h"

#define LOAD_AREAS_MAX 96

/* Guest-physical ranges that are taken or can't be used. */
struct load_map {
	struct l1mem *mem;
	unsigned count;
	struct {
		u64 start, end;
	} area[LOAD_AREAS_MAX];
};

/* Nothing taken but what is no free RAM below 4 GiB: [EBDA, 1 MiB). */
void load_map_init(struct load_map *l, struct guest *g);
/* Take [start, start + size). False: not all of it is RAM below 4 GiB, or some is taken. Size 0 takes
 * nothing. */
bool load_claim(struct load_map *l, u64 start, u64 size);
/* Take the lowest / highest free place inside [min, max), start aligned (a power of two). False: none. */
bool load_place_low(struct load_map *l, u64 min, u64 max, u64 size, u64 align, u64 *start);
bool load_place_high(struct load_map *l, u64 min, u64 max, u64 size, u64 align, u64 *start);
/* First free byte behind everything taken. */
u64 load_end(const struct load_map *l);

/* A kernel module in L0's memory. */
struct image {
	const u8 *data;
	u64 size;
};

static inline struct image load_image(const struct guest_module *m)
{
	return (struct image){.data = hpa_ptr(m->start), .size = m->size};
}

static inline bool image_has(const struct image *i, u64 offset, u64 size)
{
	return offset <= i->size && size <= i->size - offset;
}

/* Little-endian fields, unaligned. The caller has checked image_has. */
u16 image_u16(const struct image *i, u64 offset);
u32 image_u32(const struct image *i, u64 offset);
u64 image_u64(const struct image *i, u64 offset);

/* Copy image bytes to guest memory; clear guest memory. False: not the guest's RAM. */
bool load_copy(const struct load_map *l, u64 gpa, const void *from, u64 size);

/* Flat segments as struct entry_state wants them. `bits` 32 or 64: of the code segment. Takes 32 bytes at
 * gpa. */
#define LOAD_GDT_SIZE 32
bool load_gdt(const struct load_map *l, u64 gpa, unsigned bits, struct entry_state *out);

/* Write one line into err; false, for the caller to return. */
void load_error(char *err, size_t err_size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define load_fail(...) (load_error(__VA_ARGS__), false)
#define NOT_THIS_KIND  "" /* the next loader is tried */

/* For messages, rounded up. */
static inline u64 in_kib(u64 bytes)
{
	return (bytes + KIB - 1) / KIB;
}

static inline u64 in_mib(u64 bytes)
{
	return (bytes + MIB - 1) / MIB;
}

/* What an executable image asks for. */
struct load_result {
	u64 entry; /* guest-physical */
	u64 end;   /* first byte behind the image and its bss */
};

/* ELF32 or ELF64 for x86, by physical addresses. False: err says why ("" = not ELF). hv/load_elf.c */
bool load_elf(struct load_map *l, const struct image *i, struct load_result *out, char *err, size_t err_size);

/* --- hv/load_mb.c: what both multiboot versions share --- */

/* An image given by addresses in its multiboot header: [offset, offset + load_size) of the file goes to load,
 * bss behind. */
struct flat_image {
	u64 offset, load, load_size, bss_size, entry;
};
/* The address fields of a header that stands at `header_offset` in the file. False: they contradict each
 * other or the file. */
bool flat_from_header(const struct image *i, u64 header_offset, const u32 addr[5], struct flat_image *out);
bool load_flat(struct load_map *l, const struct image *i, const struct flat_image *f, char *err,
	       size_t err_size);

struct placed_module {
	u64 start, size;
	const char *string;
};
/* Copy all modules and initrds, page-aligned, behind `after`. Returns how many through *count. */
bool load_modules(struct load_map *l, struct guest *g, u64 after, struct placed_module *out, unsigned *count,
		  char *err, size_t err_size);

/* Boot information, written piece by piece; nothing is ever written past its end. */
struct info_writer {
	const struct load_map *l;
	u64 start, at, end;
	bool ok;
};
/* Place `size` bytes of information and a GDT below 640 KiB, else wherever there is room. */
bool info_begin(struct info_writer *w, struct load_map *l, u64 size, char *err, size_t err_size);
void info_bytes(struct info_writer *w, const void *p, u64 n);
void info_u32(struct info_writer *w, u32 v);
void info_u64(struct info_writer *w, u64 v);
/* With the terminating NUL. Returns the string's address. */
u64 info_string(struct info_writer *w, const char *s);
void info_align(struct info_writer *w, u64 align);

#define MB_LOADER_NAME "Nidus"
/* KiB of RAM below and from 1 MiB on, as multiboot's basic memory information counts it. */
u32 mb_mem_lower(const struct guest *g);
u32 mb_mem_upper(const struct guest *g);
/* multiboot type of a range: the e820 number. */
u32 mb_mem_type(enum mem_type t);
/* The map an L1 is shown, in memory of its own (struct memmap is too large for the stack). NULL: no memory.
 */
struct memmap *mb_memmap(const struct guest *g);
void mb_memmap_free(struct memmap *m);

#define MB_MODULES_MAX ARRAY_SIZE(((struct guest *)0)->module)

/* What one version of multiboot does its own way. */
struct mb_version {
	u32 magic; /* in EAX at the kernel's entry */
	/* Place the kernel's image. False: err says why, NOT_THIS_KIND without a header of this version. */
	bool (*load_kernel)(struct load_map *l, const struct image *i, struct load_result *out, char *err,
			    size_t err_size);
	/* Bytes of boot information and GDT, at least. */
	u64 (*info_size)(const struct guest *g, const struct memmap *map, const struct placed_module *mod,
			 unsigned nr);
	/* Write both; the entry state gets its segments and EBX. False: no room. */
	bool (*write_info)(struct info_writer *w, const struct guest *g, const struct memmap *map,
			   const struct placed_module *mod, unsigned nr, struct entry_state *out);
};
/* Kernel, modules, boot information. False: err says why. */
bool load_multiboot(const struct mb_version *version, struct guest *g, struct entry_state *out, char *err,
		    size_t err_size);

#endif
