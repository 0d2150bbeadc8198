/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CPU that runs one L2 after the other, each in a VMCS of its own and for less than a turn, has no more of
 * a shared processor for it: the other CPU never waits for longer than a few turns.
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: many VMCSs, one turn";

#define VMCSS      24u
#define L2_TICKS   1500000ull /* below a turn of 5 ms at 400 MHz */
#define GAP_MAX    (10 * L2_TICKS)
#define TIMER_RATE 31u /* IA32_VMX_MISC: the timer counts each 2^n ticks */

static volatile u64 gap, rounds;
static volatile bool stop;

/* The longest time that passed between two looks at the clock. */
static void watch_clock(u64 unused)
{
	u64 last = rdtsc();

	(void)unused;
	cli();
	for (; !stop; rounds++) {
		u64 now = rdtsc();

		if (now - last > gap)
			gap = now - last;
		last = now;
	}
}

static void l2_spin(void)
{
	for (;;)
		cpu_pause();
}

static struct vm_result run_in(u64 vmcs)
{
	l2_prepare_in(vmcs, l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, L2_TICKS >> (rdmsr(MSR_VMX_MISC) & TIMER_RATE));
	return l2_launch();
}

void test_main(void)
{
	static u64 vmcs[VMCSS];
	u64 before;

	if (!vmx_available())
		return;
	vmx_start();
	if (!ctl_has(VMCS_PIN_CTL, PIN_TIMER)) {
		skip("preemption-timer", "not offered");
		return;
	}
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	for (u32 i = 0; i < VMCSS; i++)
		vmcs[i] = vmcs_alloc();
	cpu_run(1, watch_clock, 0);
	while (!rounds)
		cpu_pause();
	before = rounds;
	for (u32 i = 0; i < VMCSS; i++) {
		struct vm_result r = run_in(vmcs[i]);

		expect_exit("ran-its-time", r, EXIT_TIMER);
	}
	stop = true;
	expect_true("other-cpu-came-back", cpu_wait_for(1, 1000000));
	expect_true("other-cpu-ran-meanwhile", rounds > before);
	expect_true("never-waited-long", gap < GAP_MAX);
}
