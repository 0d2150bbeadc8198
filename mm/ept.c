/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build, change and look up EPT structures. Knows the format only: no flushing, no locking (one writer at a
 * time), no policy about what may be mapped. SDM "The Extended Page Table Mechanism (EPT)".
 */
#include "mm/ept.h"

/* A table must never forbid what its leaves allow. Bit 10 is ignored while mode-based execute control is off.
 */
#define EPT_TABLE_FLAGS (EPT_RWX | EPT_USER_EXEC | EPT_ACCESSED)
#define EPT_GPA_TOP     BIT(48) /* what four levels translate */

static bool is_leaf(u64 entry, unsigned level)
{
	return level == 1 || (entry & EPT_LARGE);
}

static u64 *entry_table(u64 entry)
{
	return hpa_ptr(HPA(entry & EPT_ADDR_MASK));
}

static u64 load(const u64 *slot)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* A CPU may walk the tables at this moment: entries change in one store, after what they point to. */
static void store(u64 *slot, u64 entry)
{
	__atomic_store_n(slot, entry, __ATOMIC_RELEASE);
}

static void *source_page(struct ept *e)
{
	return e->source->page(e->source->ctx);
}

static void source_release(struct ept *e, void *page)
{
	if (e->source->release)
		e->source->release(e->source->ctx, page);
}

/* Give back the table that `entry` (at `level`) points to, with everything below. */
static void release_tree(struct ept *e, u64 entry, unsigned level)
{
	u64 *table;

	if (!EPT_PRESENT(entry) || is_leaf(entry, level))
		return;
	table = entry_table(entry);
	for (unsigned i = 0; i < 512; i++)
		release_tree(e, load(&table[i]), level - 1);
	source_release(e, table);
}

/* What stands in entry `index` of a table that replaces the leaf `entry` of `level`. */
static u64 split_entry(u64 entry, unsigned level, unsigned index)
{
	u64 part = entry + index * EPT_SIZE(level - 1);

	return level == 2 ? part & ~EPT_LARGE : part;
}

/* Make *slot (at `level` > 1) a table: a new one, or a large leaf taken apart. False: no memory. */
static bool make_table(struct ept *e, u64 *slot, unsigned level)
{
	u64 entry = load(slot);
	u64 *table;

	if (EPT_PRESENT(entry) && !is_leaf(entry, level))
		return true;
	table = source_page(e);
	if (!table)
		return false;
	if (EPT_PRESENT(entry))
		for (unsigned i = 0; i < 512; i++)
			table[i] = split_entry(entry, level, i);
	store(slot, ptr_hpa(table).v | EPT_TABLE_FLAGS);
	return true;
}

/* The entry of `level` that translates gpa; tables on the way are made. NULL: no memory. */
static u64 *slot_at(struct ept *e, u64 gpa, unsigned level)
{
	u64 *table = e->root;

	for (unsigned l = EPT_LEVELS; l > level; l--) {
		u64 *slot = &table[EPT_INDEX(gpa, l)];

		if (!make_table(e, slot, l))
			return NULL;
		table = entry_table(load(slot));
	}
	return &table[EPT_INDEX(gpa, level)];
}

/* The entry that decides about gpa today: a leaf or an absent one, and its level. */
static u64 *slot_today(const struct ept *e, u64 gpa, unsigned *level)
{
	u64 *table = e->root;

	for (unsigned l = EPT_LEVELS;; l--) {
		u64 *slot = &table[EPT_INDEX(gpa, l)];
		u64 entry = load(slot);

		*level = l;
		if (!EPT_PRESENT(entry) || is_leaf(entry, l))
			return slot;
		table = entry_table(entry);
	}
}

static bool range_ok(u64 gpa, u64 size)
{
	return !((gpa | size) & ~PAGE_MASK) && gpa <= EPT_GPA_TOP && size <= EPT_GPA_TOP - gpa;
}

/* Largest level of which one leaf may start at gpa and hpa and is filled by `size`. */
static unsigned leaf_level(const struct ept *e, u64 gpa, u64 hpa, u64 size)
{
	unsigned level = e->max_leaf;

	while (level > 1 && (((gpa | hpa) & (EPT_SIZE(level) - 1)) || size < EPT_SIZE(level)))
		level--;
	return level;
}

