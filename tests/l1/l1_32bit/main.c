/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An L1 in 32-bit protected mode with 32-bit paging: VMXON, field halves, entry into a 32-bit L2 and the exit
 * back to a 32-bit host. The program leaves 64-bit mode for it and returns. SDM "Checks Related to
 * Address-Space Size".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: 32-bit L1";

/* What the 32-bit code is given and what it leaves. */
struct exchange {
	u32 cr3_32, cr3_64;
	u64 vmxon_region, vmcs;
	u32 flags_vmxon, flags_vmptrld, reason, low, high, unused[2], flags_exit;
};

extern struct exchange x;
struct exchange x;
extern const u8 legacy[], legacy_exit[], legacy_l2[];

/* Entered by compat_call(): first out of long mode, at the end back into it. */
asm(".pushsection .text\n"
    ".code32\n"
    "legacy:\n"
    "pushal\n"
    "mov %cr0, %eax\n"
    "and $0x7fffffff, %eax\n"
    "mov %eax, %cr0\n" /* paging off leaves IA-32e mode */
    "mov $0xc0000080, %ecx\n"
    "rdmsr\n"
    "and $0xfffffeff, %eax\n"
    "wrmsr\n"
    "mov %cr4, %eax\n"
    "and $0xffffffdf, %eax\n"
    "or $0x10, %eax\n" /* PSE instead of PAE */
    "mov %eax, %cr4\n"
    "mov x, %eax\n"
    "mov %eax, %cr3\n"
    "mov %cr0, %eax\n"
    "or $0x80000000, %eax\n"
    "mov %eax, %cr0\n"

    "vmxon x+8\n"
    "pushfl\n"
    "popl x+24\n"
    "vmptrld x+16\n"
    "pushfl\n"
    "popl x+28\n"
    "mov $0x2010, %edx\n" /* TSC offset: a 64-bit field in two halves */
    "mov $0x11112222, %eax\n"
    "vmwrite %eax, %edx\n"
    "mov $0x2011, %ebx\n"
    "mov $0x33334444, %eax\n"
    "vmwrite %eax, %ebx\n"
    "vmread %edx, %eax\n"
    "mov %eax, x+36\n"
    "vmread %ebx, %eax\n"
    "mov %eax, x+40\n"
    "mov $0x6c14, %edx\n" /* HOST_RSP: natural width */
    "vmwrite %esp, %edx\n"
    "vmlaunch\n"
    "movl $0xffffffff, x+32\n"
    "jmp 1f\n"
    "legacy_exit:\n"
    "pushfl\n"
    "popl x+52\n"
    "mov $0x4402, %edx\n"
    "vmread %edx, %eax\n"
    "mov %eax, x+32\n"
    "1: vmxoff\n"

    "mov %cr0, %eax\n"
    "and $0x7fffffff, %eax\n"
    "mov %eax, %cr0\n"
    "mov %cr4, %eax\n"
    "and $0xffffffef, %eax\n"
    "or $0x20, %eax\n"
    "mov %eax, %cr4\n"
    "mov x+4, %eax\n"
    "mov %eax, %cr3\n"
    "mov $0xc0000080, %ecx\n"
    "rdmsr\n"
    "or $0x100, %eax\n"
    "wrmsr\n"
    "mov %cr0, %eax\n"
    "or $0x80000000, %eax\n"
    "mov %eax, %cr0\n"
    "popal\n"
    "lret\n"
    "legacy_l2:\n"
    "mov $0x32, %eax\n"
    "cpuid\n"
    "hlt\n"
    ".code64\n"
    ".popsection");

_Static_assert(offsetof(struct exchange, vmxon_region) == 8 && offsetof(struct exchange, flags_exit) == 52,
	       "named by number above");

static u32 tables_32bit(void)
{
	u32 *directory = page_alloc();

	for (u32 i = 0; i < 1024; i++)
		directory[i] = i << 22 | 0x83;
	return (u32)addr_of(directory);
}

/* The VMCS is filled in 64-bit mode and cleared, so that its content is in memory for the 32-bit life. */
static void prepare(void)
{
	l2_prepare(NULL);
	l2_enter_protected((u32)addr_of(legacy_l2), x.cr3_32, true, false);
	vmcs_clear_bits(VMCS_EXIT_CTL, EXIT_HOST64 | EXIT_LOAD_EFER | EXIT_SAVE_EFER);
	vmcs_clear_bits(VMCS_ENTRY_CTL, ENTRY_LOAD_EFER);
	vmwrite(VMCS_HOST_CR3, x.cr3_32);
	vmwrite(VMCS_HOST_CR4, (read_cr4() & ~CR4_PAE) | CR4_PSE);
	vmwrite(VMCS_HOST_CS_SEL, SEL_CODE32);
	vmwrite(VMCS_HOST_RIP, addr_of(legacy_exit));
	vmclear(l2_vmcs());
	x.vmxon_region = vmx_region();
	x.vmcs = l2_vmcs();
	vmxoff();
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	x.cr3_32 = tables_32bit();
	x.cr3_64 = (u32)read_cr3();
	prepare();
	cli();
	compat_call(legacy);
	expect_eq("vmxon-flags", x.flags_vmxon & 0x8d5, 0);
	expect_eq("vmptrld-flags", x.flags_vmptrld & 0x8d5, 0);
	expect_eq("low-half", x.low, 0x11112222);
	expect_eq("high-half", x.high, 0x33334444);
	expect_eq("cpuid-exit-to-32-bit-host", x.reason, EXIT_CPUID);
	expect_eq("host-flags", x.flags_exit, 2);
	expect_eq("back-in-64-bit-mode", rdmsr(MSR_EFER) & EFER_LMA, EFER_LMA);
	expect_true("vmx-still-usable", vmx_start());
	expect_eq("field-seen-by-64-bit-l1", (vmptrld(l2_vmcs()), vmread(VMCS_TSC_OFFSET)),
		  0x3333444411112222);
}
