/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of L0 that may fault: a pair {instruction, landing} in section .fixup, read by hv/idt.c. Use
 *inside `asm goto`:
 *
 *	asm goto("1: rdmsr\n" FIXUP("1b", "%l[fault]") : ... : : fault);
 *
 * Any exception at the instruction continues at the landing, with all registers as they were.
 */
#ifndef NIDUS_HV_FIXUP_H
#define NIDUS_HV_FIXUP_H

#include "hv/types.h"

#define FIXUP(at, landing) ".pushsection .fixup, \"a\"\n.quad " at ", " landing "\n.popsection\n"

struct fixup {
	u64 rip, landing;
};

/* False: the CPU refused (#GP), *value is 0. */
static inline bool rdmsr_safe(u32 msr, u64 *value)
{
	u32 lo, hi;

	asm goto("1: rdmsr\n" FIXUP("1b", "%l[fault]") : "=a"(lo), "=d"(hi) : "c"(msr) : : fault);
	*value = (u64)hi << 32 | lo;
	return true;
fault:
	*value = 0;
	return false;
}

static inline bool wrmsr_safe(u32 msr, u64 value)
{
	asm goto("1: wrmsr\n" FIXUP("1b", "%l[fault]")
		 :
		 : "c"(msr), "a"((u32)value), "d"((u32)(value >> 32))
		 : "memory"
		 : fault);
	return true;
fault:
	return false;
}

/* XCR0 := value; false on #GP. CR4.OSXSAVE must be set. */
static inline bool xsetbv_safe(u64 value)
{
	asm goto("1: xsetbv\n" FIXUP("1b", "%l[fault]")
		 :
		 : "c"(0), "a"((u32)value), "d"((u32)(value >> 32))
		 : "memory"
		 : fault);
	return true;
fault:
	return false;
}

#endif
