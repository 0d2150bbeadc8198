/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L2 in every processor mode: real mode and flat 32-bit code without paging (unrestricted guest), 32-bit
 * paging, PAE paging, and an L2 that takes itself from real mode to 64-bit mode. Each stub does one piece of
 * arithmetic and calls out by CPUID.
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: processor modes of L2";

#define LOW_PAGE 0x9000

extern const u8 real_stub[], real_stub_end[], flat_stub[], climb_stub[], climb_stub_end[];

/* Real mode: DS:[100h] plus one, then CPUID as the way out; then HLT. */
asm(".pushsection .text\n"
    ".code16\n"
    "real_stub:\n"
    "mov 0x100, %ax\n"
    "inc %ax\n"
    "mov %ax, 0x102\n"
    "mov $0x5ea1, %eax\n"
    "cpuid\n"
    "int $0x21\n"
    "hlt\n"
    "real_stub_end:\n"
    ".code32\n"
    "flat_stub:\n"
    "mov %edi, %eax\n"
    "add $5, %eax\n"
    "push %eax\n"
    "pop %esi\n"
    "cpuid\n"
    "hlt\n"
    ".code64\n"
    ".popsection");

/* Real mode to long mode in one go, as firmware and boot loaders do. EBX = CR3 of the 64-bit world, all below
 * 4 GiB. */
asm(".pushsection .text\n"
    ".code16\n"
    "climb_stub:\n"
    "cli\n"
    "lgdtl %cs:climb_gdt - climb_stub\n"
    "mov %cr4, %eax\n"
    "or $0x20, %eax\n"
    "mov %eax, %cr4\n"
    "mov %ebx, %cr3\n"
    "mov $0xc0000080, %ecx\n"
    "rdmsr\n"
    "or $0x900, %eax\n"
    "wrmsr\n"
    "mov %cr0, %eax\n"
    "or $0x80000001, %eax\n"
    "mov %eax, %cr0\n"
    "ljmpl $0x08, $climbed\n"
    ".align 4\n"
    "climb_gdt:\n"
    ".word 0x3f\n"
    ".long gdt\n"
    "climb_stub_end:\n"
    ".code64\n"
    "climbed:\n"
    "mov $0x10, %eax\n"
    "mov %eax, %ss\n"
    "mov $0x123456789abcdef0, %rsi\n"
    "mov $0x64, %eax\n"
    "cpuid\n"
    "hlt\n"
    ".popsection");

static void real_mode(void)
{
	volatile u16 *data = ptr_to(LOW_PAGE + 0x100);
	u16 *ivt = ptr_to(0x21 * 4), old_ip = ivt[0], old_cs = ivt[1];
	struct vm_result r;

	memcpy(ptr_to(LOW_PAGE), real_stub, (size_t)(real_stub_end - real_stub));
	data[0] = 0x41;
	ivt[0] = (u16)(real_stub_end - real_stub - 1); /* the HLT */
	ivt[1] = LOW_PAGE >> 4;
	l2_prepare(NULL);
	l2_enter_real_mode(LOW_PAGE >> 4, 0);
	r = l2_launch();
	expect_exit("real-cpuid", r, EXIT_CPUID);
	expect_eq("real-eax", (u32)l2_regs()->rax, 0x5ea1);
	expect_eq("real-data", data[1], 0x42);
	r = l2_run_past(&r);
	expect_exit("real-int-through-ivt", r, EXIT_HLT);
	expect_eq("real-int-cs", vmread(VMCS_GUEST_CS_SEL), LOW_PAGE >> 4);
	expect_eq("real-cr0-pe", vmread(VMCS_GUEST_CR0) & CR0_PE, 0);
	ivt[0] = old_ip;
	ivt[1] = old_cs;
}

