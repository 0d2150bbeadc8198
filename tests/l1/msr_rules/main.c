/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RDMSR and WRMSR: register halves, faults of bad values, read-only and unknown registers. No index may hurt
 * the machine. SDM "RDMSR", "WRMSR", "Model-Specific Registers".
 */
#include "l1.h"
#include "vmx.h"

const char test_title[] = "MSR rules";

static void register_widths(void)
{
	u64 a = 0xa5a5a5a500000000, d = a, c = 0x1111111100000000 | MSR_APIC_BASE;

	asm volatile("rdmsr" : "+a"(a), "+d"(d) : "c"(c));
	expect_eq("upper-halves-zero", (a | d) >> 32, 0);
	expect_eq("only-ecx-selects", d << 32 | a, rdmsr(MSR_APIC_BASE));
	expect_eq("boot-cpu-flag", rdmsr(MSR_APIC_BASE) & 0x900, 0x900);
}

/* Every index of the two bitmap ranges, of the synthetic range, and one far away: a value or #GP(0), nothing
 * else. */
static void walk(void)
{
	static const struct {
		u32 first, last;
	} ranges[] = {
		{0, 0x1fff}, {0x40000000, 0x400001ff}, {0xc0000000, 0xc0001fff}, {0xdeadbeef, 0xdeadbeef}};
	u32 other = 0, faults = 0;

	for (u32 i = 0; i < ARRAY_SIZE(ranges); i++)
		for (u32 msr = ranges[i].first; msr <= ranges[i].last; msr++) {
			u32 result = try_rdmsr(msr, NULL);

			faults += result == GP;
			other += result != 0 && result != GP;
		}
	expect_eq("value-or-gp", other, 0);
	expect_eq("unknown-read-faults", try_rdmsr(0xdeadbeef, NULL), GP);
	expect_eq("unknown-write-faults", try_wrmsr(0xdeadbeef, 0), GP);
	expect_eq("most-indices-fault", faults > 15000, 1);
}

struct rule {
	const char *name;
	u32 msr;
	u64 set, want; /* value to write; 0 or GP */
};

#define NONCANONICAL 0x0000800000000000ul
#define CANONICAL    0xffff800000000000ul

static const struct rule rules[] = {
	{"efer-reserved", MSR_EFER, EFER_LME | EFER_LMA | EFER_NXE | BIT(1), GP},
	{"efer-reserved-high", MSR_EFER, EFER_LME | EFER_LMA | EFER_NXE | BIT(40), GP},
	{"efer-lme-off-while-paging", MSR_EFER, EFER_NXE, GP},
	{"efer-sce", MSR_EFER, EFER_LME | EFER_LMA | EFER_NXE | EFER_SCE, 0},
	{"apic-base-reserved", MSR_APIC_BASE, 0xfee00901, GP},
	{"apic-base-too-wide", MSR_APIC_BASE, 0xfee00900 | BIT(51), GP},
	{"pat-type-2", MSR_PAT, 0x0007040600070402, GP},
	{"pat-type-8", MSR_PAT, 0x0807040600070406, GP},
	{"pat-good", MSR_PAT, 0x0007040600070406, 0},
	{"sysenter-cs", MSR_SYSENTER_CS, 0x10, 0},
	{"sysenter-esp", MSR_SYSENTER_ESP, CANONICAL, 0},
	{"sysenter-eip", MSR_SYSENTER_EIP, CANONICAL, 0},
	{"lstar", MSR_LSTAR, CANONICAL, 0},
	{"lstar-not-canonical", MSR_LSTAR, NONCANONICAL, GP},
	{"star", MSR_STAR, 0x0018000800000000, 0},
	{"fs-base", MSR_FS_BASE, CANONICAL, 0},
	{"fs-base-not-canonical", MSR_FS_BASE, NONCANONICAL, GP},
	{"gs-base-not-canonical", MSR_GS_BASE, NONCANONICAL, GP},
	{"kernel-gs-base", MSR_KERNEL_GS_BASE, CANONICAL, 0},
	{"kernel-gs-not-canonical", MSR_KERNEL_GS_BASE, NONCANONICAL, GP},
	{"tsc-aux", MSR_TSC_AUX, 0x12345678, 0},
	{"debugctl-lbr-btf", MSR_DEBUGCTL, 3, 0},
	{"debugctl-reserved", MSR_DEBUGCTL, BIT(40), GP},
	{"mtrrcap-read-only", MSR_MTRRCAP, 0, GP},
	{"mtrr-def-type-2", MSR_MTRR_DEF, 0xc02, GP},
	{"mtrr-def-reserved", MSR_MTRR_DEF, 0x1c06, GP},
	{"mtrr-base-type-3", 0x200, 0x03, GP},
	{"mtrr-fixed-type-7", 0x250, 0x0706060606060606, GP},
	{"x2apic-register-in-xapic", 0x80f, 0x1ff, GP},
};

static void write_rules(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];
		u64 old = 0, now = 0;
		char name[48];

		try_rdmsr(r->msr, &old);
		expect_eq(r->name, try_wrmsr(r->msr, r->set), r->want);
		try_rdmsr(r->msr, &now);
		format_text(name, sizeof(name), "%s-value", r->name);
		expect_eq(name, now, r->want ? old : r->set);
		try_wrmsr(r->msr, old);
	}
}

static void read_only_vmx(void)
{
	u64 old;

	if (!cpu_has_vmx()) {
		skip("vmx-capabilities", "no VMX");
		return;
	}
	vmx_enable();
	old = rdmsr(MSR_FEATURE_CONTROL);
	expect_eq("feature-control-locked", old & 5, 5);
	expect_eq("feature-control-write", try_wrmsr(MSR_FEATURE_CONTROL, old ^ 4), GP);
	expect_eq("feature-control-value", rdmsr(MSR_FEATURE_CONTROL), old);
	old = rdmsr(MSR_VMX_BASIC);
	expect_eq("vmx-basic-write", try_wrmsr(MSR_VMX_BASIC, old), GP);
	expect_eq("vmx-basic-value", rdmsr(MSR_VMX_BASIC), old);
}

/* IA32_TSC: what is written is what counts on; IA32_TSC_ADJUST follows by the same amount. */
static void tsc(void)
{
	bool adjust = cpuid(7, 0).ebx & BIT(1);
	u64 before = rdtsc(), old_adjust = adjust ? rdmsr(MSR_TSC_ADJUST) : 0;

	wrmsr(MSR_TSC, before + BIT(40));
	expect_near("tsc-write", rdtsc() - before - BIT(40), 0, BIT(32));
	expect_near("tsc-msr-is-rdtsc", rdmsr(MSR_TSC) - rdtsc() + BIT(31), 0, BIT(31));
	if (adjust) {
		expect_near("tsc-adjust-follows", rdmsr(MSR_TSC_ADJUST) - old_adjust - BIT(40) + BIT(32), 0,
			    BIT(33));
		wrmsr(MSR_TSC_ADJUST, old_adjust);
		expect_near("tsc-follows-adjust", rdtsc() - before, 0, BIT(33));
	} else {
		skip("tsc-adjust", "no IA32_TSC_ADJUST");
	}
}

static void in_ring3(void)
{
	try_rdmsr(MSR_APIC_BASE, NULL);
}

void test_main(void)
{
	register_widths();
	walk();
	write_rules();
	read_only_vmx();
	tsc();
	user_run(in_ring3);
	expect_eq("ring3-faults", trap_last(), GP);
}