bool ept_init(struct ept *e, const struct ept_source *source, unsigned max_leaf)
{
	*e = (struct ept){.source = source, .max_leaf = max_leaf};
	e->root = source_page(e);
	return e->root != NULL;
}

bool ept_map(struct ept *e, u64 gpa, u64 hpa, u64 size, u64 flags)
{
	if (!range_ok(gpa, size) || (hpa & ~EPT_ADDR_MASK))
		return false;
	while (size) {
		unsigned level = leaf_level(e, gpa, hpa, size);
		u64 *slot = slot_at(e, gpa, level);
		u64 old;

		if (!slot)
			return false;
		old = load(slot);
		store(slot, hpa | flags | (level > 1 ? EPT_LARGE : 0));
		release_tree(e, old, level);
		gpa += EPT_SIZE(level);
		hpa += EPT_SIZE(level);
		size -= EPT_SIZE(level);
	}
	return true;
}

/* Clear what one entry of the highest fitting level maps at gpa. Returns the bytes dealt with, 0: no memory
 * to split a leaf. */
static u64 unmap_step(struct ept *e, u64 gpa, u64 size)
{
	u64 *table = e->root;

	for (unsigned l = EPT_LEVELS;; l--) {
		u64 *slot = &table[EPT_INDEX(gpa, l)];
		u64 entry = load(slot), rest = EPT_SIZE(l) - (gpa & (EPT_SIZE(l) - 1));

		if (!EPT_PRESENT(entry))
			return MIN(rest, size);
		if (rest == EPT_SIZE(l) && size >= rest) {
			store(slot, 0);
			release_tree(e, entry, l);
			return rest;
		}
		if (!make_table(e, slot, l))
			return 0;
		table = entry_table(load(slot));
	}
}

bool ept_unmap(struct ept *e, u64 gpa, u64 size)
{
	if (!range_ok(gpa, size))
		return false;
	while (size) {
		u64 done = unmap_step(e, gpa, size);

		if (!done)
			return false;
		gpa += done;
		size -= done;
	}
	return true;
}

u64 *ept_small_leaf(struct ept *e, u64 gpa)
{
	unsigned level;

	return gpa < EPT_GPA_TOP && EPT_PRESENT(load(slot_today(e, gpa, &level))) ? slot_at(e, gpa, 1) : NULL;
}

/* What stands at level 3; 0 where no table of level 3 is. */
static u64 entry_of_gib(const struct ept *e, u64 gpa)
{
	u64 top = load(&e->root[EPT_INDEX(gpa, 4)]);

	return EPT_PRESENT(top) ? load(&entry_table(top)[EPT_INDEX(gpa, 3)]) : 0;
}

bool ept_share(struct ept *to, const struct ept *from, u64 gpa, u64 size)
{
	for (u64 end = gpa + size; gpa < end; gpa += EPT_SIZE(3)) {
		u64 entry = from ? entry_of_gib(from, gpa) : 0;
		u64 *slot;

		if (!entry && !entry_of_gib(to, gpa))
			continue;
		slot = slot_at(to, gpa, 3);
		if (!slot)
			return false;
		store(slot, entry);
	}
	return true;
}

bool ept_protect(struct ept *e, u64 gpa, u64 clear, u64 set)
{
	u64 *slot = ept_small_leaf(e, gpa), entry;

	if (!slot)
		return false;
	entry = load(slot);
	/* The CPU may set accessed and dirty bits meanwhile. */
	while (!__atomic_compare_exchange_n(slot, &entry, (entry & ~clear) | set, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED))
		;
	return true;
}

struct ept_leaf ept_lookup(const struct ept *e, u64 gpa)
{
	struct ept_leaf leaf = {.level = EPT_LEVELS};
	u64 entry, inside;

	if (gpa >= EPT_GPA_TOP)
		return leaf;
	entry = load(slot_today(e, gpa, &leaf.level));
	if (!EPT_PRESENT(entry))
		return leaf;
	inside = EPT_SIZE(leaf.level) - 1;
	leaf.entry = entry;
	leaf.hpa = (entry & EPT_ADDR_MASK & ~inside) | (gpa & inside);
	return leaf;
}

void ept_destroy(struct ept *e)
{
	if (!e->root)
		return;
	for (unsigned i = 0; i < 512; i++)
		release_tree(e, load(&e->root[i]), EPT_LEVELS);
	source_release(e, e->root);
	e->root = NULL;
}
