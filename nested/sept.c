/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling a shadow EPT: EPT12 AND EPT01, on demand. Its tables follow EPT12's one to one, and each entry
 * knows which one of EPT12 it was made of.
 *
 * An empty entry is filled without a lock: claim it by its source, then write it. Whatever is there already
 * changes only under the lock. An INVEPT waits for the fills that go on without the lock (sept_sync.c), so
 * that none of them can bring back what EPT12 was before it.
 */
#include "nested/sept.h"
#include "mm/guest_copy.h"
#include "nested/sept_root.h"

#define BATCH       32u /* small entries filled with one fault: four cache lines of EPT12 */
#define BATCH_LARGE 8u

#define USER_EXEC_SHIFT 8 /* from EPT_EXEC to EPT_USER_EXEC */

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
 * EPT01 has one execute permission for both modes. L1's type for L2 where EPT01 maps plain memory; a device
 * that EPT01 maps keeps L0's. The write permission is held back until the dirty flag is set in both, so that
 * the first write is seen. SDM "EPT and Memory Typing".
 */
static struct leaf make_leaf(const struct ept12_result *r, const struct ept_leaf *l0)
{
	bool ram = (l0->entry & EPT_TYPE_MASK) == EPT_TYPE(MEMTYPE_WB);
	u64 type = EPT_TYPE(r->type) | (r->ipat ? EPT_IPAT : 0);
	u64 perm01 = (l0->entry & EPT_RWX) | (l0->entry & EPT_EXEC) << USER_EXEC_SHIFT;
	u64 perm = r->perm & perm01;

	if (!r->dirty || !(l0->entry & EPT_DIRTY))
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

/* L2 may write to these pages from now on, and EPT01 will not tell. Before the entry is written. */
static void let_write(const struct sept *s, u64 gpa, unsigned level)
{
	struct l1page *page = l1mem_page(s->ept12.mem, GPA(gpa & ~(EPT_SIZE(level) - 1)));

	for (u64 i = 0; page && i < EPT_SIZE(level) / PAGE_SIZE; i++)
		l1page_expose(&page[i]);
}

static void write_leaf(const struct sept *s, u64 *slot, u64 gpa, const struct leaf *leaf)
{
	if (leaf->flags & EPT_WRITE)
		let_write(s, gpa, leaf->level);
	sept_store(slot, leaf_entry(leaf, leaf->level));
}

/* How far a fill has come. */
enum step {
	STEP_DONE,
	STEP_AGAIN, /* another CPU is at this entry, or no node: let L2 repeat its access */
	STEP_LOCK,  /* not without the lock */
};

/* The entry will be made of `source` by the caller alone. */
static enum step claim(u64 *slot, u64 source, bool locked)
{
	u64 none = 0;

