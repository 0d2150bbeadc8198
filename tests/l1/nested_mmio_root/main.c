/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A well-formed EPTP, or a table inside it, that lies on a device page: the entry succeeds, and the first
 * access of L2 gives a clean exit to L1. Not for the bare emulator, whose APIC model stops at 64-bit reads.
 * (kvm-unit-tests 1d70eb82.)
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: EPT tables on device pages";

static void l2_leave(void)
{
	l2_call(1);
}

static bool ept_exit(const struct vm_result *r)
{
	return r->kind == VM_EXIT && (r->reason == EXIT_EPT_VIOLATION || r->reason == EXIT_EPT_MISCONFIG);
}

static void root_on(const char *name, u64 page)
{
	struct vm_result r;

	l2_prepare(l2_leave);
	vmwrite(VMCS_EPTP, ept_pointer(page));
	r = l2_launch();
	expect_true(name, ept_exit(&r));
}

static void table_on(const char *name, u64 page)
{
	u64 root = ept_new();
	struct vm_result r;

	*(u64 *)ptr_to(root) = page | EPT_RWX;
	l2_prepare(l2_leave);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	r = l2_launch();
	expect_true(name, ept_exit(&r));
}

void test_main(void)
{
	struct vm_result r;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_EPT)) {
		skip("ept", "not offered");
		return;
	}
	root_on("root-on-apic", 0xfee00000);
	root_on("root-on-ioapic", 0xfec00000);
	root_on("root-on-vga", 0xb8000);
	table_on("table-on-apic", 0xfee00000);
	table_on("table-on-ioapic", 0xfec00000);
	l2_prepare(l2_leave);
	r = l2_launch();
	expect_true("ordinary-l2-still-works", l2_called(&r, 1));
}
