/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roots of shadow EPTs and the life of their table pages. Whatever is taken out of a root stays untouched
 * ("limbo") while a vCPU is inside that may still have it in its paging-structure caches: its generation at
 * entry tells. Nothing here looks at EPT12.
 *
 * Limbo lists are linked through entry 0 of each table: a link has no R, W, X, so a CPU that still walks the
 * table finds "not present" there, and is never 0, so nobody can install over it.
 */
#include "nested/sept_root.h"
#include "hv/lib.h"
#include "mm/palloc.h"

#define LINK(table, level) (ptr_hpa(table).v | (u64)(level) << 3)
#define LINK_LEVEL(link)   ((unsigned)((link) >> 3 & 7))
#define LINK_END           (7ull << 3)

#define KEY_ADDR(key)  ((key)&EPT_ADDR_MASK)
#define TABLE_MAPS     (512 * PAGE_SIZE) /* of a level-1 table */
#define PAGES_MIN      64u               /* for each vCPU: what a few instructions touch */
#define PAGES_RESERVED 32u
#define ROOTS_FULL     4u /* roots that may map all of RAM by 4 KiB pages at a time */

/* Pre: lock held. */
static void page_release(struct sept *s, u64 *table)
{
	table[0] = ptr_hpa(s->free).v;
	s->free = table;
}

void sept_page_put(struct sept *s, u64 *table)
{
	spin_lock(&s->lock);
	page_release(s, table);
	spin_unlock(&s->lock);
}

/* Pre: lock held. */
static bool pool_grow(struct sept *s)
{
	u64 *page = s->pages < s->pages_max ? page_alloc() : NULL;

	if (!page)
		return false;
	s->pages++;
	page_release(s, page);
	return true;
}

/* All tables below entries [first, 512) of a table nobody can reach. */
static void release_below(struct sept *s, const u64 *table, unsigned level, unsigned first)
{
	for (unsigned i = first; level > 1 && i < 512; i++) {
		if (!sept_is_table(table[i], level))
			continue;
		release_below(s, sept_table(table[i]), level - 1, 0);
		page_release(s, sept_table(table[i]));
	}
}

static void limbo_release(struct sept *s, struct sept_limbo *l)
{
	while (l->head != LINK_END) {
		u64 *table = sept_table(l->head);
		unsigned level = LINK_LEVEL(l->head);

		l->head = table[0];
		release_below(s, table, level, 1);
		page_release(s, table);
	}
}

/* Put a subtree on the list. What entry 0 named loses its parent there and so gets on the list itself. */
static void limbo_push(struct sept_limbo *l, u64 *table, unsigned level)
{
	while (table) {
		u64 child = __atomic_exchange_n(&table[0], l->head, __ATOMIC_SEQ_CST);

		l->head = LINK(table, level);
		table = sept_is_table(child, level) ? sept_table(child) : NULL;
		level--;
	}
}

/* No vCPU is inside with a generation before `gen`. */
static bool passed(const struct sept *s, const struct sept_root *r, u64 gen)
{
	for (unsigned i = 0; i < s->nr_vcpus; i++) {
		u64 inside = __atomic_load_n(&r->place[i].inside, __ATOMIC_SEQ_CST);

		if (inside && inside < gen)
			return false;
	}
	return true;
}

static bool nobody_inside(const struct sept *s, const struct sept_root *r)
{
	return passed(s, r, ~0ull);
}

/* Two lists, so that a stream of drops cannot put off the older ones for ever. Pre: lock held. */
static void reclaim(struct sept *s, struct sept_root *r)
{
	if (passed(s, r, r->old.gen))
		limbo_release(s, &r->old);
	if (r->old.head != LINK_END)
		return;
	r->old = r->young;
	r->young.head = LINK_END;
	if (passed(s, r, r->old.gen))
		limbo_release(s, &r->old);
}

/* Take everything out of a root. False: it was empty. Pre: lock held. */
static bool drop(struct sept *s, struct sept_root *r)
{
	bool any = false;

	for (unsigned i = 0; i < 512; i++) {
		u64 entry = sept_load(&r->table[i]);

		if (!entry)
			continue;
		entry = __atomic_exchange_n(&r->table[i], 0, __ATOMIC_SEQ_CST);
		limbo_push(&r->young, sept_table(entry), SEPT_SUB);
		any = true;
	}
	if (any) {
		r->young.gen = r->gen + 1;
		__atomic_store_n(&r->gen, r->young.gen, __ATOMIC_SEQ_CST);
	}
	reclaim(s, r);
	return any;
}

/*
 * Empty a root for another use. A vCPU that comes in by hint meanwhile either sees the key gone or is seen
 * inside: then the root stays as it is. Pre: lock held.
 */
static bool give_up(struct sept *s, struct sept_root *r)
{
	u64 key = r->key;

	__atomic_store_n(&r->key, 0, __ATOMIC_SEQ_CST);
	if (!nobody_inside(s, r)) {
		__atomic_store_n(&r->key, key, __ATOMIC_SEQ_CST);
		return false;
	}
	drop(s, r);
	return true;
}

/* The root used least lately that nobody is in; `in_use`: only such as have a key. Pre: lock held. */
static struct sept_root *idle_root(struct sept *s, bool in_use)
{
	struct sept_root *best = NULL;
	u64 best_used = 0;

	for (unsigned i = 0; i < SEPT_ROOTS; i++) {
		struct sept_root *r = s->root[i];
		u64 used = r ? __atomic_load_n(&r->used, __ATOMIC_RELAXED) : 0;

		if (!r || (in_use && !r->key) || !nobody_inside(s, r))
			continue;
		if (!best || used < best_used) {
			best = r;
			best_used = used;
		}
	}
	return best;
}

