/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two CPUs loop with interrupts off, with no instruction that exits. Both must get their share of time, and
 * the machine below must stay in command; after it, interrupts that came meanwhile are still there.
 */
#include "l1.h"

const char test_title[] = "spinning with interrupts off";

static volatile u64 rounds[2];
static volatile bool stop;
static volatile u32 hits;

static void on_ipi(struct regs *r)
{
	(void)r;
	hits++;
	lapic_eoi();
}

static void spin(u64 which)
{
	cli();
	while (!stop)
		rounds[which]++;
}

static void spin_for(u64 which, u64 count)
{
	cli();
	for (u64 i = 0; i < count; i++)
		rounds[which]++;
}

void test_main(void)
{
	u64 other;

	trap_handle(0x52, on_ipi);
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	cpu_run(1, spin, 1);
	while (!rounds[1])
		cpu_pause();
	other = rounds[1];
	lapic_ipi(cpus[0].apic_id, ICR_FIXED | ICR_ASSERT | 0x52);
	lapic_ipi(cpus[1].apic_id, ICR_FIXED | ICR_ASSERT | 0x52);
	spin_for(0, 10000000);
	expect_true("other-cpu-ran-meanwhile", rounds[1] > other);
	expect_eq("no-interrupt-while-off", hits, 0);
	stop = true;
	expect_true("other-cpu-came-back", cpu_wait_for(1, 1000000));
	sti_nop_cli();
	delay_us(1000);
	expect_eq("both-interrupts-kept", hits, 2);
}
