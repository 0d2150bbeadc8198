/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A #DB whose delivery hits a data breakpoint again keeps a real CPU in microcode for ever unless the
 * hypervisor takes #DB (CVE-2015-8104, XSA-156). The other CPU of this guest, and the machine, must stay
 * alive; this CPU need not.
 */
#include "l1.h"

const char test_title[] = "endless exception in delivery";

static volatile u64 progress;
static volatile bool storm_begins;

static void on_debug(struct regs *r)
{
	(void)r;
	progress++;
}

/* A write breakpoint on the very stack slots that the CPU pushes to: each push of a delivery raises the next
 * #DB. */
static void storm(u64 unused)
{
	u64 rsp;

	(void)unused;
	asm volatile("mov %%rsp, %0" : "=r"(rsp));
	asm volatile("mov %0, %%dr0" : : "r"((rsp - 0x100) & ~7ul));
	asm volatile("mov %0, %%dr1" : : "r"((rsp - 0x140) & ~7ul));
	asm volatile("mov %0, %%dr2" : : "r"((rsp - 0x180) & ~7ul));
	write_dr7(0x0999002a | 0x402);
	storm_begins = true;
	for (;;)
		asm volatile("sub $0x80, %rsp\n\tmovq $1, (%rsp)\n\tadd $0x80, %rsp");
}

void test_main(void)
{
	u64 start;

	trap_handle(VEC_DB, on_debug);
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	cpu_run(1, storm, 0);
	while (!storm_begins)
		cpu_pause();
	start = rdtsc();
	delay_us(5000);
	expect_true("other-cpu-lives", rdtsc() - start >= us_to_tsc(4900));
}
