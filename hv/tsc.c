/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID leaf 0x15 is not believed: emulators and early parts give a crystal that is not theirs. A known clock
 * is counted instead. */
#include "hv/tsc.h"
#include "hv/print.h"
#include "hv/x86.h"

#define PM_HZ     3579545      /* ACPI "Power Management Timer" */
#define PM_MASK   0xffffff     /* 24 bits always work */
#define PM_SPAN   (PM_HZ / 50) /* 20 ms: one read's jitter is below 100 ppm */
#define PIT_HZ    1193182
#define PIT_SPAN  (PIT_HZ / 50)
#define SAMPLES   3
#define LOOPS_MAX 100000000u

u64 tsc_hz;

/* Ticks of the TSC and of the PM timer between two reads of both; 0 when the timer stands still. */
static u64 sample_pm(u16 port)
{
	u32 start = in32(port) & PM_MASK, now, loops = 0;
	u64 tsc = rdtsc();

	do {
		now = (in32(port) - start) & PM_MASK;
		if (++loops == LOOPS_MAX || (loops == 100000 && now == 0))
			return 0;
	} while (now < PM_SPAN);
	return mul_div(rdtsc() - tsc, PM_HZ, now);
}

/* Channel 2 counts down once; bit 5 of port 0x61 is its output. */
static u64 sample_pit(void)
{
	u32 loops = 0;
	u64 tsc;

	out8(0x61, (u8)((in8(0x61) & ~2) | 1));
	out8(0x43, 0xb0);
	out8(0x42, (u8)PIT_SPAN);
	out8(0x42, (u8)(PIT_SPAN >> 8));
	tsc = rdtsc();
	while (!(in8(0x61) & 0x20))
		if (++loops == LOOPS_MAX)
			return 0;
	return mul_div(rdtsc() - tsc, PIT_HZ, PIT_SPAN);
}

static u64 median(u64 a, u64 b, u64 c)
{
	return MAX(MIN(a, b), MIN(MAX(a, b), c));
}

/* The median drops one sample that an SMI or the emulator's host disturbed. */
void tsc_measure(u16 pm_port)
{
	u64 s[SAMPLES];

	for (unsigned i = 0; i < SAMPLES; i++) {
		s[i] = pm_port ? sample_pm(pm_port) : 0;
		if (!s[i])
			s[i] = sample_pit();
	}
	tsc_hz = median(s[0], s[1], s[2]);
	if (!tsc_hz) {
		log_warn("no clock to measure the TSC with; taking 1 GHz");
		tsc_hz = 1000000000;
	}
}

void tsc_delay_us(u64 us)
{
	u64 end = rdtsc() + tsc_from_us(us);

	while ((s64)(end - rdtsc()) > 0)
		cpu_relax();
}
