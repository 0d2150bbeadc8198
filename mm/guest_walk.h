/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's page walk in software, over any memory: L1's (mm/guest_copy) or an L2's (nested/ gives a source
 * that goes through EPT12). Pure.
 */
#ifndef NIDUS_MM_GUEST_WALK_H
#define NIDUS_MM_GUEST_WALK_H

#include "mm/guest_copy.h"

struct walk_source {
	/* One aligned paging entry of `size` bytes (4 or 8), atomically. False: give the walk up (the source
	 * knows why, e.g. an EPT violation). */
	bool (*read)(void *ctx, u64 gpa, unsigned size, u64 *out);
	/* Change it if it still holds `old`. False: it does not. */
	bool (*cmpxchg)(void *ctx, u64 gpa, unsigned size, u64 old, u64 new);
	void *ctx;
};

enum walk_result { WALK_OK, WALK_FAULT, WALK_GIVEN_UP };

/* WALK_OK: *out is the physical address, fault->page says what the page is. WALK_FAULT: *fault is the #PF.
 * SDM "Paging". */
enum walk_result paging_walk(const struct walk_source *s, const struct paging *p, u64 linear, enum access a,
			     u64 *out, struct page_fault *fault);

/* The same for 4-level paging in L1's memory when nothing is unusual. False: unknown, ask paging_walk. */
bool guest_walk_fast(const struct l1mem *m, const struct paging *p, u64 linear, enum access a, gpa_t *out);

/* The entries of 4-level paging on the way to an address, and where they stand (L0's view of L1's memory,
 * which never moves); short ways repeat the last. */
struct walk_trail {
	const u64 *slot[4];
	u64 entry[4];
};

/* Follow `linear` without a look at permissions. False: not present, or tables outside of low RAM. */
bool walk_trail_record(const struct l1mem *m, u64 cr3, u64 linear, struct walk_trail *t, gpa_t *out);

/* Not 0: some entry changed. Pre: inside guest_access_begin and guest_access_end. */
static inline u64 walk_trail_differs(const struct walk_trail *t)
{
	u64 differs = 0;

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++)
		differs |= __atomic_load_n(t->slot[i], __ATOMIC_RELAXED) ^ t->entry[i];
	return differs;
}

/* A linear address as wide as the mode makes it. */
static inline u64 paging_linear(const struct paging *p, u64 linear)
{
	return p->efer & BIT(10) ? linear : (u32)linear; /* EFER.LMA */
}

#endif
