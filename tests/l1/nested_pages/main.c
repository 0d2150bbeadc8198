/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that VMCS fields name: with the control off any value is fine; with it on a well-formed address
 * without memory behind it must give a clean answer, whatever it is, and the next good entry must work (Xen
 * 5dbbaa0fe1, e02b14e531).
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: pages named by the VMCS";

static void l2_leave(void)
{
	rdmsr(MSR_LSTAR);
	l2_call(1);
}

static void good_entry(const char *name)
{
	struct vm_result r;

	l2_prepare(l2_leave);
	r = l2_launch();
	expect_true(name, l2_called(&r, 1));
}

static void all_off(u64 junk, const char *name)
{
	static const u16 fields[] = {VMCS_IO_BITMAP_A,    VMCS_IO_BITMAP_B,    VMCS_EXIT_MSR_STORE,
				     VMCS_EXIT_MSR_LOAD,  VMCS_ENTRY_MSR_LOAD, VMCS_VIRTUAL_APIC,
				     VMCS_APIC_ACCESS,    VMCS_PML_ADDRESS,    VMCS_VMREAD_BITMAP,
				     VMCS_VMWRITE_BITMAP, VMCS_VE_INFO,        VMCS_EPTP_LIST,
				     VMCS_POSTED_DESC};
	struct vm_result r;

	l2_prepare(l2_leave);
	for (u32 i = 0; i < ARRAY_SIZE(fields); i++)
		vmwrite_try(fields[i], junk);
	r = l2_launch();
	expect_true(name, l2_called(&r, 1));
}

struct page_use {
	const char *name;
	u32 field, field2, control;
	u64 bits;
	u32 count_field;
};

static const struct page_use uses[] = {
	{"msr-bitmap", VMCS_MSR_BITMAP, 0, VMCS_PROC_CTL, PROC_MSR_BITMAP, 0},
	{"io-bitmaps", VMCS_IO_BITMAP_A, VMCS_IO_BITMAP_B, VMCS_PROC_CTL, PROC_IO_BITMAPS, 0},
	{"virtual-apic", VMCS_VIRTUAL_APIC, 0, VMCS_PROC_CTL, PROC_TPR_SHADOW, 0},
	{"apic-access", VMCS_APIC_ACCESS, 0, VMCS_PROC2_CTL, PROC2_APIC_ACCESS, 0},
	{"entry-msr-load", VMCS_ENTRY_MSR_LOAD, 0, 0, 0, VMCS_ENTRY_MSR_LOAD_COUNT},
};

static void unbacked(const struct page_use *use, u64 address, const char *where)
{
	struct vm_result r;
	char name[48];

	format_text(name, sizeof(name), "%s-%s", use->name, where);
	if (use->control && !ctl_has(use->control, use->bits)) {
		skip(name, "control not offered");
		return;
	}
	l2_prepare(l2_leave);
	vmwrite(VMCS_EXCEPTION_BITMAP, ~0u);
	if (use->control)
		vmcs_set_bits(use->control, use->bits);
	vmwrite(use->field, address);
	if (use->field2)
		vmwrite(use->field2, address);
	if (use->count_field)
		vmwrite(use->count_field, 1);
	if (use->bits == PROC_TPR_SHADOW)
		vmwrite(VMCS_TPR_THRESHOLD, 0);
	r = l2_launch();
	expect_true(name, r.kind == VM_EXIT || r.fail == VMFAIL_VALID(7));
	format_text(name, sizeof(name), "%s-%s-then-good", use->name, where);
	good_entry(name);
}

/* The VMCS itself, and the VMXON region, where there is no memory. */
static void regions(void)
{
	u64 pointer = 0;

	expect_eq("vmptrld-above-ram", vmptrld(0x80000000), VMFAIL_VALID(11));
	vmptrst(&pointer);
	expect_eq("vmptrld-above-ram-keeps-current", pointer, l2_vmcs());
	vmclear(0x80000000);
	good_entry("vmclear-above-ram-then-good");
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	all_off(~0ul, "off-all-ones");
	all_off(0, "off-zeros");
	all_off(0x80000000, "off-above-ram");
	for (u32 i = 0; i < ARRAY_SIZE(uses); i++) {
		unbacked(&uses[i], 0x80000000, "above-ram");
		unbacked(&uses[i], BIT(phys_bits()) - PAGE_SIZE, "last-page");
	}
	regions();
}
