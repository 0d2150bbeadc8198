/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who Hyper-V says it is, and its MSRs one by one: what they take, what they refuse, that clocks agree. TLFS
 * "Feature and Interface Discovery", "Hypervisor Synthetic MSRs", "Timers".
 */
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: identity and synthetic MSRs";

#define OUTSIDE 0xfffffff000ull /* a page that no guest of this size has */

static u64 value;

static void leaves(void)
{
	struct cpuid max = cpuid(0x40000000, 0), features = cpuid(0x40000003, 0);

	expect_near("max-leaf", max.eax, 0x40000005, 0x4000ffff);
	expect_eq("interface", cpuid(0x40000001, 0).eax, 0x31237648);
	expect_eq("needed-privileges", features.eax & 0x60, 0x60);
	expect_eq("no-dangerous-privileges", features.ebx, 0);
	expect_true("max-leaf-with-vmx", max.eax >= 0x4000000a || !(cpuid(0x40000004, 0).eax & BIT(14)));
	if (max.eax >= 0x4000000a)
		expect_eq("evmcs-version", cpuid(0x4000000a, 0).eax & 0xffff, 0x0101);
	expect_eq("beyond-max-leaf", cpuid(0x400000ff, 0).eax, 0);
	expect_true("enough-vps", cpuid(0x40000005, 0).eax >= cpu_count);
}

static void refusals(void)
{
	expect_eq("write-vp-index", try_wrmsr(HV_MSR_VP_INDEX, 1), GP);
	expect_eq("write-runtime", try_wrmsr(HV_MSR_VP_RUNTIME, 1), GP);
	expect_eq("write-time", try_wrmsr(HV_MSR_TIME, 1), GP);
	expect_eq("write-tsc-frequency", try_wrmsr(HV_MSR_TSC_FREQUENCY, 1), GP);
	expect_eq("read-eoi", try_rdmsr(HV_MSR_EOI, &value), GP);
	expect_eq("read-unknown", try_rdmsr(0x400000ff, &value), GP);
	expect_eq("write-unknown", try_wrmsr(0x400000ff, 0), GP);
	expect_eq("read-far-unknown", try_rdmsr(0x4fffffff, &value), GP);
	expect_eq("assist-outside", try_wrmsr(HV_MSR_ASSIST, OUTSIDE | 1), GP);
	expect_eq("reference-page-outside", try_wrmsr(HV_MSR_REFERENCE_TSC, OUTSIDE | 1), GP);
	expect_eq("assist-disabled-outside", try_wrmsr(HV_MSR_ASSIST, OUTSIDE), 0);
}

static void hypercall_page(void)
{
	u8 *page = page_alloc(), *other = page_alloc();

	memset(page, 0x5a, PAGE_SIZE);
	wrmsr(HV_MSR_GUEST_OS_ID, 0);
	wrmsr(HV_MSR_HYPERCALL, addr_of(page) | 1);
	expect_eq("page-needs-identity", rdmsr(HV_MSR_HYPERCALL) & 1, 0);
	expect_eq("page-untouched", page[0], 0x5a);
	wrmsr(HV_MSR_GUEST_OS_ID, HV_OS_ID);
	expect_eq("identity", rdmsr(HV_MSR_GUEST_OS_ID), HV_OS_ID);
	expect_eq("page-outside", try_wrmsr(HV_MSR_HYPERCALL, OUTSIDE | 1), GP);
	wrmsr(HV_MSR_HYPERCALL, addr_of(page) | 1);
	expect_ne("page-has-code", page[0], 0x5a);
	wrmsr(HV_MSR_HYPERCALL, addr_of(other) | 1);
	expect_eq("page-moved-away", page[0], 0x5a);
	wrmsr(HV_MSR_GUEST_OS_ID, 0);
	expect_eq("page-gone-with-identity", rdmsr(HV_MSR_HYPERCALL) & 1, 0);
	hv_start();
	expect_eq("call-returns", HV_STATUS(hv_call(0x7777, 0, 0)), HV_INVALID_CODE);
}

struct tsc_page {
	u32 sequence, reserved;
	u64 scale, offset;
};

static u64 page_time(const volatile struct tsc_page *p)
{
	return (u64)((unsigned __int128)rdtsc() * p->scale >> 64) + p->offset;
}

static void clocks(void)
{
	volatile struct tsc_page *p = page_alloc();
	u64 hz = rdmsr(HV_MSR_TSC_FREQUENCY), t0, t1, tsc0, tsc1, before, middle, after;

	wrmsr(HV_MSR_REFERENCE_TSC, addr_of((const void *)(uintptr_t)p) | 1);
	expect_ne("page-valid", p->sequence, 0);
	before = rdmsr(HV_MSR_TIME);
	middle = page_time(p);
	after = rdmsr(HV_MSR_TIME);
	expect_near("page-agrees-with-msr", middle, before, after);
	t0 = rdmsr(HV_MSR_TIME);
	tsc0 = rdtsc();
	while (rdtsc() - tsc0 < hz / 200)
		cpu_pause();
	t1 = rdmsr(HV_MSR_TIME);
	tsc1 = rdtsc();
	/* 5 ms are 50000 units; what runs beside this only makes both longer. */
	expect_near("time-runs-at-100ns", (t1 - t0) * (hz / 10000) / 1000, (tsc1 - tsc0) * 9 / 10,
		    (tsc1 - tsc0) * 11 / 10);
	expect_ne("apic-frequency", rdmsr(HV_MSR_APIC_FREQUENCY), 0);
	wrmsr(MSR_TSC, rdtsc() + 1000000);
	expect_eq("page-invalid-when-tsc-moved", p->sequence, 0);
	wrmsr(HV_MSR_REFERENCE_TSC, 0);
}

static void miscellanea(void)
{
	expect_eq("vp-index", rdmsr(HV_MSR_VP_INDEX), 0);
	wrmsr(HV_MSR_CRASH_P0, 0x1234);
	expect_eq("crash-parameter", rdmsr(HV_MSR_CRASH_P0), 0x1234);
	expect_eq("crash-capabilities", rdmsr(HV_MSR_CRASH_CTL) >> 62, 3);
	wrmsr(HV_MSR_TPR, 0x30);
	expect_eq("tpr", read_cr8(), 3);
	wrmsr(HV_MSR_TPR, 0);
	expect_eq("tpr-reserved", try_wrmsr(HV_MSR_TPR, 0x100), GP);
}

void test_main(void)
{
	if (hv_available()) {
		leaves();
		refusals();
		hypercall_page();
		miscellanea();
		clocks();
	}
	report_done();
}
