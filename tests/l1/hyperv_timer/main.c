/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic timers in direct mode: one shot, periodic, auto-enable, stopping. TLFS "Synthetic Timers". */
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: direct synthetic timers";

#define VECTOR   0x51u
#define ENABLE   BIT(0)
#define PERIODIC BIT(1)
#define AUTO     BIT(3)
#define DIRECT   (BIT(12) | VECTOR << 4)
#define MS       10000u /* of reference time */

static volatile u32 fired;

static void on_timer(struct regs *r)
{
	(void)r;
	fired++;
	wrmsr(HV_MSR_EOI, 0);
}

static u64 now(void)
{
	return rdmsr(HV_MSR_TIME);
}

/* Interrupts on until `n` came or this much time passed. */
static u32 wait(u32 n, u64 time)
{
	u64 end = now() + time;

	while (fired < n && now() < end)
		sti_nop_cli();
	return fired;
}

static void one_shot(void)
{
	u64 due = now() + MS;

	fired = 0;
	wrmsr(HV_MSR_STIMER0_CONFIG, DIRECT | AUTO);
	expect_eq("not-enabled-yet", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, 0);
	wrmsr(HV_MSR_STIMER0_COUNT, due);
	expect_eq("auto-enabled", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, ENABLE);
	expect_eq("one-shot", wait(1, 200 * MS), 1);
	expect_true("not-early", now() >= due);
	expect_eq("disabled-after", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, 0);
	expect_eq("only-once", wait(2, 5 * MS), 1);
	wrmsr(HV_MSR_STIMER0_COUNT, 1);
	expect_eq("in-the-past", wait(2, 200 * MS), 2);
}

static void periodic(void)
{
	fired = 0;
	wrmsr(HV_MSR_STIMER0_CONFIG, 0);
	wrmsr(HV_MSR_STIMER0_COUNT, MS);
	expect_eq("count-alone-starts-nothing", wait(1, 3 * MS), 0);
	wrmsr(HV_MSR_STIMER0_CONFIG, DIRECT | PERIODIC | ENABLE);
	expect_true("periodic", wait(3, 400 * MS) >= 3);
	wrmsr(HV_MSR_STIMER0_COUNT, 0);
	expect_eq("zero-disables", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, 0);
	sti_nop_cli();
	fired = 0;
	expect_eq("stopped", wait(1, 5 * MS), 0);
}

static void refused(void)
{
	wrmsr(HV_MSR_STIMER0_CONFIG, ENABLE | 2ull << 16);
	expect_eq("no-messages-without-synic", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, 0);
	wrmsr(HV_MSR_STIMER0_CONFIG, 0);
}

void test_main(void)
{
	if (hv_available()) {
		trap_handle(VECTOR, on_timer);
		lapic_enable();
		one_shot();
		periodic();
		refused();
	}
	report_done();
}
