/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of reference time. Pure. */
#ifndef NIDUS_HYPERV_TIME_H
#define NIDUS_HYPERV_TIME_H

#include "hv/types.h"

#define REFERENCE_HZ 10000000ull /* 100 ns */

/* 2^64 * 10^7 / hz, the page's scale. A clock slower than the reference has none: all ones. */
static inline u64 time_scale(u64 hz)
{
	u64 lo = 0, hi = REFERENCE_HZ;

	if (hz <= REFERENCE_HZ)
		return ~0ull;
	asm("div %2" : "+a"(lo), "+d"(hi) : "r"(hz) : "cc");
	return lo;
}

/* TSC ticks to reference time: tsc * scale / 2^64. */
static inline u64 time_scaled(u64 tsc, u64 scale)
{
	return (u64)((unsigned __int128)tsc * scale >> 64);
}

#endif
