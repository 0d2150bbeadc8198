/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching pages of L1's RAM by EPT01's dirty bits. A CPU that has cached a leaf as dirty writes without
 * setting the bit again: a page is clean only when every CPU has dropped that since the bit was cleared, and
 * its reader has read it after that. What reaches RAM past EPT01, L0's own writes and the writable leaves of
 * shadow EPTs, is noted in struct l1page. SDM "Accessed and Dirty Flags for EPT".
 */
#include "nested/watch.h"

/* For pages that are not watched, and cannot be. */
static u64 no_leaf;
static struct l1page no_page = {.exposed = 1};

static struct watch **bucket_of(struct watches *ws, u64 gpa)
{
	return &ws->bucket[(gpa >> PAGE_SHIFT) % WATCH_BUCKETS];
}

static void set_state(struct watch *w, enum watch_state state)
{
	__atomic_store_n(&w->state, (u8)state, __ATOMIC_SEQ_CST);
}

/* All that watch this page, before the signs of a write are cleared. */
static void tell_all(struct watches *ws, u64 gpa)
{
	for (struct watch *w = *bucket_of(ws, gpa); w; w = w->next)
		if (w->gpa == gpa)
			set_state(w, WATCH_WRITTEN);
}

static void clear_signs(struct watches *ws, struct watch *w)
{
	tell_all(ws, w->gpa);
	__atomic_store_n(&w->page->wrote, 0, __ATOMIC_SEQ_CST);
	__atomic_fetch_and(w->leaf, ~EPT_DIRTY, __ATOMIC_SEQ_CST);
}

void watch_nothing(struct watch *w)
{
	*w = (struct watch){.leaf = &no_leaf, .page = &no_page, .state = WATCH_CLEAN};
}

void watch_never(struct watch *w)
{
	*w = (struct watch){.leaf = &no_leaf, .page = &no_page, .state = WATCH_WRITTEN};
}

void watch_start(struct watches *ws, struct watch *w, gpa_t gpa)
{
	struct watch **bucket = bucket_of(ws, gpa.v);
	struct l1page *page = ws->usable ? l1mem_page(ws->mem, gpa) : NULL;
	u64 *leaf;

	watch_never(w);
	w->gpa = gpa.v;
	if (!page || page->exposed)
		return;
	leaf = ept_small_leaf(ws->ept01, gpa.v);
	if (!leaf)
		return;
	if (ws->twin)
		ept_share(ws->twin, ws->ept01, ALIGN_DOWN(gpa.v, GIB), GIB);
	w->leaf = leaf;
	w->page = page;
	w->next = *bucket;
	*bucket = w;
	/* Now already, so that no shadow EPT lets L2 write here unseen. */
	clear_signs(ws, w);
}

void watch_stop(struct watches *ws, struct watch *w)
{
	set_state(w, WATCH_WRITTEN);
	for (struct watch **at = bucket_of(ws, w->gpa); *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

void watch_clear(struct watches *ws, struct watch *w, bool *flush)
{
	if (watch_is_hopeless(w))
		return;
	if (w->page->wrote || __atomic_load_n(w->leaf, __ATOMIC_RELAXED) & EPT_DIRTY)
		clear_signs(ws, w);
	*flush |= w->state == WATCH_WRITTEN;
	set_state(w, WATCH_ARMING);
}

void watch_settle(struct watch *w, bool flushed)
{
	if (watch_is_hopeless(w))
		set_state(w, WATCH_WRITTEN);
	else if (w->state == WATCH_ARMING && flushed)
		set_state(w, WATCH_CLEAN);
}
