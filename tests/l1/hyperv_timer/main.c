/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic timers: one shot, periodic, auto-enable, stopping, in direct mode; and by messages of the SynIC.
 * TLFS "Synthetic Timers", "Virtual Interrupt Controller".
 */
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: synthetic timers";

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
	u64 due, before, after;

	fired = 0;
	wrmsr(HV_MSR_STIMER0_CONFIG, DIRECT | AUTO);
	before = rdmsr(HV_MSR_STIMER0_CONFIG);
	due = now() + MS;
	wrmsr(HV_MSR_STIMER0_COUNT, due);
	after = rdmsr(HV_MSR_STIMER0_CONFIG); /* before it is due: a line takes longer two hypervisors deep */
	expect_eq("not-enabled-yet", before & ENABLE, 0);
	expect_eq("auto-enabled", after & ENABLE, ENABLE);
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

/* --- messages --- */

#define SINT          3u
#define BY_SINT       ((u64)SINT << 16)
#define MASKED        BIT(16)
#define AUTO_EOI      BIT(17)
#define TIMER_EXPIRED 0x80000010u

struct message {
	u32 type;
	u8 payload_size, flags;
	u16 reserved;
	u64 origin;
	u32 timer, reserved1;
	u64 expired, delivered;
};

static volatile struct message *slot;

static void synic_rules(void)
{
	u64 value;

	expect_eq("synic-version", rdmsr(HV_MSR_SVERSION), 1);
	expect_eq("synic-version-is-read-only", try_wrmsr(HV_MSR_SVERSION, 1), GP);
	expect_eq("sint-reset", rdmsr(HV_MSR_SINT(0)), MASKED);
	expect_eq("sint-bad-vector", try_wrmsr(HV_MSR_SINT(SINT), 15), GP);
	expect_eq("sint-masked-bad-vector", try_wrmsr(HV_MSR_SINT(SINT), MASKED | 15), 0);
	expect_eq("sint-auto-eoi", try_wrmsr(HV_MSR_SINT(SINT), AUTO_EOI | VECTOR), GP);
	expect_eq("sint-16", try_rdmsr(HV_MSR_SINT(16), &value), GP);
	expect_eq("message-page-outside", try_wrmsr(HV_MSR_SIMP, 0xfffffff001ull), GP);
}

static void send_one(void)
{
	fired = 0;
	wrmsr(HV_MSR_STIMER0_CONFIG, BY_SINT | AUTO);
	wrmsr(HV_MSR_STIMER0_COUNT, now() + MS);
}

static void messages(void)
{
	void *page = page_alloc();

	slot = (volatile struct message *)(void *)((u8 *)page + 256 * SINT);
	wrmsr(HV_MSR_SIMP, addr_of(page) | 1);
	wrmsr(HV_MSR_SINT(SINT), VECTOR);
	wrmsr(HV_MSR_SCONTROL, 1);
	send_one();
	expect_eq("message-interrupt", wait(1, 200 * MS), 1);
	expect_eq("message-type", slot->type, TIMER_EXPIRED);
	expect_eq("message-size", slot->payload_size, 24);
	expect_true("message-times", slot->expired && slot->delivered >= slot->expired);
	send_one();
	expect_eq("no-message-into-a-full-slot", wait(1, 5 * MS), 0);
	expect_eq("told-that-one-waits", slot->flags & 1, 1);
	slot->type = 0;
	wrmsr(HV_MSR_EOM, 0);
	expect_eq("sent-after-end-of-message", wait(1, 200 * MS), 1);
	expect_eq("sent-type", slot->type, TIMER_EXPIRED);
	slot->type = 0;
	wrmsr(HV_MSR_SINT(SINT), MASKED | VECTOR);
	send_one();
	expect_eq("masked-no-interrupt", wait(1, 5 * MS), 0);
	expect_eq("masked-message-there", slot->type, TIMER_EXPIRED);
	wrmsr(HV_MSR_SCONTROL, 0);
}

/* Of 2 ms most are halted; of the next 2 none. */
static void runtime(void)
{
	u64 began = rdmsr(HV_MSR_VP_RUNTIME), at = now(), ran, passed;

	fired = 0;
	wrmsr(HV_MSR_STIMER0_CONFIG, DIRECT | AUTO);
	wrmsr(HV_MSR_STIMER0_COUNT, at + 2 * MS);
	while (!fired)
		sti_hlt_cli();
	ran = rdmsr(HV_MSR_VP_RUNTIME) - began;
	passed = now() - at;
	expect_true("halted-is-not-run", ran < passed / 2);
	began = rdmsr(HV_MSR_VP_RUNTIME);
	for (at = now(); now() - at < 2 * MS;)
		cpu_pause();
	ran = rdmsr(HV_MSR_VP_RUNTIME) - began;
	expect_near("busy-is-run", ran, 2 * MS, now() - at + MS);
}

static void refused(void)
{
	wrmsr(HV_MSR_STIMER0_CONFIG, ENABLE);
	expect_eq("no-timer-without-target", rdmsr(HV_MSR_STIMER0_CONFIG) & ENABLE, 0);
	wrmsr(HV_MSR_STIMER0_CONFIG, 0);
}

void test_main(void)
{
	if (hv_available()) {
		trap_handle(VECTOR, on_timer);
		lapic_enable();
		one_shot();
		periodic();
		synic_rules();
		messages();
		runtime();
		refused();
	}
	report_done();
}
