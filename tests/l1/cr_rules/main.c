/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MOV to CR0, CR3, CR4 and CR8: architectural faults, and the fixed bits that hold in VMX operation only.
 * SDM "Restrictions on VMX Operation", "MOV - Move to/from Control Registers".
 */
#include "l1.h"
#include "vmx.h"

const char test_title[] = "control register rules";

static void cr0_rules(void)
{
	u64 cr0 = read_cr0();

	expect_eq("pg-without-pe", try_write_cr0(cr0 & ~CR0_PE), GP);
	expect_eq("nw-without-cd", try_write_cr0((cr0 & ~CR0_CD) | CR0_NW), GP);
	expect_eq("high-bits", try_write_cr0(cr0 | BIT(32)), GP);
	expect_eq("cr0-unchanged", read_cr0(), cr0);
	expect_eq("reserved-low-bits-ignored", try_write_cr0(cr0 | BIT(10)), 0);
	expect_eq("et-always-set", try_write_cr0(cr0 & ~BIT(4)), 0);
	expect_eq("et-value", read_cr0() & BIT(4), BIT(4));
	write_cr0(cr0 ^ CR0_AM);
	expect_eq("am-toggles", read_cr0() ^ cr0, CR0_AM);
	write_cr0(cr0 | CR0_TS);
	expect_eq("ts-set", read_cr0() & CR0_TS, CR0_TS);
	asm volatile("clts");
	expect_eq("clts", read_cr0() & CR0_TS, 0);
	asm volatile("lmsw %w0" : : "r"((u32)(cr0 | CR0_TS)));
	expect_eq("lmsw-sets-ts", read_cr0() & CR0_TS, CR0_TS);
	asm volatile("lmsw %w0" : : "r"(0));
	expect_eq("lmsw-keeps-pe", read_cr0() & CR0_PE, CR0_PE);
	write_cr0(cr0);
	write_cr0(cr0 & ~CR0_NE);
	expect_eq("ne-can-be-cleared", read_cr0() & CR0_NE, 0);
	write_cr0(cr0);
}

static void cr3_rules(void)
{
	u64 cr3 = read_cr3();

	expect_eq("cr3-too-wide", try_write_cr3(cr3 | BIT(phys_bits())), GP);
	expect_eq("cr3-bit-63", try_write_cr3(cr3 | BIT(63)), GP);
	expect_eq("cr3-pwt-pcd", try_write_cr3(cr3 | 0x18), 0);
	expect_eq("cr3-value", read_cr3(), cr3 | 0x18);
	write_cr3(cr3);
}

static void cr4_rules(void)
{
	u64 cr4 = read_cr4();

	expect_eq("pae-off-in-long-mode", try_write_cr4(cr4 & ~CR4_PAE), GP);
	expect_eq("cr4-unchanged", read_cr4(), cr4);
	write_cr4(cr4 ^ CR4_PGE);
	expect_eq("pge-toggles", read_cr4() ^ cr4, CR4_PGE);
	write_cr4(cr4);
	if (cpuid(1, 0).ecx & BIT(17)) {
		write_cr4(cr4 | CR4_PCIDE);
		expect_eq("cr3-pcid", try_write_cr3(read_cr3() | 0x123), 0);
		expect_eq("cr3-pcid-value", read_cr3() & 0xfff, 0x123);
		expect_eq("cr3-no-flush-bit-is-dropped", try_write_cr3(read_cr3() | BIT(63)), 0);
		expect_eq("cr3-no-flush-value", read_cr3() >> 63, 0);
		expect_eq("pg-off-with-pcide", try_write_cr0(read_cr0() & ~CR0_PG), GP);
		write_cr3(read_cr3() & ~0xffful);
		write_cr4(cr4);
		write_cr3(read_cr3() | 8);
		expect_eq("pcide-needs-cr3-low-zero", try_write_cr4(cr4 | CR4_PCIDE), GP);
		write_cr4(cr4);
		write_cr3(read_cr3() & ~0xffful);
	}
}

static u32 try_write_cr8(u64 v)
{
	trap_forget();
	asm volatile(TRY("mov %0, %%cr8") : : "r"(v) : "memory");
	return trap_last();
}

static void cr8_rules(void)
{
	expect_eq("cr8-bits-above-3", try_write_cr8(16), GP);
	write_cr8(9);
	expect_eq("cr8-is-tpr", lapic_read(APIC_TPR), 0x90);
	lapic_write(APIC_TPR, 0x35);
	expect_eq("tpr-is-cr8", read_cr8(), 3);
	lapic_write(APIC_TPR, 0);
}

/* Outside VMX operation VMXE is free; inside, the fixed bits hold and everything else still moves. */
static void in_vmx_operation(void)
{
	u64 cr0, cr4;

	write_cr4(read_cr4() | CR4_VMXE);
	write_cr4(read_cr4() & ~CR4_VMXE);
	expect_eq("vmxe-free-outside", read_cr4() & CR4_VMXE, 0);
	expect_true("vmx-on", vmx_start());
	cr0 = read_cr0();
	cr4 = read_cr4();
	expect_eq("vmx-ne-fixed", try_write_cr0(cr0 & ~CR0_NE), GP);
	expect_eq("vmx-pg-fixed", try_write_cr0(cr0 & ~CR0_PG), GP);
	expect_eq("vmx-pe-fixed", try_write_cr0(cr0 & ~(CR0_PG | CR0_PE)), GP);
	expect_eq("vmx-vmxe-fixed", try_write_cr4(cr4 & ~CR4_VMXE), GP);
	expect_eq("vmx-cr0-unchanged", read_cr0(), cr0);
	expect_eq("vmx-cr4-unchanged", read_cr4(), cr4);
	write_cr0(cr0 ^ CR0_AM);
	expect_eq("vmx-am-free", read_cr0() ^ cr0, CR0_AM);
	write_cr0(cr0);
	write_cr4(cr4 ^ CR4_PGE);
	expect_eq("vmx-pge-free", read_cr4() ^ cr4, CR4_PGE);
	write_cr4(cr4);
	vmxoff();
	write_cr0(cr0 & ~CR0_NE);
	expect_eq("ne-free-again", read_cr0() & CR0_NE, 0);
	write_cr0(cr0);
}

void test_main(void)
{
	lapic_enable();
	cr0_rules();
	cr3_rules();
	cr4_rules();
	cr8_rules();
	if (vmx_available())
		in_vmx_operation();
}
