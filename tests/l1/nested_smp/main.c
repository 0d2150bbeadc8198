/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four CPUs run L2s at the same time under one EPT: private counts stay right, first touches of the same
 * pages race well, and a permission taken away by one CPU (with INVEPT on all) holds for the L2s of the
 * others. SDM "Caching of Information".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: four CPUs at once";

#define CPUS   4
#define ROUNDS 200
#define PAGES  64

static volatile u64 exits[CPUS], wrong[CPUS], touched[CPUS];
static u64 root;
static volatile u32 arrived;
static volatile u8 *pages;
static volatile u64 write_count[CPUS];
static volatile bool stop[CPUS];

static void l2_cpuid_loop(void)
{
	for (u32 i = 0;; i++)
		cpuid(0x40, i);
}

static void barrier_all(u32 goal)
{
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	while (arrived < goal)
		cpu_pause();
}

static void run_rounds(u64 cpu)
{
	struct vm_result r;

	l2_prepare(l2_cpuid_loop);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	barrier_all(CPUS);
	for (u32 i = 0; i < ROUNDS; i++) {
		r = i ? l2_run_past(&r) : l2_run();
		wrong[cpu] +=
			r.reason != EXIT_CPUID || (u32)l2_regs()->rcx != i || (u32)l2_regs()->rax != 0x40;
		exits[cpu]++;
	}
}

static void l2_touch_all(void)
{
	u64 sum = 0;

	for (u32 i = 0; i < PAGES; i++)
		sum += pages[i * PAGE_SIZE];
	l2_call(sum);
}

static void touch(u64 cpu)
{
	struct vm_result r;

	l2_prepare(l2_touch_all);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	barrier_all(2 * CPUS);
	r = l2_run();
	touched[cpu] = l2_called(&r, PAGES * 7);
}

static void l2_write_forever(void)
{
	u32 cpu = cpu_index();

	for (;;) {
		pages[cpu * 8] = (u8)(pages[cpu * 8] + 1);
		write_count[cpu]++;
	}
}

static volatile u32 last_reason[CPUS];

/* Runs the writer; a preemption timer brings it back now and then, so that INVEPT can be done on this CPU. */
static void writer(u64 cpu)
{
	struct vm_result r;

	l2_prepare(l2_write_forever);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	do {
		vmwrite(VMCS_PREEMPTION_TIMER, 20000);
		r = l2_run();
		if (stop[cpu])
			invept(1, ept_pointer(root));
	} while (r.reason == EXIT_TIMER);
	last_reason[cpu] = r.reason;
}

static void on_others(cpu_fn *fn)
{
	for (u32 i = 1; i < CPUS; i++)
		cpu_run(i, fn, i);
}

static void wait_others(void)
{
	for (u32 i = 1; i < CPUS; i++)
		cpu_wait(i);
}

static u64 total(const volatile u64 *v)
{
	return v[0] + v[1] + v[2] + v[3];
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!expect_eq("cpus-online", cpu_start_all(), CPUS) || !proc2_has(PROC2_EPT))
		return;
	root = ept_identity(64ul << 20, PAGE_2M);
	on_others(run_rounds);
	run_rounds(0);
	wait_others();
	expect_eq("all-exits", total(exits), CPUS * ROUNDS);
	expect_eq("no-mix-up", total(wrong), 0);

	pages = ptr_to(32ul << 20);
	memset(ptr_to(32ul << 20), 7, PAGES * PAGE_SIZE);
	ept_entry(root, 32ul << 20, PAGE_SIZE);
	on_others(touch);
	touch(0);
	wait_others();
	expect_eq("racing-first-touch", total(touched), CPUS);

	if (!ctl_has(VMCS_PIN_CTL, PIN_TIMER)) {
		skip("remote-revoke", "no preemption timer");
		return;
	}
	on_others(writer);
	delay_us(2000);
	*ept_entry(root, 32ul << 20, PAGE_SIZE) &= ~EPT_W;
	for (u32 i = 1; i < CPUS; i++)
		stop[i] = true;
	wait_others();
	for (u32 i = 1; i < CPUS; i++)
		wrong[i] = last_reason[i] != EXIT_EPT_VIOLATION;
	expect_true("writers-ran", write_count[1] && write_count[2] && write_count[3]);
	expect_eq("remote-revoke", total(wrong), 0);
}
