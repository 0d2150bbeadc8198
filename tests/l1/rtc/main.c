/* SPDX-License-Identifier: Apache-2.0 */
/* RTC and CMOS: a valid time that moves, RAM that holds, and the periodic interrupt on line 8. MC146818
 * datasheet. */
#include "l1.h"

const char test_title[] = "real-time clock";

static volatile u32 hits;

static u8 cmos(u8 reg)
{
	outb(0x70, reg);
	return inb(0x71);
}

static void cmos_write(u8 reg, u8 v)
{
	outb(0x70, reg);
	outb(0x71, v);
}

static u32 decoded(u8 reg)
{
	u8 v = cmos(reg);

	return cmos(0xb) & 4 ? v : (u32)(v >> 4) * 10 + (v & 15);
}

static void on_irq8(struct regs *r)
{
	(void)r;
	hits++;
	cmos(0xc);
	pic_eoi(8);
}

/* The clock may take its request back just before the CPU asks for the vector: then line 15 of the slave
 * answers. */
static void on_spurious(struct regs *r)
{
	(void)r;
	pic_eoi(2);
}

static void time_of_day(void)
{
	u32 second, waited = 0;

	expect_eq("battery-good", cmos(0xd) & 0x80, 0x80);
	expect_true("seconds", decoded(0) < 60);
	expect_true("minutes", decoded(2) < 60);
	expect_true("hours", (decoded(4) & 0x7f) < 24);
	expect_true("day", decoded(7) >= 1 && decoded(7) <= 31);
	expect_true("month", decoded(8) >= 1 && decoded(8) <= 12);
	second = decoded(0);
	while (decoded(0) == second && waited++ < 300)
		delay_us(5000);
	expect_true("seconds-move", waited < 300);
}

static void ram(void)
{
	u8 old = cmos(0x60);

	cmos_write(0x60, 0xa5);
	expect_eq("cmos-holds", cmos(0x60), 0xa5);
	cmos_write(0x60, old);
}

static void periodic(void)
{
	u8 old_a = cmos(0xa), old_b = cmos(0xb);

	lapic_enable();
	lapic_write(APIC_LVT_LINT0, 0x700);
	pic_init(0x40, 0x48);
	trap_handle(0x48, on_irq8);
	trap_handle(0x4f, on_spurious);
	pic_unmask(8);
	cmos_write(0xa, (u8)((old_a & 0xf0) | 6)); /* 1024 Hz */
	cmos_write(0xb, (u8)(old_b | 0x40));
	cmos(0xc);
	sti();
	delay_us(20000);
	cli();
	expect_near("periodic-1024hz-20ms", hits, 15, 25);
	cmos_write(0xb, old_b);
	cmos(0xc);
	sti_nop_cli();
	hits = 0;
	sti();
	delay_us(5000);
	cli();
	expect_eq("periodic-off", hits, 0);
	cmos_write(0xa, old_a);
}

void test_main(void)
{
	time_of_day();
	ram();
	periodic();
}
