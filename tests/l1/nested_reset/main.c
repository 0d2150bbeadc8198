/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INIT and SIPI restart a CPU that was in the middle of VMX: in root with a current VMCS, after an L2 ran.
 * Its second life begins outside VMX operation and runs L2 as well as the first did; many times
 * (CVE-2022-3344).
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: restart of a CPU that used VMX";

#define LIVES 12

static volatile u32 first_insn, outcome, vmxe;

static void l2_leave(void)
{
	l2_call(7);
}

static void live(u64 unused)
{
	struct vm_result r;

	(void)unused;
	vmxe = !!(read_cr4() & CR4_VMXE);
	first_insn = vmread_try(VMCS_GUEST_RIP, NULL);
	l2_prepare(l2_leave);
	r = l2_launch();
	outcome = l2_called(&r, 7);
	vmxoff();
}

void test_main(void)
{
	u32 bad = 0;

	if (!vmx_available() || !vmx_start())
		return;
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	for (u32 i = 0; i < LIVES; i++) {
		outcome = 0;
		cpu_run(1, live, 0);
		count_eq(bad, "life-ends", cpu_wait_for(1, 1000000), true);
		count_eq(bad, "life-l2", outcome, 1);
		count_eq(bad, "life-not-in-vmx", first_insn, UD);
		count_eq(bad, "life-vmxe", vmxe, i ? 0 : vmxe);
		cpus[1].online = false;
		lapic_ipi(cpus[1].apic_id, ICR_INIT | ICR_ASSERT);
		delay_us(200);
		lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
		count_eq(bad, "life-restarts", cpu_wait_online(1, 500000), true);
	}
	expect_eq("all-lives", bad, 0);
	expect_eq("starts", cpus[1].starts, LIVES + 1);
}
