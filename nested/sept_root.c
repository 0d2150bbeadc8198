/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roots of shadow EPTs and the life of their tables. Whatever is taken out of a root stays untouched
 * ("limbo") while a vCPU is inside that may still have it in its paging-structure caches, or that fills it:
 * its generation at entry tells. Nothing here looks at EPT12.
 */
#include "nested/sept_root.h"
#include "hv/lib.h"
#include "mm/palloc.h"

#define TABLE_MAPS     (512 * PAGE_SIZE) /* of a level-1 table */
#define NODES_MIN      64u               /* for each vCPU: what a few instructions touch */
#define NODES_RESERVED 35u
#define ROOTS_FULL     4u /* roots that may map all of RAM by 4 KiB pages at a time */
#define ROOT_ORDER     1

/* Nodes come in chunks: their tables, the nodes themselves in the last page but one. */
#define CHUNK_ORDER 4
#define CHUNK_NODES 7u

struct chunk {
	u64 table[CHUNK_NODES][2 * SEPT_ENTRIES];
	struct sept_node node[PAGE_SIZE / sizeof(struct sept_node)];
	void *next __attribute__((aligned(PAGE_SIZE)));
} __attribute__((aligned(PAGE_SIZE)));

_Static_assert(sizeof(struct chunk) == PAGE_SIZE << CHUNK_ORDER, "as allocated");

struct sept_node *sept_node_of(const u64 *table)
{
	u64 offset = (uintptr_t)table & ((PAGE_SIZE << CHUNK_ORDER) - 1);
	struct chunk *c = hpa_ptr(HPA((uintptr_t)table - offset));

	return &c->node[offset / sizeof(c->table[0])];
}

/* Pre, in all that follows: lock held, unless they say otherwise. */

static void node_release(struct sept *s, struct sept_node *n)
{
	n->next = s->free;
	s->free = n;
}

static bool pool_grow(struct sept *s)
{
	struct chunk *c = s->nodes < s->nodes_max ? pages_alloc(CHUNK_ORDER) : NULL;

	if (!c)
		return false;
	c->next = s->chunks;
	s->chunks = c;
	s->nodes += CHUNK_NODES;
	for (unsigned i = 0; i < CHUNK_NODES; i++) {
		c->node[i].table = c->table[i];
		node_release(s, &c->node[i]);
	}
	return true;
}