static void flat(const char *mode, u64 cr3, bool paging, bool pae)
{
	struct vm_result r;
	char name[48];

	l2_prepare(NULL);
	l2_enter_protected((u32)addr_of(flat_stub), cr3, paging, pae);
	l2_regs()->rdi = 0xffffffff00000037;
	r = l2_launch();
	format_text(name, sizeof(name), "%s-cpuid", mode);
	expect_exit(name, r, EXIT_CPUID);
	format_text(name, sizeof(name), "%s-sum", mode);
	expect_eq(name, (u32)l2_regs()->rsi, 0x3c);
	r = l2_run_past(&r);
	format_text(name, sizeof(name), "%s-hlt", mode);
	expect_exit(name, r, EXIT_HLT);
}

static u64 tables_32bit(void)
{
	u32 *directory = page_alloc();

	for (u32 i = 0; i < 1024; i++)
		directory[i] = i << 22 | 0x83;
	return addr_of(directory);
}

static u64 tables_pae(void)
{
	u64 *pdpt = page_alloc();

	for (u32 i = 0; i < 4; i++) {
		u64 *directory = page_alloc();

		for (u64 j = 0; j < 512; j++)
			directory[j] = ((u64)i << 30 | j << 21) | 0x83;
		pdpt[i] = addr_of(directory) | 1;
	}
	return addr_of(pdpt);
}

static void pae(void)
{
	u64 cr3 = tables_pae(), *pdpt = ptr_to(cr3);
	struct vm_result r;

	l2_prepare(NULL);
	for (u32 i = 0; i < 4; i++)
		vmwrite(VMCS_GUEST_PDPTE0 + 2 * i, pdpt[i]);
	l2_enter_protected((u32)addr_of(flat_stub), cr3, true, true);
	l2_regs()->rdi = 0x37;
	r = l2_launch();
	expect_exit("pae-cpuid", r, EXIT_CPUID);
	expect_eq("pae-sum", (u32)l2_regs()->rsi, 0x3c);
	expect_eq("pae-saved-pdpte", vmread(VMCS_GUEST_PDPTE0), pdpt[0]);
	r = l2_run_past(&r);
	expect_exit("pae-hlt", r, EXIT_HLT);

	/* SDM "Checks on Guest Page-Directory-Pointer-Table Entries": reserved bit in a present entry. */
	l2_prepare(NULL);
	for (u32 i = 0; i < 4; i++)
		vmwrite(VMCS_GUEST_PDPTE0 + 2 * i, pdpt[i]);
	vmwrite(VMCS_GUEST_PDPTE2, pdpt[2] | 2);
	l2_enter_protected((u32)addr_of(flat_stub), cr3, true, true);
	r = l2_launch();
	expect_exit("pae-bad-pdpte", r, EXIT_ENTRY_FAILED | EXIT_BAD_GUEST);
	expect_eq("pae-bad-pdpte-qualification", r.qual, 2);
}

static void climb(void)
{
	struct vm_result r;

	memcpy(ptr_to(LOW_PAGE), climb_stub, (size_t)(climb_stub_end - climb_stub));
	l2_prepare(NULL);
	l2_enter_real_mode(LOW_PAGE >> 4, 0);
	l2_regs()->rbx = read_cr3();
	r = l2_launch();
	expect_exit("climb-cpuid", r, EXIT_CPUID);
	expect_eq("climb-64-bit-register", l2_regs()->rsi, 0x123456789abcdef0);
	expect_eq("climb-efer-lma", vmread(VMCS_GUEST_EFER) & (EFER_LMA | EFER_LME), EFER_LMA | EFER_LME);
	expect_eq("climb-entry-control-follows", vmread(VMCS_ENTRY_CTL) & ENTRY_IA32E, ENTRY_IA32E);
	expect_eq("climb-cs-l", vmread(VMCS_GUEST_CS_AR) & 0x2000, 0x2000);
	r = l2_run_past(&r);
	expect_exit("climb-hlt", r, EXIT_HLT);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	vmx_start();
	flat("paging-32", tables_32bit(), true, false);
	pae();
	if (!proc2_has(PROC2_UNRESTRICTED)) {
		skip("unrestricted", "not offered");
		return;
	}
	flat("no-paging", 0, false, false);
	real_mode();
	climb();
}
