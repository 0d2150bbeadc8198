/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions on device memory that L1 executed lately, decoded. Exact, unlike a TLB: an entry holds what
 * the walk and the decoder have seen, and is used only while all of it reads the same. Pure.
 */
#ifndef NIDUS_HV_INSN_MEMO_H
#define NIDUS_HV_INSN_MEMO_H

#include "hv/insn_decode.h"
#include "mm/guest_walk.h"

#define INSN_MEMOS      8
#define INSN_MEMO_BYTES 16 /* read and compared: one more than the longest instruction */

/* What a fetch in 64-bit mode depends on, beside memory. */
struct insn_key {
	u64 rip, cr3, cr4, efer;
	u64 rights; /* access rights of SS above those of CS */
};

typedef u64 u64_unaligned __attribute__((aligned(1)));

struct insn_memo {
	struct insn_key key; /* rip 0: empty */
	struct walk_trail trail;
	const u64_unaligned *code; /* guest RAM at rip */
	u64 bytes[2];
	struct insn insn;
};

/* The decoded instruction, or NULL. */
const struct insn *insn_memo_find(const struct insn_memo *memos, const struct insn_key *k);
/* Before the instruction is fetched and decoded: takes down the entries on the way to it. NULL: not to be
 * kept. */
struct insn_memo *insn_memo_begin(struct insn_memo *memos, const struct insn_key *k, const struct l1mem *m);
/* Afterwards. `bytes`: INSN_MEMO_BYTES that were fetched. Kept if the way is the same still. */
void insn_memo_end(struct insn_memo *memo, const struct insn_key *k, const u8 *bytes, const struct insn *i);

#endif
