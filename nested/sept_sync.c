/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INVEPT of L1: of a shadow EPT goes what is not made of what EPT12 is now, and nothing else. Which of
 * EPT12's tables may have changed since the last time nested/watch knows; their entries are compared with the
 * sources of the shadow's. SDM "Software May Cache EPT Information".
 */
#include "hv/vcpu.h"
#include "mm/guest_copy.h"
#include "nested/sept_root.h"

/* Entries made of what EPT12 is no longer. False: there are none. */
static bool compare(const struct sept *s, const struct sept_node *n)
{
	bool changed = false;
	unsigned i = 0;

	while ((i = guest_differs(s->ept12.mem, GPA(n->watch.gpa), sept_source(n->table), i)) <
	       SEPT_ENTRIES) {
		/* One claimed and still 0 is being made of what EPT12 has become since this INVEPT began. */
		if (sept_load(&n->table[i])) {
			sept_empty(&n->table[i]);
			changed = true;
		}
		i++;
	}
	return changed;
}

/* False: no table has been written. *flush: see watch_clear. */
static bool find_written(struct sept *s, struct sept_root *r, bool *flush)
{
	bool any = false;

	for (struct sept_node *n = r->top; n; n = n->next) {
		if (likely(watch_is_clean(&n->watch)))
			continue;
		n->due = any = true;
		watch_clear(&s->watches, &n->watch, flush);
	}
	return any;
}

static void sync(struct sept *s, struct sept_root *r, struct vcpu *v)
{
	bool flush = false, changed = false, flushed;

	r->place[v->index].seen = 0; /* the CPU's own part of INVEPT, at the next entry */
	if (!find_written(s, r, &flush))
		return;
	if (flush)
		watch_flush_tlb(v);
	flushed = watch_tlb_flushed(v, !flush);
	/* They have read tables that were not watched yet. */
	sept_wait_fills(s, r);
	for (struct sept_node *n = r->top; n; n = n->next) {
		if (!n->due)
			continue;
		n->due = false;
		watch_settle(&n->watch, flushed);
		changed |= compare(s, n);
	}
	if (changed) {
		sept_changed(r);
		sept_sweep(s, r);
	}
}

static __attribute__((noinline)) void flush_root(struct sept *s, struct sept_root *r, struct vcpu *v)
{
	sept_wait_fills(s, r);
	spin_lock(&s->lock);
	sync(s, r, v);
	spin_unlock(&s->lock);
}

/* SDM "INVEPT": single-context goes by the root table's address alone. */
static void flush_roots(struct sept *s, struct vcpu *v, u64 eptp12, bool all)
{
	unsigned nr = __atomic_load_n(&s->nr_roots, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < nr; i++) {
		struct sept_root *r = s->root[i];

		if (r->key && (all || sept_is_of(r, eptp12)))
			flush_root(s, r, v);
	}
}

void sept_flush(struct sept *s, struct vcpu *v, u64 eptp12)
{
	flush_roots(s, v, eptp12, false);
}

void sept_flush_all(struct sept *s, struct vcpu *v)
{
	flush_roots(s, v, 0, true);
}
