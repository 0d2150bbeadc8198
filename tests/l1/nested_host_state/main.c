/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an exit loads: everything the SDM lists under "Loading Host State" must come from the VMCS or be the
 * fixed value, whatever L1 had before and whatever L2 did. (Linux afc8de0118be, Xen 3d605ee737, Hedron
 * d108ab3.)
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: host state after an exit";

static u64 host_rflags, host_dr7, host_fs, host_gs, l2_dr7_seen, l2_gs_seen;
static u16 host_ldt, host_ds, host_ss, host_cs, host_tr;
static struct desc_ptr host_gdt, host_idt;

/* L2 leaves nothing as it was. */
static void l2_change_all(void)
{
	l2_dr7_seen = read_dr7();
	l2_gs_seen = rdmsr(MSR_GS_BASE);
	write_dr7(0x401);
	wrmsr(MSR_FS_BASE, 0x7777000);
	wrmsr(MSR_GS_BASE, 0x8888000);
	wrmsr(MSR_SYSENTER_CS, 0x99);
	wrmsr(MSR_SYSENTER_ESP, 0x9999);
	wrmsr(MSR_SYSENTER_EIP, 0xaaaa);
	write_cr0(read_cr0() ^ CR0_AM);
	write_cr4(read_cr4() | CR4_PGE);
	asm volatile("mov %0, %%ds" : : "r"(0));
	asm volatile("pushf; orl $0x40c01, (%rsp); popf");
	l2_call(1);
}

static void capture(void)
{
	asm volatile("sldt %0" : "=r"(host_ldt));
	asm volatile("mov %%ds, %0" : "=r"(host_ds));
	asm volatile("mov %%ss, %0" : "=r"(host_ss));
	asm volatile("mov %%cs, %0" : "=r"(host_cs));
	host_tr = str();
	host_gdt = sgdt();
	host_idt = sidt();
	host_dr7 = read_dr7();
	host_fs = rdmsr(MSR_FS_BASE);
	host_gs = rdmsr(MSR_GS_BASE);
}

extern void exit_probe(void);
asm(".pushsection .text\n"
    "exit_probe:\n" /* HOST_RIP of this test: flags first, then the ordinary way */
    "pushf\n"
    "popq host_rflags_raw\n"
    "jmp l2_exit\n"
    ".popsection");
u64 host_rflags_raw;

void test_main(void)
{
	struct vm_result r;
	u64 cr0, cr4;

	if (!vmx_available())
		return;
	l2_prepare(l2_change_all);
	vmwrite(VMCS_HOST_RIP, addr_of((void *)(uintptr_t)exit_probe));
	vmwrite(VMCS_HOST_SYSENTER_CS, 0x8);
	vmwrite(VMCS_HOST_SYSENTER_ESP, CR0_PG);
	vmwrite(VMCS_HOST_SYSENTER_EIP, 0x1234);
	vmwrite(VMCS_HOST_FS_BASE, 0x111000);
	vmwrite(VMCS_HOST_GS_BASE, 0x222000);
	vmwrite(VMCS_HOST_FS_SEL, SEL_DATA);
	vmwrite(VMCS_GUEST_GS_BASE, 0x333000);
	vmwrite(VMCS_GUEST_DR7, 0x455);
	lgdt((struct desc_ptr){0x40 + 16 * MAX_CPUS - 1, sgdt().base});
	lidt((struct desc_ptr){0xfff, sidt().base});
	write_dr7(0x455);
	cr0 = read_cr0();
	cr4 = read_cr4();
	asm volatile("pushf; orl $0x40001, (%rsp); popf");
	r = l2_launch();
	capture();
	host_rflags = host_rflags_raw;

	expect_true("vmcall", l2_called(&r, 1));
	expect_eq("l2-dr7-from-vmcs", l2_dr7_seen, 0x455);
	expect_eq("l2-gs-from-vmcs", l2_gs_seen, 0x333000);
	expect_eq("rflags", host_rflags, 2);
	expect_eq("dr7", host_dr7, 0x400);
	expect_eq("ldtr", host_ldt, 0);
	expect_eq("cs", host_cs, SEL_CODE64);
	expect_eq("ss", host_ss, SEL_DATA);
	expect_eq("ds", host_ds, SEL_DATA);
	expect_eq("tr", host_tr, SEL_TSS);
	expect_eq("fs-base", host_fs, 0x111000);
	expect_eq("gs-base", host_gs, 0x222000);
	expect_eq("gdt-limit", host_gdt.limit, 0xffff);
	expect_eq("idt-limit", host_idt.limit, 0xffff);
	expect_eq("gdt-base", host_gdt.base, addr_of(gdt));
	expect_eq("cr0", read_cr0(), cr0);
	expect_eq("cr4", read_cr4(), cr4);
	expect_eq("sysenter-cs", rdmsr(MSR_SYSENTER_CS), 0x8);
	expect_eq("sysenter-esp", rdmsr(MSR_SYSENTER_ESP), CR0_PG);
	expect_eq("sysenter-eip", rdmsr(MSR_SYSENTER_EIP), 0x1234);

	expect_eq("saved-dr7", vmread(VMCS_GUEST_DR7), 0x401);
	expect_eq("saved-fs-base", vmread(VMCS_GUEST_FS_BASE), 0x7777000);
	expect_eq("saved-gs-base", vmread(VMCS_GUEST_GS_BASE), 0x8888000);
	expect_eq("saved-sysenter-esp", vmread(VMCS_GUEST_SYSENTER_ESP), 0x9999);
	expect_eq("saved-cr0-am", (vmread(VMCS_GUEST_CR0) ^ cr0) & CR0_AM, CR0_AM);
	expect_eq("saved-cr4-pge", vmread(VMCS_GUEST_CR4) & CR4_PGE, CR4_PGE);
	expect_eq("saved-ds", vmread(VMCS_GUEST_DS_SEL), 0);
	expect_eq("saved-rflags-ac-df", vmread(VMCS_GUEST_RFLAGS) & 0x40400, 0x40400);
	expect_eq("saved-efer", vmread(VMCS_GUEST_EFER), rdmsr(MSR_EFER));
	wrmsr(MSR_FS_BASE, 0);
	wrmsr(MSR_GS_BASE, 0);
}
