/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MSR lists: loaded at entry, stored and loaded at exit, in order; a bad entry fails the entry with reason 34
 * and its number. SDM "Loading MSRs", "Saving MSRs".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: MSR load and store lists";

struct msr_entry {
	u32 index, reserved;
	u64 value;
};

static struct msr_entry *entry_load, *exit_store, *exit_load;
static volatile u64 seen[2];

static void l2_look(void)
{
	seen[0] = rdmsr(MSR_KERNEL_GS_BASE);
	seen[1] = rdmsr(MSR_LSTAR);
	wrmsr(MSR_KERNEL_GS_BASE, 0x5000);
	wrmsr(MSR_LSTAR, 0x6000);
}

static void prepare(u32 entries, u32 stores, u32 loads)
{
	l2_prepare(l2_look);
	vmwrite(VMCS_ENTRY_MSR_LOAD, addr_of(entry_load));
	vmwrite(VMCS_ENTRY_MSR_LOAD_COUNT, entries);
	vmwrite(VMCS_EXIT_MSR_STORE, addr_of(exit_store));
	vmwrite(VMCS_EXIT_MSR_STORE_COUNT, stores);
	vmwrite(VMCS_EXIT_MSR_LOAD, addr_of(exit_load));
	vmwrite(VMCS_EXIT_MSR_LOAD_COUNT, loads);
}

static void all_three(void)
{
	struct vm_result r;

	wrmsr(MSR_KERNEL_GS_BASE, 0x1000);
	wrmsr(MSR_LSTAR, 0x2000);
	entry_load[0] = (struct msr_entry){MSR_KERNEL_GS_BASE, 0, 0x3000};
	entry_load[1] = (struct msr_entry){MSR_LSTAR, 0, 0x3333};
	entry_load[2] = (struct msr_entry){MSR_LSTAR, 0, 0x4000}; /* the later one wins */
	exit_store[0] = (struct msr_entry){MSR_KERNEL_GS_BASE, 0, 0};
	exit_store[1] = (struct msr_entry){MSR_LSTAR, 0, 0};
	exit_load[0] = (struct msr_entry){MSR_KERNEL_GS_BASE, 0, 0x7000};
	exit_load[1] = (struct msr_entry){MSR_LSTAR, 0, 0x8000};
	prepare(3, 2, 2);
	r = l2_launch();
	expect_done("lists-run", r);
	expect_eq("entry-load-first", seen[0], 0x3000);
	expect_eq("entry-load-order", seen[1], 0x4000);
	expect_eq("exit-store-first", exit_store[0].value, 0x5000);
	expect_eq("exit-store-second", exit_store[1].value, 0x6000);
	expect_eq("exit-load-first", rdmsr(MSR_KERNEL_GS_BASE), 0x7000);
	expect_eq("exit-load-second", rdmsr(MSR_LSTAR), 0x8000);
	expect_eq("entry-list-untouched", entry_load[0].value, 0x3000);
}

struct bad {
	const char *name;
	struct msr_entry entry;
};

static void bad_entries(void)
{
	static const struct bad kinds[] = {
		{"fs-base", {MSR_FS_BASE, 0, 0}},    {"gs-base", {MSR_GS_BASE, 0, 0}},
		{"x2apic-range", {0x808, 0, 0}},     {"reserved-bits", {MSR_LSTAR, 1, 0}},
		{"microcode", {0x79, 0, 0}},         {"bad-value", {MSR_LSTAR, 0, 0x0000800000000000}},
		{"unknown-msr", {0xdeadbeef, 0, 0}}, {"efer-reserved", {MSR_EFER, 0, BIT(1)}},
	};

	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct vm_result r;
		char name[48];

		wrmsr(MSR_KERNEL_GS_BASE, 0x1000);
		seen[0] = 0;
		entry_load[0] = (struct msr_entry){MSR_KERNEL_GS_BASE, 0, 0x3000};
		entry_load[1] = kinds[i].entry;
		exit_load[0] = (struct msr_entry){MSR_KERNEL_GS_BASE, 0, 0x7000};
		prepare(2, 0, 1);
		r = l2_launch();
		format_text(name, sizeof(name), "bad-%s", kinds[i].name);
		expect_exit(name, r, EXIT_ENTRY_FAILED | EXIT_BAD_MSR);
		format_text(name, sizeof(name), "bad-%s-number", kinds[i].name);
		expect_eq(name, r.qual, 2);
		format_text(name, sizeof(name), "bad-%s-l2-did-not-run", kinds[i].name);
		expect_eq(name, seen[0], 0);
		format_text(name, sizeof(name), "bad-%s-exit-list-loaded", kinds[i].name);
		expect_eq(name, rdmsr(MSR_KERNEL_GS_BASE), 0x7000);
	}
}

static void l2_rdtsc(void)
{
	seen[0] = rdtsc();
}

/* IA32_TSC in the store list is L1's time, not L2's (Linux e79f245ddec17). */
static void stored_tsc(void)
{
	struct vm_result r;
	u64 before;

	exit_store[0] = (struct msr_entry){MSR_TSC, 0, 0};
	l2_prepare(l2_rdtsc);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_TSC_OFFSET);
	vmwrite(VMCS_TSC_OFFSET, BIT(40));
	vmwrite(VMCS_EXIT_MSR_STORE, addr_of(exit_store));
	vmwrite(VMCS_EXIT_MSR_STORE_COUNT, 1);
	before = rdtsc();
	r = l2_launch();
	expect_done("tsc-run", r);
	expect_near("tsc-of-l2-has-offset", seen[0] - BIT(40), before, rdtsc());
	expect_near("stored-tsc-has-not", exit_store[0].value, seen[0] - BIT(40), rdtsc());
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	entry_load = page_alloc();
	exit_store = page_alloc();
	exit_load = page_alloc();
	all_three();
	bad_entries();
	stored_tsc();
	wrmsr(MSR_KERNEL_GS_BASE, 0);
	wrmsr(MSR_LSTAR, 0);
}
