/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ELF executables of both classes, loaded to their physical addresses. "Tool Interface Standard: Executable
 * and Linkable Format". No relocation, no section data.
 */
#include "hv/load.h"
#include "hv/lib.h"
#include "mm/guest_copy.h"

#define ELF_HEADER_MIN     52
#define ELF_MACHINE_386    3
#define ELF_MACHINE_X86_64 62
#define ELF_TYPE_EXEC      2
#define ELF_TYPE_DYN       3
#define ELF_SEGMENTS_MAX   64
#define PT_LOAD            1

struct elf {
	bool is64;
	u64 entry, phoff;
	u32 phentsize, phnum;
};

struct segment {
	u64 offset, vaddr, paddr, filesz, memsz;
};

static bool elf_parse(const struct image *i, struct elf *e)
{
	u16 machine;

	if (!image_has(i, 0, ELF_HEADER_MIN) || memcmp(i->data, "\177ELF", 4) || i->data[5] != 1)
		return false;
	e->is64 = i->data[4] == 2;
	machine = image_u16(i, 18);
	if ((e->is64 && !image_has(i, 0, 64)) || (!e->is64 && i->data[4] != 1) ||
	    (machine != ELF_MACHINE_386 && machine != ELF_MACHINE_X86_64))
		return false;
	e->entry = e->is64 ? image_u64(i, 24) : image_u32(i, 24);
	e->phoff = e->is64 ? image_u64(i, 32) : image_u32(i, 28);
	e->phentsize = image_u16(i, e->is64 ? 54 : 42);
	e->phnum = image_u16(i, e->is64 ? 56 : 44);
	return true;
}

static bool elf_sane(const struct image *i, const struct elf *e)
{
	u16 type = image_u16(i, 16);

	return (type == ELF_TYPE_EXEC || type == ELF_TYPE_DYN) && e->phnum && e->phnum <= ELF_SEGMENTS_MAX &&
	       e->phentsize >= (e->is64 ? 56u : 32u) && image_has(i, e->phoff, (u64)e->phnum * e->phentsize);
}

/* Program header `n`. False: no PT_LOAD, or one that takes no memory. */
static bool segment_get(const struct image *i, const struct elf *e, unsigned n, struct segment *s)
{
	u64 at = e->phoff + (u64)n * e->phentsize;

	if (image_u32(i, at) != PT_LOAD)
		return false;
	if (e->is64)
		*s = (struct segment){image_u64(i, at + 8), image_u64(i, at + 16), image_u64(i, at + 24),
				      image_u64(i, at + 32), image_u64(i, at + 40)};
	else
		*s = (struct segment){image_u32(i, at + 4), image_u32(i, at + 8), image_u32(i, at + 12),
				      image_u32(i, at + 16), image_u32(i, at + 20)};
	return s->memsz != 0;
}

static bool segment_load(struct load_map *l, const struct image *i, const struct segment *s, char *err,
			 size_t err_size)
{
	if (s->filesz > s->memsz || !image_has(i, s->offset, s->filesz))
		return load_fail(err, err_size, "role=kernel: ELF segment at %#lx reaches behind the file",
				 s->paddr);
	if (!load_claim(l, s->paddr, s->memsz))
		return load_fail(err, err_size,
				 "mem=%luM: ELF segment of %lu KiB at %#lx overlaps another or is not in RAM",
				 in_mib(l->mem->ram), in_kib(s->memsz), s->paddr);
	if (!load_copy(l, s->paddr, i->data + s->offset, s->filesz) ||
	    !guest_zero(l->mem, GPA(s->paddr + s->filesz), s->memsz - s->filesz))
		return load_fail(err, err_size, "role=kernel: ELF segment at %#lx is not in RAM", s->paddr);
	return true;
}

bool load_elf(struct load_map *l, const struct image *i, struct load_result *out, char *err, size_t err_size)
{
	struct segment s;
	struct elf e;

	if (!elf_parse(i, &e))
		return load_fail(err, err_size, "%s", NOT_THIS_KIND);
	if (!elf_sane(i, &e))
		return load_fail(err, err_size, "role=kernel: bad ELF header");
	*out = (struct load_result){.entry = e.entry};
	for (unsigned n = 0; n < e.phnum; n++) {
		if (!segment_get(i, &e, n, &s))
			continue;
		if (!segment_load(l, i, &s, err, err_size))
			return false;
		out->end = MAX(out->end, s.paddr + s.memsz);
		/* An entry point given as virtual address is meant where that segment really stands. */
		if (e.entry >= s.vaddr && e.entry - s.vaddr < s.memsz)
			out->entry = e.entry - s.vaddr + s.paddr;
	}
	if (!out->end)
		return load_fail(err, err_size, "role=kernel: ELF file without a loadable segment");
	return true;
}