	if (__atomic_compare_exchange_n(sept_source(slot), &none, source, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return STEP_DONE;
	if (!locked)
		return STEP_LOCK;
	if (!sept_load(slot)) /* claimed, and not written yet */
		return STEP_AGAIN;
	sept_store(sept_source(slot), source);
	return STEP_DONE;
}

/* A place in a shadow on the way down. */
struct place {
	u64 *table;
	unsigned level;
};

static u64 *slot_of(const struct place *p, u64 addr)
{
	return &p->table[EPT_INDEX(addr, p->level)];
}

/* A table in the place of whatever the entry is. `source`: the entry of EPT12 that names its table, or the
 * leaf that is split. */
static enum step make_table(struct sept *s, struct sept_root *r, const u64 *table, u64 *slot, u64 source,
			    bool follows)
{
	struct sept_node *n = sept_node_get(s, r, sept_node_of(table), slot);
	u64 old = sept_load(slot);
	enum step step;

	if (!n)
		return STEP_AGAIN;
	step = source ? claim(slot, source, true) : STEP_DONE;
	if (step != STEP_DONE)
		return step; /* the next sweep finds the node that nothing names */
	if (follows)
		watch_start(&s->watches, &n->watch, GPA(source & EPT_ADDR_MASK));
	sept_store(slot, sept_table_entry(n->table));
	if (old)
		sept_sweep(s, r);
	return STEP_DONE;
}

/*
 * One level down: along a table of EPT12 that `source` names (`follows`), or below EPT12's leaf `source`; 0:
 * further below it, where the entry has no source of its own.
 */
static enum step go_down(struct sept *s, struct sept_root *r, struct place *p, u64 addr, u64 source,
			 bool follows, bool locked)
{
	u64 *slot = slot_of(p, addr);
	enum step step;

	if (sept_load(sept_source(slot)) != source || !sept_is_table(sept_load(slot), p->level)) {
		step = locked ? make_table(s, r, p->table, slot, source, follows) : STEP_LOCK;
		if (step != STEP_DONE)
			return step;
	}
	p->table = sept_table(sept_load(slot));
	p->level--;
	return STEP_DONE;
}

/* Below a leaf of EPT12 all entries come from that one: no claim. */
static enum step put_part(const struct sept *s, u64 *slot, u64 gpa, const struct leaf *leaf, bool locked)
{
	if (sept_load(slot) && !locked)
		return STEP_LOCK;
	write_leaf(s, slot, gpa, leaf);
	return STEP_DONE;
}

/* The leaf, where it belongs. `*slot`: where that is, when the entry is as large as EPT12's. */
static enum step put_leaf(struct sept *s, struct sept_root *r, struct place *p, u64 addr,
			  const struct ept12_result *found, const struct leaf *leaf, bool locked)
{
	u64 source = found->entry[found->level];
	u64 *slot = slot_of(p, addr);
	enum step step;

	if (leaf->level == found->level) {
		u64 old = sept_load(slot);

		step = claim(slot, source, locked);
		if (step != STEP_DONE)
			return step;
		write_leaf(s, slot, found->gpa.v, leaf);
		if (sept_is_table(old, p->level))
			sept_sweep(s, r);
		return STEP_DONE;
	}
	while (p->level > leaf->level) {
		step = go_down(s, r, p, addr, p->level == found->level ? source : 0, false, locked);
		if (step != STEP_DONE)
			return step;
	}
	return put_part(s, slot_of(p, addr), found->gpa.v, leaf, locked);
}

/* EPT01's leaf for gpa. The last one found serves as long as it covers what is asked for: neighbours mostly
 * lie in one large page. */
static struct ept_leaf leaf01(const struct sept *s, struct ept_leaf *last, u64 *at, u64 gpa)
{
	if (!last->entry || (gpa ^ *at) >> EPT_SHIFT(last->level)) {
		*last = ept_lookup(s->watches.ept01, gpa);
		*at = gpa;
	}
	return (struct ept_leaf){last->entry, last->level, last->hpa + (gpa - *at)};
}

/*
 * The leaves beside the one just filled that L1 has ready in the same table, as a CPU would cache them before
 * time: most L2s touch the next page soon. Only into empty entries.
 */
static void fill_beside(const struct sept *s, const struct ept12 *e, const struct ept12_result *found,
			struct ept_leaf *l0, u64 *slot)
{
	unsigned batch = found->level == 1 ? BATCH : BATCH_LARGE;
	unsigned skip = (unsigned)((uintptr_t)slot / sizeof(u64)) % batch;
	u64 *first = slot - skip, entry[BATCH], at = found->gpa.v;

	if (!guest_read64s(s->ept12.mem, GPA(found->entry_at.v - skip * sizeof(u64)), entry, batch))
		return;
	for (unsigned i = 0; i < batch; i++) {
		struct ept12_result r;
		struct ept_leaf there;
		struct leaf leaf;

		if (sept_load(sept_source(&first[i])) || !ept12_beside(e, found, entry[i], &r))
			continue;
		there = leaf01(s, l0, &at, r.gpa.v);
		leaf = make_leaf(&r, &there);
		if (leaf.level == found->level && EPT_PRESENT(leaf.flags) &&
		    claim(&first[i], entry[i], false) == STEP_DONE)
			write_leaf(s, &first[i], r.gpa.v, &leaf);
	}
}

/* A page whose writes are watched becomes dirty by this one, as if L1 had written. */
static struct ept_leaf dirty01(const struct sept *s, u64 gpa, u64 access)
{
	struct ept_leaf l0 = ept_lookup(s->watches.ept01, gpa);

	if (access & l0.entry & EPT_WRITE && !(l0.entry & EPT_DIRTY)) {
		ept_protect(s->watches.ept01, gpa, 0, EPT_DIRTY);
		l0.entry |= EPT_DIRTY;
	}
	return l0;
}

/* The whole way for one address. *result: the answer, when it is done. */
static enum step fill(struct sept *s, struct sept_root *r, ngpa_t addr, u64 hw_qual, bool locked,
		      const struct ept12_log *log, struct ept12_result *out, enum sept_result *result)
{
	u64 access = hw_qual & EPT_QUAL_ACCESS ? hw_qual & EPT_QUAL_ACCESS : EPT_QUAL_READ;
	struct place p = {.table = r->top->table, .level = SEPT_TOP};
	struct ept12 e = ept12_of(s, r);
	struct ept_leaf l0;
	struct leaf leaf;
	enum step step;

	e.log = log;
	ept12_walk(&e, addr, hw_qual | access, out);
	*result = to_l1(out->status);
	if (out->status != EPT12_OK)
		return STEP_DONE;
	while (p.level > out->level) {
		step = go_down(s, r, &p, addr.v, out->entry[p.level], true, locked);
		if (step != STEP_DONE)
			return step;
	}
	l0 = dirty01(s, out->gpa.v, access);
	*result = access & ~l0.entry ? SEPT_MMIO : SEPT_FILLED;
	if (*result == SEPT_MMIO)
		return STEP_DONE;
	leaf = make_leaf(out, &l0);
	step = put_leaf(s, r, &p, addr.v, out, &leaf, locked);
	if (step == STEP_DONE && leaf.level == out->level)
		fill_beside(s, &e, out, &l0, slot_of(&p, addr.v));
	return step;
}

static void fills_count(struct sept_root *r, unsigned vcpu)
{
	__atomic_fetch_add(&r->place[vcpu].fills, 1, __ATOMIC_SEQ_CST);
}

enum sept_result sept_fault(struct sept *s, struct sept_root *r, unsigned vcpu, ngpa_t addr, u64 hw_qual,
			    const struct ept12_log *log, struct ept12_result *out)
{
	enum sept_result result;
	enum step step;

	fills_count(r, vcpu);
	step = fill(s, r, addr, hw_qual, false, log, out, &result);
	fills_count(r, vcpu);
	if (step == STEP_LOCK) {
		spin_lock(&s->lock);
		step = fill(s, r, addr, hw_qual, true, log, out, &result);
		spin_unlock(&s->lock);
	}
	return step == STEP_DONE ? result : SEPT_RETRY;
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
	l0 = ept_lookup(s->watches.ept01, r.gpa.v);
	want = make_leaf(&r, &l0);
	return !(EPT_PRESENT(entry) & ~want.flags) && (entry & EPT_ADDR_MASK) == l0.hpa &&
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

	return audit_table(s, &e, root->top->table, SEPT_TOP, 0);
}
