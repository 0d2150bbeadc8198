/* SPDX-License-Identifier: Apache-2.0 */
/* See hv/insn_memo.h. */
#include "hv/insn_memo.h"
#include "hv/lib.h"
#include "hv/x86.h"
#include "mm/guest_access.h"

static struct insn_memo *slot_of(const struct insn_memo *memos, u64 rip)
{
	return (struct insn_memo *)(uintptr_t)&memos[(rip ^ rip >> 3 ^ rip >> 6) % INSN_MEMOS];
}

static bool same_key(const struct insn_key *a, const struct insn_key *b)
{
	return !((a->rip ^ b->rip) | (a->cr3 ^ b->cr3) | (a->cr4 ^ b->cr4) | (a->efer ^ b->efer) |
		 (a->rights ^ b->rights));
}

const struct insn *insn_memo_find(const struct insn_memo *memos, const struct insn_key *k)
{
	const struct insn_memo *memo = slot_of(memos, k->rip);
	u64 differs;

	if (unlikely(!same_key(&memo->key, k)))
		return NULL;
	guest_access_begin();
	differs = walk_trail_differs(&memo->trail);
	differs |= (memo->code[0] ^ memo->bytes[0]) | (memo->code[1] ^ memo->bytes[1]);
	guest_access_end();
	return likely(!differs) ? &memo->insn : NULL;
}

struct insn_memo *insn_memo_begin(struct insn_memo *memos, const struct insn_key *k, const struct l1mem *m)
{
	struct insn_memo *memo = slot_of(memos, k->rip);
	u64 run;
	hpa_t code;
	gpa_t gpa;

	if (!k->rip || !(k->efer & EFER_LMA) || !((u32)k->rights & BIT32(13)) ||
	    (k->rip & ~PAGE_MASK) > PAGE_SIZE - INSN_MEMO_BYTES)
		return NULL;
	memo->key.rip = 0;
	if (!walk_trail_record(m, k->cr3, k->rip, &memo->trail, &gpa) ||
	    !l1mem_translate(m, gpa, &code, &run))
		return NULL;
	memo->code = hpa_ptr(code);
	return memo;
}

void insn_memo_end(struct insn_memo *memo, const struct insn_key *k, const u8 *bytes, const struct insn *i)
{
	u64 differs;

	guest_access_begin();
	differs = walk_trail_differs(&memo->trail);
	guest_access_end();
	if (differs)
		return;
	memcpy(memo->bytes, bytes, sizeof(memo->bytes));
	memo->insn = *i;
	memo->key = *k;
}
