/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of clock rates. Pure. */
#include "hv/dev/internal.h"

#define GAPS_PER_SECOND 50000

u64 clock_scale(u64 x, u64 mul, u64 div)
{
	return x / div * mul + x % div * mul / div;
}

u64 clock_min_gap(void)
{
	return tsc_hz / GAPS_PER_SECOND;
}
