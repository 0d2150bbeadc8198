/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a page of L1's RAM been written since somebody last looked? The answer comes from the dirty bits of
 * EPT01, which are set for all of RAM but the pages watched, so nothing faults and nothing is logged. It errs
 * on one side only: a page said to be clean is. All but watch_is_clean wants the owner's lock.
 */
#ifndef NIDUS_NESTED_WATCH_H
#define NIDUS_NESTED_WATCH_H

#include "hv/types.h"
#include "mm/ept.h"
#include "mm/l1mem.h"

struct vcpu;

enum watch_state {
	WATCH_WRITTEN, /* or it cannot be watched */
	WATCH_ARMING,  /* some CPU may still hold that the page is dirty, and write without a trace */
	WATCH_CLEAN,   /* until EPT01 says dirty, or L0 writes */
};

struct watch {
	struct watch *next;  /* in its bucket */
	u64 *leaf;           /* of EPT01, 4 KiB */
	struct l1page *page; /* what L0 and L2 do to it */
	u64 gpa;
	u8 state; /* atomic: enum watch_state */
};

#define WATCH_BUCKETS 128u

/* Of one guest. */
struct watches {
	struct ept *ept01;
	struct ept *twin; /* shares EPT01's tables from level 2 down; NULL: there is none */
	const struct l1mem *mem;
	bool usable; /* EPT01 has dirty bits */
	struct watch *bucket[WATCH_BUCKETS];
};

/* Begin with the page at gpa; it counts as written. */
void watch_start(struct watches *ws, struct watch *w, gpa_t gpa);
void watch_stop(struct watches *ws, struct watch *w);
/* A watch of nothing: always clean; and one that has not begun: never. */
void watch_nothing(struct watch *w);
void watch_never(struct watch *w);
/*
 * Steps to make pages clean: watch_clear for each; if any of them sets *flush, watch_flush_tlb; watch_settle
 * for each, with the answer of watch_tlb_flushed. Of a page that is clean then, whatever is read later is
 * what it holds as long as it is clean.
 */
void watch_clear(struct watches *ws, struct watch *w, bool *flush);
void watch_settle(struct watch *w, bool flushed);

/* No lock. The state last: who clears the other two for a watch of his own has told this one before. */
static inline bool watch_is_clean(const struct watch *w)
{
	return !(__atomic_load_n(w->leaf, __ATOMIC_ACQUIRE) & EPT_DIRTY) &&
	       !__atomic_load_n(&w->page->wrote, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == WATCH_CLEAN;
}

/* It can never be clean: its page is written past EPT01 at any time, or cannot be watched. No lock. */
static inline bool watch_is_hopeless(const struct watch *w)
{
	return __atomic_load_n(&w->page->exposed, __ATOMIC_RELAXED);
}

/* Drop what this CPU has cached of EPT01, and ask the guest's other vCPUs to do so at their next exit. */
void watch_flush_tlb(struct vcpu *v);
/* All of them have. `now`: those that have not are made to exit. */
bool watch_tlb_flushed(struct vcpu *v, bool now);

#endif
