/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exceptions and interrupts. An instruction wrapped in TRY() may fault: execution goes on behind it and
 * trap_last() tells what happened. Any other exception without a handler is reported and ends the program.
 */
#pragma once

#include "types.h"
#include "x86.h"

struct regs {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	u64 vector, error, rip, cs, rflags, rsp, ss;
};

enum vector {
	VEC_DE = 0,
	VEC_DB = 1,
	VEC_NMI = 2,
	VEC_BP = 3,
	VEC_OF = 4,
	VEC_BR = 5,
	VEC_UD = 6,
	VEC_NM = 7,
	VEC_DF = 8,
	VEC_TS = 10,
	VEC_NP = 11,
	VEC_SS = 12,
	VEC_GP = 13,
	VEC_PF = 14,
	VEC_MF = 16,
	VEC_AC = 17,
};

/* What an instruction did, in one number: 0 nothing special, FAULT(...) an exception; vmx.h adds the VMfail
 * forms. */
#define FAULT(vector, error) (0x80000000u | (u32)(error) << 8 | (u32)(vector))
#define UD                   FAULT(VEC_UD, 0)
#define GP                   FAULT(VEC_GP, 0)

#define FIXUP(from, to) ".pushsection .fixups,\"a\"\n\t.quad " from ", " to "\n\t.popsection\n\t"
#define TRY(insn)       "771:\n\t" insn "\n772:\n\t" FIXUP("771b", "772b")

/* The first instruction of the stub that the IDT names for a vector. */
const void *trap_stub(u32 vector);

typedef void trap_fn(struct regs *r);

void trap_init(void);
void trap_load(void);

/* The handler of a vector, for all CPUs; NULL takes it away. Handlers of local APIC interrupts write EOI
 * themselves. */
void trap_handle(u32 vector, trap_fn *fn);

/* Spurious interrupts of the local APIC so far; they need no EOI. */
extern volatile u32 trap_spurious;

/* Before TRY(), and after it: FAULT(...) or 0. Per CPU. */
void trap_forget(void);
u32 trap_last(void);
u64 trap_cr2(void);

/* Runs fn in ring 3 with interrupts off; TRY() works there as well. */
void user_run(void (*fn)(void));

/* Calls 32-bit code in compatibility mode; it ends with lret. */
void compat_call(const void *code32);

u32 try_rdmsr(u32 msr, u64 *value);
u32 try_wrmsr(u32 msr, u64 value);
u32 try_write_cr0(u64 v);
u32 try_write_cr3(u64 v);
u32 try_write_cr4(u64 v);
u32 try_xsetbv(u64 index, u64 value);
u32 try_read64(u64 addr, u64 *value);
u32 try_write64(u64 addr, u64 value);
