/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out one decoded instruction: registers, flags and memory come through callbacks, so that it serves
 * L1's and L2's device accesses alike, and the host's tests. Pure.
 */
#ifndef NIDUS_HV_INSN_EMUL_H
#define NIDUS_HV_INSN_EMUL_H

#include "hv/insn_decode.h"

enum insn_access { INSN_READ, INSN_WRITE, INSN_MODIFY /* a read that a write of the same operand follows */ };

struct insn_env {
	void *ctx;
	u64 (*reg)(void *ctx, unsigned reg);
	void (*set_reg)(void *ctx, unsigned reg, u64 value);
	/*
	 * One access of 1, 2, 4 or 8 bytes at seg:offset. INSN_READ and INSN_MODIFY fill *value, INSN_WRITE
	 * takes it. INSN_MODIFY needs the right to write already. False: it faults (the callback has raised
	 * that); nothing was changed then, and nothing more will be.
	 */
	bool (*access)(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a,
		       u64 *value);
	u64 rip;    /* of this instruction */
	u64 rflags; /* changed when the result is EMUL_DONE or EMUL_REPEAT */
};

enum emul_result {
	EMUL_DONE,   /* RIP goes on */
	EMUL_REPEAT, /* one round of a repeated string instruction is done; RIP stays */
	EMUL_FAULT,
};

enum emul_result insn_emulate(const struct insn *i, struct insn_env *env);
/* The memory operand's offset in its segment (not for INSN_STRING). */
u64 insn_offset(const struct insn *i, const struct insn_env *env);

#endif
