/* SPDX-License-Identifier: Apache-2.0 */
/* The PIT: counting, latches, read-back, and channel 2 behind port 0x61. 8254 datasheet. */
#include "l1.h"

const char test_title[] = "8254 interval timer";

static u64 pit_ticks_to_tsc(u64 ticks)
{
	return tsc_hz() / 1000 * ticks / (PIT_HZ / 1000);
}

static void counts_down(void)
{
	u16 first, second;
	u64 start;

	pit_set(0, PIT_RATE, 0xffff);
	delay_us(100);
	first = pit_read(0);
	start = rdtsc();
	delay_us(5000);
	second = pit_read(0);
	start = rdtsc() - start;
	expect_true("counts-down", second < first);
	expect_near("rate-against-tsc", pit_ticks_to_tsc((u64)(first - second)) * 100 / start, 95, 105);
}

static void latch(void)
{
	u8 low, high;

	pit_set(0, PIT_RATE, 0xffff);
	delay_us(200);
	outb(0x43, 0x00);
	delay_us(2000);
	low = inb(0x40);
	high = inb(0x40);
	expect_near("latch-holds", (u32)(high << 8 | low) - pit_read(0), 2000, 20000);
	outb(0x43, 0xc2); /* read-back: status and count of channel 0 */
	expect_eq("read-back-status-mode", inb(0x40) & 0x3e, 0x34);
	low = inb(0x40);
	high = inb(0x40);
	expect_true("read-back-count", (u32)(high << 8 | low) < 0xff00);
	outb(0x43, 0x10); /* low byte only */
	outb(0x40, 50);
	delay_us(500);
	outb(0x43, 0xe2);
	expect_eq("one-shot-output-high", inb(0x40) & 0xb0, 0x90);
}

static void channel2(void)
{
	u8 old = inb(0x61);

	outb(0x61, (u8)((old & ~3u) | 0)); /* gate off */
	pit_set(2, PIT_ONE_SHOT, 1193);
	delay_us(3000);
	expect_eq("gate-stops", inb(0x61) & 0x20, 0);
	outb(0x61, (u8)((old & ~3u) | 1));
	pit_set(2, PIT_ONE_SHOT, 1193);
	expect_eq("out-low-while-counting", inb(0x61) & 0x20, 0);
	delay_us(3000);
	expect_eq("out-high-after-count", inb(0x61) & 0x20, 0x20);
	expect_eq("gate-reads-back", inb(0x61) & 3, 1);
	outb(0x61, old);
}

void test_main(void)
{
	counts_down();
	latch();
	channel2();
}
