/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window in which L0 may touch guest RAM (user pages under SMAP). Only mm/guest_copy and fast paths built
 * on it use this; keep windows short, and call nothing in them that is not a plain copy.
 */
#ifndef NIDUS_MM_GUEST_ACCESS_H
#define NIDUS_MM_GUEST_ACCESS_H

#include "hv/static_key.h"

#if __STDC_HOSTED__ /* unit tests: there is no window to open */
static inline void guest_access_begin(void)
{
}

static inline void guest_access_end(void)
{
}
#else
static inline void guest_access_begin(void)
{
	asm volatile(STATIC_CODE("stac", 3) : : "i"(KEY_SMAP) : "memory", "cc");
}

static inline void guest_access_end(void)
{
	asm volatile(STATIC_CODE("clac", 3) : : "i"(KEY_SMAP) : "memory", "cc");
}
#endif

#endif
