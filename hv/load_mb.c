/* SPDX-License-Identifier: Apache-2.0 */
/* What multiboot1 and multiboot2 loading share: images given by addresses, modules, writing the boot
 * information. */
#include "hv/lib.h"
#include "hv/load.h"
#include "mm/guest_copy.h"
#include "mm/palloc.h"

/*
 * Below 64 KiB kernels like to start their other CPUs, and Xen moves the information to just below the EBDA
 * while it still reads it: stay away from both ends.
 */
#define INFO_MIN 0x10000ull

bool flat_from_header(const struct image *i, u64 header_offset, const u32 addr[5], struct flat_image *out)
{
	u32 header = addr[0], load = addr[1], load_end = addr[2], bss_end = addr[3];

	if (header < load || header - load > header_offset)
		return false;
	out->offset = header_offset - (header - load);
	out->load = load;
	out->entry = addr[4];
	/* 0: all of the file; 0: no bss. Multiboot "The address fields of Multiboot header". */
	if (load_end && load_end < load)
		return false;
	out->load_size = load_end ? load_end - load : i->size - out->offset;
	if (bss_end && bss_end < load + out->load_size)
		return false;
	out->bss_size = bss_end ? bss_end - (load + out->load_size) : 0;
	return image_has(i, out->offset, out->load_size);
}

bool load_flat(struct load_map *l, const struct image *i, const struct flat_image *f, char *err,
	       size_t err_size)
{
	u64 size = f->load_size + f->bss_size;

	if (!load_claim(l, f->load, size) || !load_copy(l, f->load, i->data + f->offset, f->load_size) ||
	    !guest_zero(l->mem, GPA(f->load + f->load_size), f->bss_size))
		return load_fail(err, err_size, "mem=%luM: image of %lu KiB at %#lx is not in RAM",
				 in_mib(l->mem->ram), in_kib(size), f->load);
	return true;
}

static bool is_boot_module(const struct guest_module *m)
{
	return m->role == ROLE_MODULE || m->role == ROLE_INITRD;
}

bool load_modules(struct load_map *l, struct guest *g, u64 after, struct placed_module *out, unsigned *count,
		  char *err, size_t err_size)
{
	*count = 0;
	for (unsigned i = 0; i < g->nr_modules; i++) {
		const struct guest_module *m = &g->module[i];
		struct placed_module *p = &out[*count];

		if (!is_boot_module(m))
			continue;
		*p = (struct placed_module){.size = m->size, .string = m->cmdline};
		if (!load_place_low(l, after, L1MEM_HIGH, MAX(m->size, 1ull), PAGE_SIZE, &p->start) ||
		    !load_copy(l, p->start, hpa_ptr(m->start), m->size))
			return load_fail(err, err_size, "mem=%luM: no room for a module of %lu KiB",
					 in_mib(l->mem->ram), in_kib(m->size));
		after = p->start + p->size;
		++*count;
	}
	return true;
}

bool info_begin(struct info_writer *w, struct load_map *l, u64 size, char *err, size_t err_size)
{
	size = ALIGN_UP(size, PAGE_SIZE);
	*w = (struct info_writer){.l = l, .ok = true};
	if (!load_place_low(l, INFO_MIN, L1_EBDA, size, PAGE_SIZE, &w->start) &&
	    !load_place_low(l, load_end(l), L1MEM_HIGH, size, PAGE_SIZE, &w->start))
		return load_fail(err, err_size, "mem=%luM: no room for the boot information",
				 in_mib(l->mem->ram));
	w->at = w->start;
	w->end = w->start + size;
	return true;
}

void info_bytes(struct info_writer *w, const void *p, u64 n)
{
	if (!w->ok || n > w->end - w->at || !load_copy(w->l, w->at, p, n)) {
		w->ok = false;
		return;
	}
	w->at += n;
}

void info_u32(struct info_writer *w, u32 v)
{
	info_bytes(w, &v, sizeof(v));
}

void info_u64(struct info_writer *w, u64 v)
{
	info_bytes(w, &v, sizeof(v));
}

u64 info_string(struct info_writer *w, const char *s)
{
	u64 at = w->at;

	info_bytes(w, s, strlen(s) + 1);
	return at;
}

void info_align(struct info_writer *w, u64 align)
{
	static const u8 zeros[16];

	info_bytes(w, zeros, ALIGN_UP(w->at, align) - w->at);
}

u32 mb_mem_lower(const struct guest *g)
{
	(void)g;
	return L1_EBDA / KIB;
}

u32 mb_mem_upper(const struct guest *g)
{
	return (u32)((g->mem.low - MIB) / KIB);
}

u32 mb_mem_type(enum mem_type t)
{
	return t == MEM_USED ? MEM_RESERVED : (u32)t;
}

#define MEMMAP_ORDER 2
_Static_assert(sizeof(struct memmap) <= PAGE_SIZE << MEMMAP_ORDER, "a memory map must fit its allocation");

struct memmap *mb_memmap(const struct guest *g)
{
	struct memmap *m = pages_alloc(MEMMAP_ORDER);

	if (m)
		l1mem_memmap(&g->mem, m);
	return m;
}

void mb_memmap_free(struct memmap *m)
{
	if (m)
		pfree(ptr_hpa(m), MEMMAP_ORDER);
}

static bool make_info(const struct mb_version *version, struct load_map *l, struct guest *g,
		      const struct placed_module *mod, unsigned nr, struct entry_state *out, char *err,
		      size_t err_size)
{
	struct memmap *map = mb_memmap(g);
	struct info_writer w;
	bool ok;

	if (!map)
		return load_fail(err, err_size, "role=kernel: no memory while loading");
	ok = info_begin(&w, l, version->info_size(g, map, mod, nr), err, err_size);
	if (ok && !version->write_info(&w, g, map, mod, nr, out))
		ok = load_fail(err, err_size, "role=kernel: boot information does not fit");
	mb_memmap_free(map);
	return ok;
}

bool load_multiboot(const struct mb_version *version, struct guest *g, struct entry_state *out, char *err,
		    size_t err_size)
{
	struct placed_module mod[MB_MODULES_MAX];
	struct image image = load_image(&g->kernel);
	struct load_result kernel;
	struct load_map l;
	unsigned nr;

	err[0] = '\0';
	load_map_init(&l, g);
	if (!version->load_kernel(&l, &image, &kernel, err, err_size))
		return false;
	if (kernel.entry >= g->mem.low)
		return load_fail(err, err_size, "role=kernel: entry point %#lx is not in RAM", kernel.entry);
	*out = (struct entry_state){.mode = ENTRY_PROTECTED, .rip = kernel.entry, .rax = version->magic};
	return load_modules(&l, g, MAX(kernel.end, MIB), mod, &nr, err, err_size) &&
	       make_info(version, &l, g, mod, nr, out, err, err_size);
}
