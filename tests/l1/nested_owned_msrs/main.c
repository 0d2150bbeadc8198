/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1 clears its whole MSR bitmap; L2 then reaches what L1 would reach, and never the machine's own registers:
 * x2APIC registers (CVE-2019-3887), those that the hypervisor below needs, and the microcode trigger.
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: MSRs behind an empty bitmap";

static volatile u32 msr;
static volatile u64 value;
static volatile u32 outcome;

static void l2_rdmsr(void)
{
	u64 v = 0;

	outcome = try_rdmsr(msr, &v);
	value = v;
}

static void l2_wrmsr(void)
{
	outcome = try_wrmsr(msr, value);
}

static struct vm_result run(l2_fn *fn, u32 index, u64 v)
{
	msr = index;
	value = v;
	outcome = ~0u;
	l2_prepare(fn);
	return l2_launch();
}

/* What L1 itself gets from the register is what L2 must get. */
static void reads_like_l1(void)
{
	static const u32 list[] = {0x10,  0x1b,       0x3a,       0x8b,       0xfe,      0x277, 0x2ff,
				   0x802, 0x803,      0x808,      0x80f,      0x830,     0x83f, 0x480,
				   0x48c, 0xdeadbeef, 0xc0000080, 0xc0000082, 0xc0000102};
	u32 wrong = 0;

	for (u32 i = 0; i < ARRAY_SIZE(list); i++) {
		u64 mine = 0;
		u32 mine_outcome = try_rdmsr(list[i], &mine);
		struct vm_result r = run(l2_rdmsr, list[i], 0);

		if (r.reason == EXIT_RDMSR)
			continue; /* outside the bitmap's ranges */
		count_eq(wrong, "read-done", l2_called(&r, L2_DONE), 1);
		count_eq(wrong, "read-outcome", outcome, mine_outcome);
		if (list[i] != 0x10)
			count_eq(wrong, "read-value", value, mine);
	}
	expect_eq("reads-like-l1", wrong, 0);
}

/* Registers without a place in the VMCS are shared between L1 and L2; those with one are not. */
static void writes(void)
{
	struct vm_result r;
	u64 pat = rdmsr(MSR_PAT), efer = rdmsr(MSR_EFER);

	r = run(l2_wrmsr, MSR_KERNEL_GS_BASE, 0x123000);
	expect_done("shared-write", r);
	expect_eq("shared-value", rdmsr(MSR_KERNEL_GS_BASE), 0x123000);
	r = run(l2_wrmsr, MSR_PAT, 0x0007040600070404);
	expect_done("pat-write", r);
	expect_eq("pat-without-controls-is-shared", rdmsr(MSR_PAT), 0x0007040600070404);
	wrmsr(MSR_PAT, pat);
	r = run(l2_wrmsr, MSR_SYSENTER_EIP, 0x7000);
	expect_eq("sysenter-is-in-the-vmcs", vmread(VMCS_GUEST_SYSENTER_EIP), 0x7000);
	expect_eq("sysenter-of-l1", rdmsr(MSR_SYSENTER_EIP), 0);
	r = run(l2_wrmsr, MSR_EFER, efer ^ EFER_SCE);
	expect_eq("efer-in-the-vmcs", vmread(VMCS_GUEST_EFER), efer ^ EFER_SCE);
	expect_eq("efer-of-l1", rdmsr(MSR_EFER), efer);
	r = run(l2_wrmsr, MSR_EFER, efer & ~EFER_LME);
	expect_eq("efer-lme-off-faults-in-l2", outcome, GP);
	r = run(l2_wrmsr, MSR_PAT, 2);
	expect_eq("bad-pat-faults-in-l2", outcome, GP);
	r = run(l2_wrmsr, MSR_FEATURE_CONTROL, 0);
	expect_eq("feature-control-faults-in-l2", outcome, GP);
	r = run(l2_wrmsr, 0x79, addr_of((void *)(uintptr_t)l2_wrmsr));
	expect_true("microcode-write-is-harmless", r.kind == VM_EXIT);
	r = run(l2_wrmsr, MSR_DEBUGCTL, 0);
	expect_done("debugctl-write", r);
}

/* With L1 in x2APIC mode: an EOI or ICR write of L2 acts on L1's virtual APIC. */
static volatile u32 hits;

static void on_ipi(struct regs *r)
{
	(void)r;
	hits++;
	lapic_eoi();
}

static void x2apic(void)
{
	struct vm_result r;

	if (!cpu_has_x2apic())
		return;
	lapic_enter_x2apic();
	lapic_enable();
	trap_handle(0x57, on_ipi);
	r = run(l2_rdmsr, 0x802, 0);
	expect_done("x2apic-id-run", r);
	expect_eq("x2apic-id-of-l1", value, lapic_read(APIC_ID));
	r = run(l2_wrmsr, 0x808, 0x20);
	expect_eq("x2apic-tpr-of-l1", lapic_read(APIC_TPR), 0x20);
	lapic_write(APIC_TPR, 0);
	r = run(l2_wrmsr, 0x83f, 0x57);
	expect_done("x2apic-self-ipi-run", r);
	sti_nop_cli();
	expect_eq("x2apic-self-ipi-reaches-l1", hits, 1);
	r = run(l2_wrmsr, 0x80f, BIT(40));
	expect_eq("x2apic-bad-value-faults-in-l2", outcome, GP);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	lapic_enable();
	reads_like_l1();
	writes();
	x2apic();
}
