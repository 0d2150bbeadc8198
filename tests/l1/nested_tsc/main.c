/* SPDX-License-Identifier: Apache-2.0 */
/* L2's time: TSC offset and multiplier act on RDTSC, RDTSCP and RDMSR alike, and on nothing of L1. SDM
 * "Time-Stamp Counter Offsetting", "TSC Scaling". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: TSC of L2";

static volatile u64 by_rdtsc, by_rdtscp, by_rdmsr, aux;

static void l2_all(void)
{
	u32 lo, hi, a;

	by_rdtsc = rdtsc();
	asm volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(a) : : "memory");
	by_rdtscp = (u64)hi << 32 | lo;
	aux = a;
	by_rdmsr = rdmsr(MSR_TSC);
}

static void check(const char *name, u64 offset, u64 before, u64 after)
{
	char text[48];

	format_text(text, sizeof(text), "%s-rdtsc", name);
	expect_near(text, by_rdtsc - offset, before, after);
	format_text(text, sizeof(text), "%s-rdtscp", name);
	expect_near(text, by_rdtscp - offset, by_rdtsc - offset, after);
	format_text(text, sizeof(text), "%s-rdmsr", name);
	expect_near(text, by_rdmsr - offset, by_rdtscp - offset, after);
}

static void offset_run(const char *name, bool control, u64 offset)
{
	struct vm_result r;
	char text[48];
	u64 before;

	l2_prepare(l2_all);
	if (control)
		vmcs_set_bits(VMCS_PROC_CTL, PROC_TSC_OFFSET);
	vmwrite(VMCS_TSC_OFFSET, offset);
	wrmsr(MSR_TSC_AUX, 0x11);
	before = rdtsc();
	r = l2_launch();
	expect_done(name, r);
	check(name, control ? offset : 0, before, rdtsc());
	format_text(text, sizeof(text), "%s-aux", name);
	expect_eq(text, aux, 0x11);
}

static void scaled(void)
{
	struct vm_result r;
	u64 before;

	if (!proc2_has(PROC2_TSC_SCALING)) {
		skip("scaling", "not offered");
		return;
	}
	l2_prepare(l2_all);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_TSC_OFFSET);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_TSC_SCALING);
	vmwrite(VMCS_TSC_OFFSET, BIT(50));
	vmwrite(VMCS_TSC_MULTIPLIER, BIT(49)); /* 2.0 */
	before = rdtsc();
	r = l2_launch();
	expect_done("scaling-run", r);
	expect_near("scaling-rdtsc", (by_rdtsc - BIT(50)) / 2, before, rdtsc());
	expect_near("scaling-rdmsr", (by_rdmsr - BIT(50)) / 2, before, rdtsc());
}

void test_main(void)
{
	u64 first;

	if (!vmx_available() || !vmx_start())
		return;
	offset_run("no-offset", false, BIT(40));
	offset_run("offset", true, BIT(40));
	offset_run("negative-offset", true, -0x100000ul);
	scaled();
	first = rdtsc();
	expect_near("l1-time-undisturbed", rdtsc() - first, 0, BIT(30));
}
