/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the shadow EPTs: roots and their table pages. For nested/sept*.c, and the way
 * of an entry that finds its root again. */
#ifndef NIDUS_NESTED_SEPT_ROOT_H
#define NIDUS_NESTED_SEPT_ROOT_H

#include "hv/guest.h"
#include "hv/spinlock.h"
#include "nested/sept.h"

#define SEPT_ROOTS 64 /* more than vCPUs, so that one with nobody inside is always found */

/* Table levels that can hang below a root table; the root table itself stays for the root's life. */
#define SEPT_TOP EPT_LEVELS
#define SEPT_SUB (EPT_LEVELS - 1)

/* Subtrees that were taken out, linked through their first entries (see sept_root.c). */
struct sept_limbo {
	u64 head;
	u64 gen; /* free when no vCPU is inside with an older generation */
};

/* One vCPU's relation to a root; a cache line each. */
struct sept_place {
	u64 inside; /* atomic: generation at its last entry; 0: not inside */
	u64 seen;   /* generation at its last INVEPT; its own CPU only */
} __attribute__((aligned(64)));

struct sept_root {
	u64 key;    /* atomic: what of EPTP12 matters; 0: unused */
	u64 gen;    /* atomic: grows whenever something is taken out; never starts again */
	u64 *table; /* level 4 */
	u64 used;   /* for the choice of a victim */
	struct sept_limbo old, young;
	struct sept_place place[VCPUS_MAX];
};

struct sept {
	struct spinlock lock; /* all below but the constants, and every root's key, limbo and gen */
	u64 *free;            /* pages, linked through their first entries */
	unsigned pages, pages_max;
	u64 clock;
	struct sept_root *root[SEPT_ROOTS];

	struct ept12 ept12; /* all but the EPTP */
	const struct ept *ept01;
	unsigned nr_vcpus; /* of those that ever came in, the highest + 1 */
};

_Static_assert(sizeof(struct sept) <= PAGE_SIZE && sizeof(struct sept_root) <= PAGE_SIZE, "one page each");
_Static_assert(SEPT_ROOTS > VCPUS_MAX, "every vCPU may be inside another root");

static inline u64 sept_load(const u64 *entry)
{
	return __atomic_load_n(entry, __ATOMIC_ACQUIRE);
}

static inline u64 *sept_table(u64 entry)
{
	return hpa_ptr(HPA(entry & EPT_ADDR_MASK));
}

/* What of EPTP12 tells roots apart. */
#define SEPT_KEY(eptp) (((eptp) & (EPT_ADDR_MASK | EPTP_AD)) | EPTP_WALK4)

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

/* A zeroed table page; NULL: none free now, though some may be after the vCPUs inside entered anew. */
u64 *sept_page_get(struct sept *s);
/* Give back a page that was never linked. */
void sept_page_put(struct sept *s, u64 *table);

#endif
