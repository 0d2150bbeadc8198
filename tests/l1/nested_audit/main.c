/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's EPT may name any address; L2 must reach nothing that L1 itself cannot. Well-formed pointers to
 * nowhere, to devices and to junk must give a clean exit or what L1 would see there, never harm below (ACRN
 * 15e6c5b9c, kvm-unit-tests e87078ea).
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: EPT entries that point elsewhere";

#define GPA (24ul << 20)

static volatile u64 seen;
static volatile u32 seen32;

static void l2_read(void)
{
	seen = *(volatile u64 *)ptr_to(GPA);
}

static void l2_write(void)
{
	*(volatile u64 *)ptr_to(GPA) = 0x4e6964757321;
}

static void l2_execute(void)
{
	((void (*)(void))(uintptr_t)GPA)();
}

static void l2_read_apic(void)
{
	seen32 = *(volatile u32 *)ptr_to(0xfee00030);
}

static void l2_read_ioapic(void)
{
	*(volatile u32 *)ptr_to(acpi.ioapic_base) = 1;
	seen32 = *(volatile u32 *)ptr_to(acpi.ioapic_base + 0x10);
}

static bool clean(const struct vm_result *r)
{
	return r->kind == VM_EXIT &&
	       (l2_called(r, L2_DONE) || r->reason == EXIT_EPT_VIOLATION || r->reason == EXIT_EPT_MISCONFIG ||
		r->reason == EXIT_EXCEPTION || r->reason == EXIT_TRIPLE_FAULT);
}

static void point_at(const char *name, u64 target)
{
	char text[48];
	struct vm_result r;
	u64 l1_sees;

	page_map(0x5000000000, target, PTE_RAM);
	l1_sees = *(volatile u64 *)ptr_to(0x5000000000);
	*ept_entry(l2_ept(), GPA, PAGE_SIZE) = target | EPT_RWX | EPT_WB;
	invept(2, 0);
	l2_prepare(l2_read);
	r = l2_launch();
	format_text(text, sizeof(text), "read-%s", name);
	expect_true(text, clean(&r));
	format_text(text, sizeof(text), "read-%s-same-as-l1", name);
	expect_true(text, !l2_called(&r, L2_DONE) || seen == l1_sees);
	l2_prepare(l2_write);
	r = l2_launch();
	format_text(text, sizeof(text), "write-%s", name);
	expect_true(text, clean(&r));
	l2_prepare(l2_execute);
	vmwrite(VMCS_EXCEPTION_BITMAP, ~0u);
	r = l2_launch();
	format_text(text, sizeof(text), "execute-%s", name);
	expect_true(text, clean(&r));
}

static void table_at(const char *name, u64 target)
{
	u64 *pde = ept_entry(l2_ept(), GPA, PAGE_2M), old = *pde;
	struct vm_result r;

	*pde = target | EPT_RWX;
	invept(2, 0);
	l2_prepare(l2_read);
	vmwrite(VMCS_EXCEPTION_BITMAP, ~0u);
	r = l2_launch();
	*pde = old;
	invept(2, 0);
	expect_true(name, clean(&r));
}

static void root_at(const char *name, u64 target, u32 reason)
{
	struct vm_result r;

	l2_prepare(l2_read);
	vmwrite(VMCS_EPTP, ept_pointer(target));
	r = l2_launch();
	if (reason)
		expect_exit(name, r, reason);
	else
		expect_true(name, clean(&r));
}

static void devices_of_l1(void)
{
	struct vm_result r;

	l2_prepare(l2_read_apic);
	r = l2_launch();
	expect_done("apic-read-run", r);
	expect_eq("apic-as-l1-sees-it", seen32, lapic_read(APIC_VERSION));
	l2_prepare(l2_read_ioapic);
	r = l2_launch();
	expect_done("ioapic-read-run", r);
	expect_eq("ioapic-as-l1-sees-it", seen32, ioapic_read(1));
}

void test_main(void)
{
	u64 *ones, zeros;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_EPT)) {
		skip("ept", "not offered");
		return;
	}
	ones = page_alloc();
	memset(ones, 0xff, PAGE_SIZE);
	zeros = addr_of(page_alloc());
	point_at("above-ram", 0x80000000);
	point_at("below-4g", 0xd0000000);
	point_at("far", BIT(phys_bits() - 1) + 0x100000);
	point_at("last-page", BIT(phys_bits()) - PAGE_SIZE);
	table_at("table-above-ram", 0x80000000);
	table_at("table-far", BIT(phys_bits()) - PAGE_SIZE);
	table_at("table-of-ones", addr_of(ones));
	root_at("root-of-zeros", zeros, EXIT_EPT_VIOLATION);
	root_at("root-of-ones", addr_of(ones), EXIT_EPT_MISCONFIG);
	root_at("root-above-ram", 0x80000000, 0);
	root_at("root-far", BIT(phys_bits()) - PAGE_SIZE, 0);
	devices_of_l1();
}
