/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of a kernel and what goes with it in a guest's memory below 4 GiB. Must not know any image
 * format. */
#include "hv/load.h"
#include "hv/lib.h"
#include "mm/guest_copy.h"

void load_map_init(struct load_map *l, struct guest *g)
{
	l->mem = &g->mem;
	l->count = 1;
	l->area[0].start = L1_EBDA;
	l->area[0].end = MIB;
}

/* Index of an area that [start, start + size) touches, or -1. Pre: no overflow. */
static int conflict(const struct load_map *l, u64 start, u64 size)
{
	for (unsigned i = 0; i < l->count; i++)
		if (start < l->area[i].end && l->area[i].start < start + size)
			return (int)i;
	return -1;
}

bool load_claim(struct load_map *l, u64 start, u64 size)
{
	if (!size)
		return true;
	if (start >= l->mem->low || size > l->mem->low - start || l->count == LOAD_AREAS_MAX)
		return false;
	if (conflict(l, start, size) >= 0)
		return false;
	l->area[l->count].start = start;
	l->area[l->count++].end = start + size;
	return true;
}

bool load_place_low(struct load_map *l, u64 min, u64 max, u64 size, u64 align, u64 *start)
{
	u64 at = ALIGN_UP(min, align);

	max = MIN(max, l->mem->low);
	while (at < max && size <= max - at) {
		int i = conflict(l, at, size);

		if (i < 0) {
			*start = at;
			return load_claim(l, at, size);
		}
		at = ALIGN_UP(l->area[i].end, align);
	}
	return false;
}

bool load_place_high(struct load_map *l, u64 min, u64 max, u64 size, u64 align, u64 *start)
{
	max = MIN(max, l->mem->low);
	while (max >= min && size <= max - min) {
		u64 at = ALIGN_DOWN(max - size, align);
		int i = conflict(l, at, size);

		if (at < min)
			return false;
		if (i < 0) {
			*start = at;
			return load_claim(l, at, size);
		}
		max = l->area[i].start;
	}
	return false;
}

u64 load_end(const struct load_map *l)
{
	u64 end = MIB;

	for (unsigned i = 0; i < l->count; i++)
		end = MAX(end, l->area[i].end);
	return end;
}

u16 image_u16(const struct image *i, u64 offset)
{
	return (u16)(i->data[offset] | i->data[offset + 1] << 8);
}

u32 image_u32(const struct image *i, u64 offset)
{
	return image_u16(i, offset) | (u32)image_u16(i, offset + 2) << 16;
}

u64 image_u64(const struct image *i, u64 offset)
{
	return image_u32(i, offset) | (u64)image_u32(i, offset + 4) << 32;
}

bool load_copy(const struct load_map *l, u64 gpa, const void *from, u64 size)
{
	return guest_write(l->mem, GPA(gpa), from, size);
}

bool load_gdt(const struct load_map *l, u64 gpa, unsigned bits, struct entry_state *out)
{
	/* SDM "Segment Descriptors": flat, present, accessed; code with L (64) or D (32). */
	const u64 gdt[LOAD_GDT_SIZE / 8] = {
		0,
		0,
		bits == 64 ? 0x00af9b000000ffff : 0x00cf9b000000ffff,
		0x00cf93000000ffff,
	};

	out->gdt_base = gpa;
	out->gdt_limit = LOAD_GDT_SIZE - 1;
	return load_copy(l, gpa, gdt, sizeof(gdt));
}

void load_error(char *err, size_t err_size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat(err, err_size, fmt, ap);
	va_end(ap);
}
