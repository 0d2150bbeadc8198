/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of nested_random share: the numbers, L2's world, and the changes to a VMCS. */
#pragma once

#include "l1.h"
#include "l2.h"

/* --- numbers: each case has its own, so that it can be run alone --- */
void rng_start(u64 seed, u32 number);
u64 rng(void);
static inline u32 rng_below(u32 n)
{
	return (u32)(rng() >> 32) % n;
}
/* One in n. */
static inline bool rng_one_in(u32 n)
{
	return !rng_below(n);
}

/* --- world.c: memory that L2 can reach, in a valid state of each mode --- */
enum mode { LONG, LONG_USER, COMPAT, PAGING, PAE, FLAT, REAL, VM86, MODES };

#define LOW        0x10000ul /* the pages stand at the same address for L1 and L2, so that EPT may be off */
#define L2_CODE    (LOW + 0x0000)
#define L2_HANDLER (L2_CODE + 0x800)
#define L2_DATA    (LOW + 0x1000)
#define L2_IDT64   (LOW + 0x2000)
#define L2_TABLES  (LOW + 0x3000) /* IDT of 32-bit modes, GDT, TSS */
#define L2_IVT     (LOW + 0x4000)
#define L2_PML4    (LOW + 0x5000)
#define L2_PDPT    (LOW + 0x6000)
#define L2_PD      (LOW + 0x7000)
#define L2_PD32    (LOW + 0x8000)
#define L2_PDPTPAE (LOW + 0x9000)
#define L2_END     (LOW + 0xa000)
#define L2_IDT32   L2_TABLES
#define L2_GDT     (L2_TABLES + 0x800)
#define L2_TSS     (L2_TABLES + 0x900)

/* Pages for what VMCS fields point to. */
struct pages {
	u64 entry_list, exit_list, apic, bitmap, other_vmcs, log, eptp_list, ve;
};
extern struct pages pages;

/* Controls without which Bochs and what Nidus's CPUID says disagree about the case's instruction. */
extern u32 world_needs;

void world_create(void);
/* Memory, registers and VMCS as if no case had run before; `show` prints the instruction. */
void world_reset(enum mode mode, bool show);

/* --- mutate.c --- */
/* Change one to four fields (sometimes none); `show` prints which. */
void mutate(bool show);

/* --- avoid.c --- */
/* Undo what Bochs is known to do otherwise than the manual says, or what would end the machine. */
void avoid(void);
