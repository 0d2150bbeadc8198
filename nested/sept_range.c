/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropping ranges of a shadow EPT. Only leaves go, tables stay, so nothing has to wait in limbo; but a fill
 * that began before may still put a leaf in that it derived from what EPT12 was. The caller sees to it that
 * every vCPU inside has passed its gate between L1's change of EPT12 and the call, and again before L1 may
 * rely on it.
 */
#include "nested/sept_root.h"

static void zap(u64 *table, unsigned level, u64 base, u64 from, u64 to)
{
	u64 size = EPT_SIZE(level);
	unsigned first = from > base ? (unsigned)((from - base) / size) : 0;

	for (unsigned i = first; i < 512 && base + i * size < to; i++) {
		u64 entry = sept_load(&table[i]);

		if (sept_is_table(entry, level))
			zap(sept_table(entry), level - 1, base + i * size, from, to);
		else if (EPT_PRESENT(entry))
			sept_empty(&table[i]);
	}
}

void sept_flush_range(struct sept *s, u64 eptp12, ngpa_t from, u64 bytes)
{
	u64 end = EPT_SIZE(EPT_LEVELS + 1);

	if (from.v >= end)
		return;
	spin_lock(&s->lock);
	for (unsigned i = 0; i < s->nr_roots; i++) {
		struct sept_root *r = s->root[i];

		if (!sept_is_of(r, eptp12))
			continue;
		zap(r->top->table, SEPT_TOP, 0, from.v, from.v + MIN(bytes, end - from.v));
		sept_changed(r);
	}
	spin_unlock(&s->lock);
}

u64 sept_inside(struct sept *s, u64 eptp12)
{
	u64 vcpus = 0;

	spin_lock(&s->lock);
	for (unsigned i = 0; i < s->nr_roots; i++)
		for (unsigned v = 0; sept_is_of(s->root[i], eptp12) && v < s->nr_vcpus; v++)
			if (__atomic_load_n(&s->root[i]->place[v].inside, __ATOMIC_SEQ_CST))
				vcpus |= BIT(v);
	spin_unlock(&s->lock);
	return vcpus;
}
