/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hardware's MSR bitmap (one page) and I/O bitmaps A and B (two pages, one behind the other): test, set,
 * merge. Pure. A set bit means "intercept". SDM "MSR-Bitmap Address", "I/O-Bitmap Addresses".
 */
#ifndef NIDUS_HV_BITMAP_H
#define NIDUS_HV_BITMAP_H

#include "hv/types.h"

#define MSR_BITMAP_SIZE 4096u
#define IO_BITMAP_SIZE  8192u

enum msr_access { MSR_ACCESS_READ = 1, MSR_ACCESS_WRITE = 2, MSR_ACCESS_BOTH = 3 };

/* An access is intercepted; always true for an MSR that the bitmap does not cover. `access`: READ or WRITE.
 */
bool msr_bitmap_test(const u8 *bitmap, u32 msr, enum msr_access access);
/* Intercept (or not) the accesses named. False: the bitmap does not cover this MSR. */
bool msr_bitmap_set(u8 *bitmap, u32 msr, enum msr_access access, bool intercept);

/* An access of `size` bytes (1, 2, 4) touches an intercepted port; always true when it wraps around port
 * 0xffff. */
bool io_bitmap_test(const u8 *bitmap, u16 port, unsigned size);
/* Intercept (or not) `count` ports from `first`; those above 0xffff don't exist. */
void io_bitmap_set(u8 *bitmap, u16 first, u32 count, bool intercept);

/*
 * out = a OR b, `size` bytes (a multiple of 8): intercept02 = what L0 needs OR what L1 wants; no bit is ever
 * cleared later. out may be a or b.
 */
void bitmap_merge(u8 *out, const u8 *a, const u8 *b, size_t size);

#endif
