/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window in which L0 may touch guest RAM (user pages under SMAP). Only mm/guest_copy and fast paths built
 * on it use this; keep windows short, and call nothing in them that is not a plain copy.
 */
#ifndef NIDUS_MM_GUEST_ACCESS_H
#define NIDUS_MM_GUEST_ACCESS_H

#include "hv/cpu.h"

static inline void guest_access_begin(void)
{
	if (likely(cpu_has_smap))
		asm volatile("stac" : : : "memory", "cc");
}

static inline void guest_access_end(void)
{
	if (likely(cpu_has_smap))
		asm volatile("clac" : : : "memory", "cc");
}

#endif
