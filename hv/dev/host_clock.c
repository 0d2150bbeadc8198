/* SPDX-License-Identifier: Apache-2.0 */
/* The host's clocks as the devices use them: its TSC, and its CMOS clock, read at the creation of a guest and
 * never written. */
#include "hv/dev/internal.h"
#include "hv/lib.h"
#include "hv/x86.h"

#define REG_A       0x0a
#define REG_B       0x0b
#define REG_CENTURY 0x32
#define UPDATING    BIT32(7)
#define BINARY      BIT32(2)
#define HOURS_24    BIT32(1)
#define PM          0x80
#define TRIES       100000 /* an update takes 2 ms; a port access 1 us */
#define CENTURY_NOW 20

u64 machine_clock(void)
{
	return rdtsc();
}

static u8 cmos(u8 reg)
{
	out8(0x70, reg);
	return in8(0x71);
}

static u8 decode(u8 value, u8 mode)
{
	return mode & BINARY ? value : (u8)((value & 15) + (value >> 4) * 10);
}

static void read_once(u8 raw[7])
{
	static const u8 regs[7] = {0, 2, 4, 7, 8, 9, REG_CENTURY};

	for (unsigned i = 0; i < TRIES && (cmos(REG_A) & UPDATING); i++)
		;
	for (unsigned i = 0; i < 7; i++)
		raw[i] = cmos(regs[i]);
}

s64 host_rtc_seconds(void)
{
	u8 raw[7], again[7], mode = cmos(REG_B), century, hour;
	struct calendar c;

	/* Two equal readings were not cut by an update. */
	read_once(raw);
	for (unsigned i = 0; i < 3; i++) {
		read_once(again);
		if (memcmp(raw, again, sizeof(raw)) == 0)
			break;
		memcpy(raw, again, sizeof(raw));
	}
	hour = decode(raw[2] & (u8)~PM, mode);
	if (!(mode & HOURS_24))
		hour = (u8)(hour % 12 + (raw[2] & PM ? 12 : 0));
	century = decode(raw[6], mode);
	if (century < 19 || century > 21)
		century = CENTURY_NOW;
	c = (struct calendar){
		.year = century * 100 + decode(raw[5], mode),
		.month = decode(raw[4], mode),
		.day = decode(raw[3], mode),
		.hour = hour,
		.minute = decode(raw[1], mode),
		.second = decode(raw[0], mode),
	};
	return calendar_seconds(&c);
}
