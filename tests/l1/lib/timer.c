/* SPDX-License-Identifier: Apache-2.0 */
/* PM timer, PIT and the TSC's frequency. */
#include "timer.h"
#include "acpi.h"

static u64 measured_hz;

u32 pm_timer(void)
{
	return inl(acpi.pm_timer) & 0xffffff;
}

void pit_set(u32 channel, enum pit_mode mode, u16 count)
{
	outb(0x43, (u8)(channel << 6 | 0x30 | mode << 1));
	outb((u16)(0x40 + channel), (u8)count);
	outb((u16)(0x40 + channel), (u8)(count >> 8));
}

u16 pit_read(u32 channel)
{
	u8 low;

	outb(0x43, (u8)(channel << 6));
	low = inb((u16)(0x40 + channel));
	return (u16)(low | inb((u16)(0x40 + channel)) << 8);
}

static u64 measure_by_pm_timer(void)
{
	const u32 ticks = PM_TIMER_HZ / 200;
	u32 start = pm_timer(), passed;
	u64 tsc = rdtsc();

	do
		passed = (pm_timer() - start) & 0xffffff;
	while (passed < ticks);
	return (rdtsc() - tsc) * PM_TIMER_HZ / passed;
}

static u64 measure_by_pit(void)
{
	u8 gate = inb(0x61);
	u16 start, now;
	u64 tsc;

	outb(0x61, (u8)((gate & ~2u) | 1));
	pit_set(2, PIT_RATE, 0);
	start = pit_read(2);
	tsc = rdtsc();
	do
		now = pit_read(2);
	while ((u16)(start - now) < PIT_HZ / 200);
	return (rdtsc() - tsc) * PIT_HZ / (u16)(start - now);
}

u64 tsc_hz(void)
{
	if (!measured_hz)
		measured_hz = acpi.pm_timer ? measure_by_pm_timer() : measure_by_pit();
	return measured_hz;
}

u64 us_to_tsc(u64 microseconds)
{
	return tsc_hz() / 1000 * microseconds / 1000;
}

void delay_us(u64 microseconds)
{
	u64 end = rdtsc() + us_to_tsc(microseconds);

	while (rdtsc() < end)
		cpu_pause();
}
