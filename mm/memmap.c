/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted ranges of physical memory. Where two claims overlap the less usable one wins, byte by byte. */
#include "mm/memmap.h"
#include "hv/lib.h"

/* How little use memory of a type is; unknown types count as reserved. */
static unsigned rank(enum mem_type t)
{
	switch (t) {
	case MEM_RAM:
		return 0;
	case MEM_USED:
		return 1;
	case MEM_ACPI:
		return 2;
	case MEM_NVS:
		return 3;
	case MEM_BAD:
		return 5;
	default:
		return 4;
	}
}

static bool insert(struct memmap *m, unsigned at, u64 start, u64 end, enum mem_type type)
{
	if (m->count == MEMMAP_MAX)
		return false;
	memmove(&m->range[at + 1], &m->range[at], (m->count - at) * sizeof(m->range[0]));
	m->range[at] = (struct mem_range){start, end, type};
	m->count++;
	return true;
}

/* Give [start, end), which lies inside range i, another type; the rest of range i keeps its own. */
static bool recolour(struct memmap *m, unsigned i, u64 start, u64 end, enum mem_type type)
{
	struct mem_range old = m->range[i];
	unsigned pieces = (old.start < start ? 1u : 0u) + (end < old.end ? 1u : 0u);

	if (m->count + pieces > MEMMAP_MAX)
		return false;
	m->range[i] = (struct mem_range){start, end, type};
	if (end < old.end)
		insert(m, i + 1, end, old.end, old.type);
	if (old.start < start)
		insert(m, i, old.start, start, old.type);
	return true;
}

static void join_neighbours(struct memmap *m)
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->count; i++) {
		struct mem_range *last = n ? &m->range[n - 1] : NULL;

		if (last && last->end == m->range[i].start && last->type == m->range[i].type)
			last->end = m->range[i].end;
		else
			m->range[n++] = m->range[i];
	}
	m->count = n;
}

/* One step of memmap_add: deal with the first piece of [start, end) and return where the rest begins; `start`
 * itself: full. */
static u64 add_piece(struct memmap *m, u64 start, u64 end, enum mem_type type)
{
	unsigned i = 0;
	struct mem_range *r;

	while (i < m->count && m->range[i].end <= start)
		i++;
	r = &m->range[i];
	if (i == m->count || r->start > start) {
		u64 stop = i < m->count ? MIN(end, r->start) : end;

		return insert(m, i, start, stop, type) ? stop : start;
	}
	end = MIN(end, r->end);
	if (rank(type) > rank(r->type) && !recolour(m, i, start, end, type))
		return start;
	return end;
}

bool memmap_add(struct memmap *m, u64 start, u64 end, enum mem_type type)
{
	bool ok = true;

	while (start < end) {
		u64 next = add_piece(m, start, end, type);

		ok = next != start;
		if (!ok)
			break;
		start = next;
	}
	join_neighbours(m);
	return ok;
}

bool memmap_reserve(struct memmap *m, u64 start, u64 end)
{
	if (start >= end)
		return true;
	end = end > UINT64_MAX - PAGE_SIZE ? end & PAGE_MASK : ALIGN_UP(end, PAGE_SIZE);
	return memmap_add(m, start & PAGE_MASK, end, MEM_USED);
}

enum mem_type memmap_type(const struct memmap *m, u64 addr)
{
	for (unsigned i = 0; i < m->count; i++)
		if (addr >= m->range[i].start && addr < m->range[i].end)
			return m->range[i].type;
	return MEM_RESERVED;
}

u64 memmap_ram_top(const struct memmap *m)
{
	for (unsigned i = m->count; i > 0; i--)
		if (m->range[i - 1].type == MEM_RAM || m->range[i - 1].type == MEM_USED)
			return m->range[i - 1].end;
	return 0;
}
