/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the MSR and I/O bitmaps. Decides nothing about which accesses are wanted. */
#include "hv/bitmap.h"

/* SDM "MSR-Bitmap Address": read bitmaps for low and high MSRs, then write bitmaps for both, 1 KiB each. */
#define MSR_RANGE    0x2000u
#define MSR_HIGH     0xc0000000u
#define HIGH_OFFSET  1024u
#define WRITE_OFFSET 2048u

/* Byte offsets may differ from address alignment on the host's tests only. */
typedef u64 __attribute__((may_alias, aligned(1))) word;

/* Bit number of the read bit of `msr`. False: not covered. */
static bool msr_bit(u32 msr, u32 *bit)
{
	if (msr < MSR_RANGE)
		*bit = msr;
	else if (msr >= MSR_HIGH && msr < MSR_HIGH + MSR_RANGE)
		*bit = HIGH_OFFSET * 8 + (msr - MSR_HIGH);
	else
		return false;
	return true;
}

static bool test_bit(const u8 *bitmap, u32 bit)
{
	return bitmap[bit / 8] >> (bit % 8) & 1;
}

static void put_bit(u8 *bitmap, u32 bit, bool value)
{
	u8 mask = (u8)(1u << (bit % 8));

	bitmap[bit / 8] = (u8)(value ? bitmap[bit / 8] | mask : bitmap[bit / 8] & ~mask);
}

bool msr_bitmap_test(const u8 *bitmap, u32 msr, enum msr_access access)
{
	u32 bit;

	if (!msr_bit(msr, &bit))
		return true;
	return ((access & MSR_ACCESS_READ) && test_bit(bitmap, bit)) ||
	       ((access & MSR_ACCESS_WRITE) && test_bit(bitmap, WRITE_OFFSET * 8 + bit));
}

bool msr_bitmap_set(u8 *bitmap, u32 msr, enum msr_access access, bool intercept)
{
	u32 bit;

	if (!msr_bit(msr, &bit))
		return false;
	if (access & MSR_ACCESS_READ)
		put_bit(bitmap, bit, intercept);
	if (access & MSR_ACCESS_WRITE)
		put_bit(bitmap, WRITE_OFFSET * 8 + bit, intercept);
	return true;
}

bool io_bitmap_test(const u8 *bitmap, u16 port, unsigned size)
{
	if (port + size > 0x10000u)
		return true;
	for (u32 p = port; p < port + size; p++)
		if (test_bit(bitmap, p))
			return true;
	return false;
}

void io_bitmap_set(u8 *bitmap, u16 first, u32 count, bool intercept)
{
	for (u32 p = first; p < 0x10000u && p - first < count; p++)
		put_bit(bitmap, p, intercept);
}

void bitmap_merge(u8 *out, const u8 *a, const u8 *b, size_t size)
{
	word *o = (word *)(void *)out;
	const word *x = (const word *)(const void *)a, *y = (const word *)(const void *)b;

	for (size_t i = 0; i < size / 8; i++)
		o[i] = x[i] | y[i];
}
