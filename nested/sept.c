/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling a shadow EPT: EPT12 AND EPT01, on demand. No lock. The order is what makes that safe
 * against a drop on another CPU: first a level-3 table that hangs in the root is picked, then EPT12 is read,
 * then everything goes below that table. If L1's INVEPT came in between, the table is out of the root already
 * and what is installed below it is never used again.
 */
#include "nested/sept.h"
#include "mm/guest_copy.h"
#include "nested/sept_root.h"

#define BATCH         32u /* entries filled with one fault: four cache lines of EPT12 */
#define INSTALL_TRIES 64u /* each failed try means that another CPU changed the entry */

/* A table entry allows everything: the leaf has the permissions. */
static u64 table_entry(const u64 *table)
{
	return ptr_hpa(table).v | EPT_RWX | EPT_ACCESSED;
}

static bool replace(u64 *slot, u64 old, u64 new)
{
	return __atomic_compare_exchange_n(slot, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/*
 * The table that a slot names; made when nothing or a large leaf stands there. NULL: no page, or the slot is
 * a limbo link (this part was dropped).
 */
static u64 *table_below(struct sept *s, u64 *slot, unsigned level)
{
	for (unsigned try = 0; try < INSTALL_TRIES; try++) {
		u64 entry = sept_load(slot);
		u64 *table;

		if (sept_is_table(entry, level))
			return sept_table(entry);
		if (entry && !EPT_PRESENT(entry))
			return NULL;
		table = sept_page_get(s);
		if (!table)
			return NULL;
		if (replace(slot, entry, table_entry(table)))
			return table;
		sept_page_put(s, table);
	}
	return NULL;
}

struct leaf {
	u64 hpa; /* of exactly the address */
	u64 flags;
	unsigned level; /* largest size that both sides allow */
};

static u64 leaf_entry(const struct leaf *leaf, unsigned level)
{
	u64 large = level > 1 ? EPT_LARGE : 0;

	return (leaf->hpa & ~(EPT_SIZE(level) - 1)) | leaf->flags | large;
}

/*
 * Put the leaf at its level or, where a table stands already, below it. Returns where it is, *level its
 * level; NULL: dropped meanwhile, or no page.
 */
static u64 *install(struct sept *s, u64 *table, u64 addr, const struct leaf *leaf, unsigned *level)
{
	*level = SEPT_SUB;
	for (unsigned try = 0; try < INSTALL_TRIES; try++) {
		u64 *slot = &table[EPT_INDEX(addr, *level)];
		u64 entry = sept_load(slot);

		if (*level > leaf->level || sept_is_table(entry, *level)) {
			table = table_below(s, slot, *level);
			if (!table)
				return NULL;
			--*level;
			continue;
		}
		if (entry && !EPT_PRESENT(entry))
			return NULL;
		if (replace(slot, entry, leaf_entry(leaf, *level)))
			return slot;
	}
	return NULL;
}

/*
 * L1's type for L2 where EPT01 maps plain memory; a device that EPT01 maps keeps L0's. The write permission
 * is held back until EPT12's dirty flag is set, so that the first write is seen. SDM "EPT and Memory Typing".
 */
static struct leaf make_leaf(const struct ept12_result *r, const struct ept_leaf *l0)
{
	bool ram = (l0->entry & EPT_TYPE_MASK) == EPT_TYPE(MEMTYPE_WB);
	u64 type = EPT_TYPE(r->type) | (r->ipat ? EPT_IPAT : 0);
	u64 perm = r->perm & l0->entry & EPT_RWX;

	if (!r->dirty)
		perm &= ~EPT_WRITE;
	if (!ram)
		type = l0->entry & (EPT_TYPE_MASK | EPT_IPAT);
	return (struct leaf){
		.hpa = l0->hpa,
		.flags = perm | type | EPT_ACCESSED | (perm & EPT_WRITE ? EPT_DIRTY : 0),
		.level = MIN(r->level, l0->level),
	};
}

static struct ept12 ept12_of(const struct sept *s, const struct sept_root *root)
{
	struct ept12 e = s->ept12;

	e.eptp = sept_load(&root->key);
	return e;
}

static enum sept_result to_l1(enum ept12_status status)
{
	switch (status) {
	case EPT12_VIOLATION:
		return SEPT_VIOLATION;
	case EPT12_MISCONFIG:
		return SEPT_MISCONFIG;
	case EPT12_LOG_FULL:
		return SEPT_LOG_FULL;
	case EPT12_OK:
	case EPT12_RETRY:
		break;
	}
	return SEPT_RETRY;
}

/* EPT01's leaf for gpa. The last one found serves as long as it covers what is asked for: neighbours mostly
 * lie in one large page. */
static struct ept_leaf leaf01(const struct sept *s, struct ept_leaf *last, u64 *at, u64 gpa)
{
	if (!last->entry || (gpa ^ *at) >> EPT_SHIFT(last->level)) {
		*last = ept_lookup(s->ept01, gpa);
		*at = gpa;
	}
	return (struct ept_leaf){last->entry, last->level, last->hpa + (gpa - *at)};
}

/*
 * The leaves beside the one just filled that L1 has ready in the same table, as a CPU would cache them before
 * time: most L2s touch the next page soon. Only into empty slots; `slot` is the filled one, at the level of
 * EPT12's leaf.
 */
static void fill_beside(const struct sept *s, const struct ept12 *e, const struct ept12_result *found,
			struct ept_leaf *l0, u64 *slot)
{
	unsigned skip = (unsigned)((uintptr_t)slot / sizeof(u64)) % BATCH;
	u64 *first = slot - skip, entry[BATCH], at = found->gpa.v;

	if (!guest_read64s(s->ept12.mem, GPA(found->entry_at.v - skip * sizeof(u64)), entry, BATCH))
		return;
	for (unsigned i = 0; i < BATCH; i++) {
		struct ept12_result r;
		struct ept_leaf there;
		struct leaf leaf;

		if (sept_load(&first[i]) || !ept12_beside(e, found, entry[i], &r))
			continue;
		there = leaf01(s, l0, &at, r.gpa.v);
		leaf = make_leaf(&r, &there);
		if (leaf.level == found->level && (leaf.flags & EPT_RWX))
			replace(&first[i], 0, leaf_entry(&leaf, leaf.level));
	}
}

enum sept_result sept_fault(struct sept *s, struct sept_root *root, ngpa_t addr, u64 hw_qual,
			    const struct ept12_log *log, struct ept12_result *out)
{
	u64 access = hw_qual & EPT_QUAL_ACCESS ? hw_qual & EPT_QUAL_ACCESS : EPT_QUAL_READ;
	struct ept12 e = ept12_of(s, root);
	struct ept_leaf l0;
	struct leaf leaf;
	unsigned level;
	u64 *slot, *table = table_below(s, &root->table[EPT_INDEX(addr.v, SEPT_TOP)], SEPT_TOP);

	e.log = log;
	ept12_walk(&e, addr, hw_qual | access, out);
	if (out->status != EPT12_OK)
		return to_l1(out->status);
	l0 = ept_lookup(s->ept01, out->gpa.v);
	if (access & ~l0.entry)
		return SEPT_MMIO;
	leaf = make_leaf(out, &l0);
	slot = table ? install(s, table, addr.v, &leaf, &level) : NULL;
	if (!slot)
		return SEPT_RETRY;
	if (level == out->level)
		fill_beside(s, &e, out, &l0, slot);
	return SEPT_FILLED;
}

/* One leaf against the walk as it would go now. Extra permissions or another address are faults; fewer
 * permissions heal by a fault. */
static bool leaf_true(const struct sept *s, const struct ept12 *e, u64 addr, u64 entry)
{
	struct ept12_result r;
	struct ept_leaf l0;
	struct leaf want;

	ept12_walk(e, NGPA(addr), 0, &r);
	if (r.status != EPT12_OK)
		return false;
	l0 = ept_lookup(s->ept01, r.gpa.v);
	want = make_leaf(&r, &l0);
	return !(entry & EPT_RWX & ~want.flags) && (entry & EPT_ADDR_MASK) == l0.hpa &&
	       (entry & (EPT_TYPE_MASK | EPT_IPAT)) == (want.flags & (EPT_TYPE_MASK | EPT_IPAT));
}

static unsigned audit_table(const struct sept *s, const struct ept12 *e, const u64 *table, unsigned level,
			    u64 addr)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < 512; i++, addr += EPT_SIZE(level)) {
		u64 entry = sept_load(&table[i]);

		if (sept_is_table(entry, level))
			wrong += audit_table(s, e, sept_table(entry), level - 1, addr);
		else if (EPT_PRESENT(entry) && !leaf_true(s, e, addr, entry))
			wrong++;
	}
	return wrong;
}

unsigned sept_audit(struct sept *s, struct sept_root *root)
{
	struct ept12 e = ept12_of(s, root);

	return audit_table(s, &e, root->table, SEPT_TOP, 0);
}
