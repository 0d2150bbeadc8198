/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INIT and SIPI against VMX operation: in L2 an INIT is an exit and is used up by it; a SIPI to a CPU that
 * does not wait is nothing; in the wait-for-SIPI state it is an exit with the vector; in VMX root INIT waits
 * for VMXOFF. SDM "Other Causes of VM Exits".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: INIT and SIPI";

static volatile u32 first_reason, second_reason;
static volatile u64 sipi_qual, spins;
static volatile bool in_l2, stop_spinning, root_ready, leave_root;

static void l2_spin(void)
{
	in_l2 = true;
	while (!stop_spinning)
		spins++;
	l2_call(1);
}

static void take_init(u64 cpu)
{
	struct vm_result r;

	(void)cpu;
	l2_prepare(l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	r = l2_launch();
	first_reason = r.reason;
	in_l2 = false;
	stop_spinning = true;
	r = l2_resume();
	second_reason = r.reason;
	vmxoff();
}

static void wait_for_sipi(u64 cpu)
{
	struct vm_result r;

	(void)cpu;
	l2_prepare(l2_spin);
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, 3);
	in_l2 = true;
	r = l2_launch();
	first_reason = r.reason;
	sipi_qual = r.qual;
	vmxoff();
}

static void stay_in_root(u64 cpu)
{
	(void)cpu;
	vmx_start();
	root_ready = true;
	while (!leave_root)
		cpu_pause();
	spins = 0;
	vmxoff();
	for (;;) /* the INIT that was held back takes the CPU from here */
		spins++;
}

static void wait_flag(volatile bool *flag)
{
	u64 end = rdtsc() + us_to_tsc(500000);

	while (!*flag && rdtsc() < end)
		cpu_pause();
}

static void init_in_l2(void)
{
	cpu_run(1, take_init, 1);
	wait_flag(&in_l2);
	lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | 8); /* nobody waits for it */
	delay_us(500);
	lapic_ipi(cpus[1].apic_id, ICR_INIT | ICR_ASSERT);
	expect_true("init-came-back", cpu_wait_for(1, 1000000));
	expect_eq("init-exit", first_reason, EXIT_INIT);
	expect_eq("init-used-up", second_reason, EXIT_VMCALL);
	expect_eq("init-no-restart", cpus[1].starts, 1);
}

static void sipi_state(void)
{
	in_l2 = false;
	first_reason = 0;
	cpu_run(1, wait_for_sipi, 1);
	wait_flag(&in_l2);
	delay_us(2000);
	lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | 0x9a);
	expect_true("sipi-came-back", cpu_wait_for(1, 1000000));
	expect_eq("sipi-exit", first_reason, EXIT_SIPI);
	expect_eq("sipi-vector", sipi_qual, 0x9a);
}

static void init_in_root(void)
{
	cpu_run(1, stay_in_root, 1);
	wait_flag(&root_ready);
	cpus[1].online = false;
	lapic_ipi(cpus[1].apic_id, ICR_INIT | ICR_ASSERT);
	delay_us(2000);
	lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	delay_us(2000);
	expect_eq("root-holds-init", cpus[1].starts, 1);
	leave_root = true;
	delay_us(5000);
	lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	expect_true("vmxoff-releases-init", cpu_wait_online(1, 500000));
	expect_eq("restarted-once", cpus[1].starts, 2);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	init_in_l2();
	sipi_state();
	init_in_root();
}
