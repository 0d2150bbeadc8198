/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether L1 has written to its MSR bitmap since it was merged: most never do, and say so only by an
 * enlightenment. Beginning to know costs a flush of EPT01's translations, so it waits until the bitmap has
 * been merged a while, and again after each write.
 */
#include "hv/vcpu.h"
#include "nested/internal.h"
#include "nested/sept_root.h"

/* Merges between attempts. */
#define PATIENCE    16
#define OTHERS_TIME 3 /* for the other vCPUs to flush */

static void stop(struct sept *s, struct bitmap_watch *b)
{
	spin_lock(&s->lock);
	watch_stop(&s->watches, &b->watch);
	spin_unlock(&s->lock);
	b->begun = false;
}

static void begin_anew(struct sept *s, struct bitmap_watch *b, u64 gpa)
{
	if (b->begun)
		stop(s, b);
	b->watch.gpa = gpa;
	b->wait = PATIENCE;
}

/* The other vCPUs flush when they pass the gate, so it may take a second attempt. */
static void try_clean(struct sept *s, struct bitmap_watch *b, struct vcpu *v)
{
	bool flush = false;

	spin_lock(&s->lock);
	if (!b->begun) {
		watch_start(&s->watches, &b->watch, GPA(b->watch.gpa));
		b->begun = true;
	}
	watch_clear(&s->watches, &b->watch, &flush);
	if (flush)
		watch_flush_tlb(v);
	watch_settle(&b->watch, watch_tlb_flushed(v, !flush));
	spin_unlock(&s->lock);
	b->wait = b->watch.state == WATCH_ARMING ? OTHERS_TIME : PATIENCE;
}

void bitmap_watch_merge(struct vcpu *v, struct vmcs02 *e)
{
	struct bitmap_watch *b = &e->bitmap_watch;

	if (b->watch.gpa != e->v12.msr_bitmap)
		begin_anew(v->nested->sept, b, e->v12.msr_bitmap);
	else if (!b->wait)
		try_clean(v->nested->sept, b, v);
	else if (!b->begun || !watch_is_hopeless(&b->watch)) /* then no vCPU takes the lock for it again */
		b->wait--;
}

void bitmap_watch_init(struct bitmap_watch *b)
{
	watch_never(&b->watch);
	b->watch.gpa = NO_VMCS; /* no bitmap's address either */
}

void bitmap_watch_end(struct vcpu *v, struct bitmap_watch *b)
{
	if (b->begun)
		stop(v->nested->sept, b);
}
