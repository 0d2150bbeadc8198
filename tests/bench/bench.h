/* SPDX-License-Identifier: Apache-2.0 */
/* How a row is measured and printed. A row costs the same whoever measures it: L1 itself or its L2. */
#pragma once

#include "l1.h"

#define BATCHES 8
#define ROUNDS  16

typedef void op_fn(void);

/* `ROW name ticks operations marks`: the smallest batch, how many operations were in it, and the pairs of
 * marks so far. */
void row(const char *name, u64 ticks, u32 operations);

extern volatile u32 mark_pairs;

/*
 * Under Bochs' debugger the first and the second one of each pair stop the machine, and the tool traces what
 * lies between. Elsewhere it does nothing.
 */
static inline void mark(void)
{
	asm volatile("xchg %%bx, %%bx" : : : "memory");
}

/* Ticks of the fastest of BATCHES times ROUNDS operations. The operation is built in: its call costs nothing.
 */
static inline __attribute__((always_inline)) u64 best_of(op_fn *op)
{
	u64 best = ~0ull;

	op();
	op();
	mark();
	op();
	mark();
	mark_pairs++;
	for (u32 b = 0; b < BATCHES; b++) {
		u64 start = rdtsc();

		for (u32 i = 0; i < ROUNDS; i++)
			op();
		start = rdtsc() - start;
		best = start < best ? start : best;
	}
	return best;
}

#define MEASURE(name, op) row(name, best_of(op), ROUNDS)

/* Groups of rows; each leaves the CPU as the next one needs it. */
void rows_l1(void);
void rows_apic(const char *suffix); /* enters x2APIC mode, and stays there */
void rows_vmx(void);
void rows_round_trip(void);
void rows_memory(void);
void rows_hyperv(void);
