/* SPDX-License-Identifier: Apache-2.0 */
/* The ACPI PM timer: never zero for long, never backwards, right rate, and the PM1 blocks exist. ACPI "Power
 * Management Timer". */
#include "l1.h"

const char test_title[] = "ACPI PM timer";

void test_main(void)
{
	u32 last, backwards = 0, zeros = 0;
	u64 start, ticks = 0;

	expect_true("fadt-names-it", acpi.pm_timer != 0);
	if (!acpi.pm_timer)
		return;
	last = pm_timer();
	for (u32 i = 0; i < 20000; i++) {
		u32 now = pm_timer(), step = (now - last) & 0xffffff;

		backwards += step > 0x800000;
		zeros += now == 0 && last == 0;
		ticks += step;
		last = now;
	}
	expect_eq("never-backwards", backwards, 0);
	expect_eq("never-stuck-at-zero", zeros, 0);
	expect_true("moves", ticks > 0);

	/* Against the PIT, the only other clock whose rate is fixed by the architecture. */
	outb(0x61, (u8)((inb(0x61) & ~2u) | 1));
	pit_set(2, PIT_RATE, 0);
	start = pit_read(2);
	last = pm_timer();
	while (((pm_timer() - last) & 0xffffff) < PM_TIMER_HZ / 50)
		;
	expect_near("rate-against-pit", (u16)(start - pit_read(2)), PIT_HZ / 50 * 98 / 100,
		    PIT_HZ / 50 * 102 / 100);

	expect_true("pm1-event-block", acpi.pm1a_event != 0);
	expect_true("pm1-control-block", acpi.pm1a_control != 0);
}
