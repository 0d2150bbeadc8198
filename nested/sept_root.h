/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the shadow EPTs: roots and their tables. For nested/sept*.c, and the way
 * of an entry that finds its root again. */
#ifndef NIDUS_NESTED_SEPT_ROOT_H
#define NIDUS_NESTED_SEPT_ROOT_H

#include "hv/guest.h"
#include "hv/spinlock.h"
#include "nested/sept.h"
#include "nested/watch.h"

#define SEPT_ROOTS 64 /* more than vCPUs, so that one with nobody inside is always found */

#define SEPT_TOP     EPT_LEVELS
#define SEPT_ENTRIES 512u

/*
 * One table. Of the two pages hardware walks the first. The second one says of each entry which entry of
 * EPT12 it was made of (sept_source): 0: of none. Below a large leaf of EPT12 that EPT01 splits there is no
 * table of EPT12: such a node has no sources and watches nothing.
 */
struct sept_node {
	u64 *table;
	struct sept_node *next;   /* of its root, parents first; or of a limbo; or of the free ones */
	struct sept_node *parent; /* NULL: top */
	u64 *slot;                /* entry of the parent that names it */
	struct watch watch;       /* of EPT12's table */
	bool dead;                /* out of the root */
	bool due;                 /* to be compared */
};

/* Nodes that were taken out. */
struct sept_limbo {
	struct sept_node *head;
	u64 gen; /* free when no vCPU is inside with an older generation */
};

/* One vCPU's relation to a root; a cache line each. */
struct sept_place {
	u64 inside; /* atomic: generation at its last entry; 0: not inside */
	u64 seen;   /* generation at its last INVEPT; its own CPU only */
	u64 fills;  /* atomic; odd: it fills without the lock */
} __attribute__((aligned(64)));

struct sept_root {
	u64 key;                      /* atomic: what of EPTP12 matters; 0: unused */
	u64 gen;                      /* atomic: grows whenever something is taken out; never starts again */
	struct sept_node *top, *last; /* level 4, for the root's life; the list begins and ends with them */
	u64 used;                     /* for the choice of a victim */
	struct sept_limbo old, young;
	struct sept_place place[VCPUS_MAX];
};

struct sept {
	struct spinlock lock; /* all below but the constants, and what is in roots and nodes but entries */
	struct sept_node *free;
	void *chunks;
	unsigned nodes, nodes_max;
	u64 clock;
	unsigned nr_roots; /* atomic: how many of these have been made; they stay */
	struct sept_root *root[SEPT_ROOTS];

	struct ept12 ept12; /* all but the EPTP */
	struct watches watches;
	unsigned nr_vcpus; /* atomic: of those that ever came in, the highest + 1 */
};

_Static_assert(sizeof(struct sept) <= PAGE_SIZE && sizeof(struct sept_root) <= 2 * PAGE_SIZE, "as allocated");
_Static_assert(SEPT_ROOTS > VCPUS_MAX, "every vCPU may be inside another root");

static inline u64 sept_load(const u64 *entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

static inline void sept_store(u64 *entry, u64 value)
{
	__atomic_store_n(entry, value, __ATOMIC_SEQ_CST);
}

static inline u64 *sept_table(u64 entry)
{
	return hpa_ptr(HPA(entry & EPT_ADDR_MASK));
}

/* What of EPTP12 tells roots apart. */
#define SEPT_KEY(eptp) (((eptp) & (EPT_ADDR_MASK | EPTP_AD | EPT12_MBE)) | EPTP_WALK4)

/* Mark as inside, and check that the root has not changed meanwhile. False: it is another's. */
static inline bool sept_try_enter(struct sept_root *r, struct sept_place *p, u64 key, bool *flush)
{
	u64 gen = sept_load(&r->gen), now;

	for (;; gen = now) {
		__atomic_store_n(&p->inside, gen, __ATOMIC_SEQ_CST);
		if (unlikely(__atomic_load_n(&r->key, __ATOMIC_SEQ_CST) != key)) {
			__atomic_store_n(&p->inside, 0, __ATOMIC_SEQ_CST);
			return false;
		}
		now = __atomic_load_n(&r->gen, __ATOMIC_SEQ_CST);
		if (likely(now == gen))
			break;
	}
	*flush = p->seen != gen;
	p->seen = gen;
	return true;
}

/* Time goes on with each entry without a hint. A lost update only makes a worse choice of victim. */
static inline void sept_mark_used(struct sept *s, struct sept_root *r, u64 step)
{
	u64 now = __atomic_load_n(&s->clock, __ATOMIC_RELAXED) + step;

	if (step)
		__atomic_store_n(&s->clock, now, __ATOMIC_RELAXED);
	if (__atomic_load_n(&r->used, __ATOMIC_RELAXED) != now)
		__atomic_store_n(&r->used, now, __ATOMIC_RELAXED);
}

/* sept_leave, for one who knows the place. */
static inline void sept_leave_place(struct sept_place *p)
{
	__atomic_store_n(&p->inside, 0, __ATOMIC_RELEASE);
}

/* sept_enter's first part: the root of the last time, which is right nearly always. */
static inline bool sept_enter_again(struct sept *s, struct sept_root *hint, struct sept_place *p, u64 eptp12,
				    bool *flush)
{
	if (unlikely(!sept_try_enter(hint, p, SEPT_KEY(eptp12), flush)))
		return false;
	sept_mark_used(s, hint, 0);
	return true;
}

/* Names a table (no leaf). */
static inline bool sept_is_table(u64 entry, unsigned level)
{
	return EPT_PRESENT(entry) && level > 1 && !(entry & EPT_LARGE);
}

/* A table entry allows everything: the leaf has the permissions. */
static inline u64 sept_table_entry(const u64 *table)
{
	return ptr_hpa(table).v | EPT_RWX | EPT_USER_EXEC | EPT_ACCESSED;
}

/* What an entry was made of stands one page behind it. */
static inline u64 *sept_source(u64 *slot)
{
	return slot + SEPT_ENTRIES;
}

/* Pre: the entry is not 0, so nobody without the lock is at work on it. */
static inline void sept_empty(u64 *slot)
{
	sept_store(slot, 0);
	sept_store(sept_source(slot), 0);
}

/* The node of a table. */
struct sept_node *sept_node_of(const u64 *table);
/* A node with empty tables for `slot`, which the caller lets name it then. NULL: none free now, though some
 * may be after the vCPUs inside entered anew. Pre: lock held. */
struct sept_node *sept_node_get(struct sept *s, struct sept_root *r, struct sept_node *parent, u64 *slot);
/* Take out the nodes that no entry names any more. Pre: lock held. */
void sept_sweep(struct sept *s, struct sept_root *r);
/* What vCPUs inside have in their TLBs must go before they enter again. Pre: lock held. */
void sept_changed(struct sept_root *r);
/* No vCPU goes on with a fill without lock that began before this call. */
void sept_wait_fills(const struct sept *s, const struct sept_root *r);

static inline bool sept_is_of(const struct sept_root *r, u64 eptp12)
{
	return r->key && !((r->key ^ eptp12) & EPT_ADDR_MASK);
}

#endif