static void limbo_release(struct sept *s, struct sept_limbo *l)
{
	while (l->head) {
		struct sept_node *n = l->head;

		l->head = n->next;
		node_release(s, n);
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

/* Two lists, so that a stream of drops cannot put off the older ones for ever. */
static void reclaim(struct sept *s, struct sept_root *r)
{
	if (passed(s, r, r->old.gen))
		limbo_release(s, &r->old);
	if (r->old.head)
		return;
	r->old = r->young;
	r->young.head = NULL;
	if (passed(s, r, r->old.gen))
		limbo_release(s, &r->old);
}

void sept_changed(struct sept_root *r)
{
	__atomic_store_n(&r->gen, r->gen + 1, __ATOMIC_SEQ_CST);
}

/* Parents come first in the list: a dead one takes all below it along. */
void sept_sweep(struct sept *s, struct sept_root *r)
{
	struct sept_node *last = r->top, *n;

	while ((n = last->next)) {
		if (!n->parent->dead && sept_load(n->slot) == sept_table_entry(n->table)) {
			last = n;
			continue;
		}
		last->next = n->next;
		n->dead = true;
		watch_stop(&s->watches, &n->watch);
		n->next = r->young.head;
		r->young.head = n;
		r->young.gen = r->gen + 1;
	}
	r->last = last;
	if (r->young.gen > r->gen)
		sept_changed(r);
	reclaim(s, r);
}

/* Take everything out of a root. */
static void drop(struct sept *s, struct sept_root *r)
{
	for (unsigned i = 0; i < SEPT_ENTRIES; i++)
		if (sept_load(&r->top->table[i]))
			sept_empty(&r->top->table[i]);
	sept_sweep(s, r);
}

/*
 * Empty a root for another use. A vCPU that comes in by hint meanwhile either sees the key gone or is seen
 * inside: then the root stays as it is.
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
	watch_stop(&s->watches, &r->top->watch);
	return true;
}

/* The root used least lately that nobody is in; `in_use`: only such as have a key. */
static struct sept_root *idle_root(struct sept *s, bool in_use)
{
	struct sept_root *best = NULL;
	u64 best_used = 0;

	for (unsigned i = 0; i < s->nr_roots; i++) {
		struct sept_root *r = s->root[i];
		u64 used = __atomic_load_n(&r->used, __ATOMIC_RELAXED);

		if ((in_use && !r->key) || !nobody_inside(s, r))
			continue;
		if (!best || used < best_used) {
			best = r;
			best_used = used;
		}
	}
	return best;
}

/*
 * Nodes are short: give up idle roots, and when that does not help what all roots hold; the latter comes back
 * only after the vCPUs inside have entered anew.
 */
static void make_room(struct sept *s)
{
	for (unsigned i = 0; i < s->nr_roots; i++)
		reclaim(s, s->root[i]);
	for (unsigned tries = 0; tries < SEPT_ROOTS && !s->free; tries++) {
		struct sept_root *idle = idle_root(s, true);

		if (!idle)
			break;
		give_up(s, idle);
	}
	for (unsigned i = 0; i < s->nr_roots && !s->free; i++)
		drop(s, s->root[i]);
}

static struct sept_node *node_take(struct sept *s)
{
	struct sept_node *n;

	if (!s->free && !pool_grow(s))
		make_room(s);
	n = s->free;
	if (!n)
		return NULL;
	s->free = n->next;
	memset(n->table, 0, 2 * PAGE_SIZE);
	n->next = NULL;
	n->dead = n->due = false;
	watch_nothing(&n->watch);
	return n;
}

struct sept_node *sept_node_get(struct sept *s, struct sept_root *r, struct sept_node *parent, u64 *slot)
{
	struct sept_node *n = node_take(s);

	if (!n)
		return NULL;
	if (parent->dead) { /* to make room for this one */
		node_release(s, n);
		return NULL;
	}
	n->parent = parent;
	n->slot = slot;
	r->last->next = n;
	r->last = n;
	return n;
}

static struct sept_root *root_create(struct sept *s)
{
	struct sept_root *r = pages_alloc(ROOT_ORDER);

	if (!r)
		return NULL;
	r->top = node_take(s);
	if (!r->top) {
		pfree(ptr_hpa(r), ROOT_ORDER);
		return NULL;
	}
	r->last = r->top;
	r->gen = 1;
	return r;
}

static struct sept_root *root_add(struct sept *s)
{
	struct sept_root *r = s->nr_roots < SEPT_ROOTS ? root_create(s) : NULL;

	if (r) {
		s->root[s->nr_roots] = r;
		__atomic_store_n(&s->nr_roots, s->nr_roots + 1, __ATOMIC_RELEASE);
	}
	return r;
}

/* A root for a new key: a new one, else the one used least lately. */
static struct sept_root *root_take(struct sept *s, u64 key)
{
	struct sept_root *r = root_add(s);

	for (unsigned tries = 0; tries < SEPT_ROOTS && !r; tries++) {
		r = idle_root(s, false);
		if (r && !give_up(s, r))
			r = NULL;
	}
	if (r) {
		watch_start(&s->watches, &r->top->watch, GPA(key & EPT_ADDR_MASK));
		__atomic_store_n(&r->key, key, __ATOMIC_SEQ_CST);
	}
	return r;
}

static struct sept_root *root_find(struct sept *s, u64 key)
{
	for (unsigned i = 0; i < s->nr_roots; i++)
		if (s->root[i]->key == key)
			return s->root[i];
	return NULL;
}

/* A vCPU comes first without a hint, so all that can be inside are known. Each may use some more pages. */
static void know_vcpu(struct sept *s, unsigned vcpu)
{
	while (s->nr_vcpus <= vcpu) {
		__atomic_store_n(&s->nr_vcpus, s->nr_vcpus + 1, __ATOMIC_SEQ_CST);
		s->nodes_max += NODES_MIN;
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
	return ptr_hpa(root->top->table).v | (root->key & EPTP_AD) | EPTP_WALK4 | MEMTYPE_WB;
}

void sept_wait_fills(const struct sept *s, const struct sept_root *r)
{
	unsigned n = __atomic_load_n(&s->nr_vcpus, __ATOMIC_SEQ_CST);

	for (unsigned i = 0; i < n; i++) {
		u64 fills = __atomic_load_n(&r->place[i].fills, __ATOMIC_SEQ_CST);

		while (fills & 1 && __atomic_load_n(&r->place[i].fills, __ATOMIC_SEQ_CST) == fills)
			asm volatile("pause");
	}
}

void sept_drop_all(struct sept *s)
{
	spin_lock(&s->lock);
	for (unsigned i = 0; i < s->nr_roots; i++)
		drop(s, s->root[i]);
	spin_unlock(&s->lock);
}

struct sept *sept_create(const struct l1mem *mem, struct ept *ept01, struct ept *twin, bool dirty_bits,
			 u64 ept_vpid, u8 phys_bits)
{
	struct sept *s = page_alloc();

	if (!s)
		return NULL;
	s->ept12 = (struct ept12){.mem = mem, .ept_vpid = ept_vpid, .phys_bits = phys_bits};
	s->watches =
		(struct watches){.ept01 = ept01, .twin = twin, .mem = mem, .usable = dirty_bits && mem->page};
	s->nodes_max = NODES_RESERVED + (unsigned)(mem->ram / TABLE_MAPS) * ROOTS_FULL;
	while (s->nodes < NODES_RESERVED)
		if (!pool_grow(s)) {
			sept_destroy(s);
			return NULL;
		}
	return s;
}

void sept_destroy(struct sept *s)
{
	for (unsigned i = 0; i < s->nr_roots; i++)
		pfree(ptr_hpa(s->root[i]), ROOT_ORDER);
	while (s->chunks) {
		struct chunk *c = s->chunks;

		s->chunks = c->next;
		pfree(ptr_hpa(c), CHUNK_ORDER);
	}
	page_free(s);
}