/*
 * Pages are short: give up idle roots, and when that does not help what all roots hold; the latter comes back
 * only after the vCPUs inside have entered anew. Pre: lock held.
 */
static void make_room(struct sept *s)
{
	for (unsigned i = 0; i < SEPT_ROOTS; i++)
		if (s->root[i])
			reclaim(s, s->root[i]);
	for (unsigned tries = 0; tries < SEPT_ROOTS && !s->free; tries++) {
		struct sept_root *idle = idle_root(s, true);

		if (!idle)
			break;
		give_up(s, idle);
	}
	for (unsigned i = 0; i < SEPT_ROOTS && !s->free; i++)
		if (s->root[i])
			drop(s, s->root[i]);
}

u64 *sept_page_get(struct sept *s)
{
	u64 *table;

	spin_lock(&s->lock);
	if (!s->free && !pool_grow(s))
		make_room(s);
	table = s->free;
	if (table)
		s->free = sept_table(table[0]);
	spin_unlock(&s->lock);
	if (table)
		memset(table, 0, PAGE_SIZE);
	return table;
}

static struct sept_root *root_create(void)
{
	struct sept_root *r = page_alloc();

	if (!r)
		return NULL;
	r->table = page_alloc();
	if (!r->table) {
		page_free(r);
		return NULL;
	}
	r->gen = 1;
	r->old.head = r->young.head = LINK_END;
	return r;
}

/* A root for a new key: an unused slot, else the one used least lately. Pre: lock held. */
static struct sept_root *root_take(struct sept *s, u64 key)
{
	struct sept_root *r = NULL;

	for (unsigned i = 0; i < SEPT_ROOTS && !r; i++)
		if (!s->root[i])
			r = s->root[i] = root_create();
	for (unsigned tries = 0; tries < SEPT_ROOTS && !r; tries++) {
		r = idle_root(s, false);
		if (r && !give_up(s, r))
			r = NULL;
	}
	if (r)
		__atomic_store_n(&r->key, key, __ATOMIC_SEQ_CST);
	return r;
}

/* Pre: lock held. */
static struct sept_root *root_find(struct sept *s, u64 key)
{
	for (unsigned i = 0; i < SEPT_ROOTS; i++)
		if (s->root[i] && s->root[i]->key == key)
			return s->root[i];
	return NULL;
}

/* A vCPU comes first without a hint, so all that can be inside are known. Each may use some more pages. Pre:
 * lock held. */
static void know_vcpu(struct sept *s, unsigned vcpu)
{
	while (s->nr_vcpus <= vcpu) {
		s->nr_vcpus++;
		s->pages_max += PAGES_MIN;
	}
}

struct sept_root *sept_enter(struct sept *s, struct sept_root *hint, u64 eptp12, unsigned vcpu, bool *flush)
{
	u64 key = SEPT_KEY(eptp12);
	struct sept_root *r;

	if (hint && sept_enter_again(s, hint, &hint->place[vcpu], eptp12, flush))
		return hint;
	spin_lock(&s->lock);
	r = root_find(s, key);
	if (!r)
		r = root_take(s, key);
	if (r) {
		know_vcpu(s, vcpu);
		sept_try_enter(r, &r->place[vcpu], key, flush); /* the key is stable under the lock */
		sept_mark_used(s, r, 1);
	}
	spin_unlock(&s->lock);
	return r;
}

void sept_leave(struct sept_root *root, unsigned vcpu)
{
	sept_leave_place(&root->place[vcpu]);
}

u64 sept_eptp(const struct sept_root *root)
{
	return ptr_hpa(root->table).v | (root->key & EPTP_AD) | EPTP_WALK4 | MEMTYPE_WB;
}

/* SDM "INVEPT": single-context goes by the root table's address alone. */
void sept_flush(struct sept *s, u64 eptp12)
{
	spin_lock(&s->lock);
	for (unsigned i = 0; i < SEPT_ROOTS; i++)
		if (s->root[i] && s->root[i]->key && KEY_ADDR(s->root[i]->key) == KEY_ADDR(eptp12))
			drop(s, s->root[i]);
	spin_unlock(&s->lock);
}

void sept_flush_all(struct sept *s)
{
	spin_lock(&s->lock);
	for (unsigned i = 0; i < SEPT_ROOTS; i++)
		if (s->root[i])
			drop(s, s->root[i]);
	spin_unlock(&s->lock);
}

struct sept *sept_create(const struct l1mem *mem, const struct ept *ept01, u64 ept_vpid, u8 phys_bits)
{
	struct sept *s = page_alloc();

	if (!s)
		return NULL;
	s->ept12 = (struct ept12){.mem = mem, .ept_vpid = ept_vpid, .phys_bits = phys_bits};
	s->ept01 = ept01;
	s->pages_max = PAGES_RESERVED + (unsigned)(mem->ram / TABLE_MAPS) * ROOTS_FULL;
	while (s->pages < PAGES_RESERVED)
		if (!pool_grow(s)) {
			sept_destroy(s);
			return NULL;
		}
	return s;
}

void sept_destroy(struct sept *s)
{
	sept_flush_all(s);
	for (unsigned i = 0; i < SEPT_ROOTS; i++) {
		if (!s->root[i])
			continue;
		page_free(s->root[i]->table);
		page_free(s->root[i]);
	}
	while (s->free) {
		u64 *page = s->free;

		s->free = sept_table(page[0]);
		page_free(page);
	}
	page_free(s);
}
