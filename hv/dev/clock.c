/* SPDX-License-Identifier: Apache-2.0 */
/* The devices' clock and the arithmetic of other rates. No device knows how time is read. */
#include "hv/dev/internal.h"
#include "hv/x86.h"

#define GAPS_PER_SECOND 50000

u64 machine_clock(void)
{
	return rdtsc();
}

u64 clock_scale(u64 x, u64 mul, u64 div)
{
	return x / div * mul + x % div * mul / div;
}

u64 clock_min_gap(void)
{
	return tsc_hz / GAPS_PER_SECOND;
}
