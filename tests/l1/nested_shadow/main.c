/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS shadowing: L2's VMREAD and VMWRITE of fields with clear bitmap bits go to the VMCS at the link
 * pointer, the others exit. SDM "VMCS Shadowing". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: VMCS shadowing";

static u8 *read_map, *write_map;
static u64 shadow;
static volatile u64 field, value;
static volatile u32 outcome;

static void l2_vmread(void)
{
	u64 v = 0;

	outcome = vmread_try(field, &v);
	value = v;
}

/* Memory operands are L2's: their addresses go through its tables and L1's EPT. */
static void l2_vmread_to_memory(void)
{
	asm volatile("vmread %1, %0" : "=m"(value) : "r"(field) : "cc", "memory");
}

static void l2_vmwrite_from_memory(void)
{
	asm volatile("vmwrite %0, %1" : : "m"(value), "r"(field) : "cc", "memory");
}

static void l2_vmwrite(void)
{
	outcome = vmwrite_try(field, value);
}

static struct vm_result run(l2_fn *fn, u64 f, u64 v, bool linked)
{
	field = f;
	value = v;
	outcome = ~0u;
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_SHADOW);
	vmwrite(VMCS_VMREAD_BITMAP, addr_of(read_map));
	vmwrite(VMCS_VMWRITE_BITMAP, addr_of(write_map));
	if (linked)
		vmwrite(VMCS_LINK_POINTER, shadow);
	return l2_launch();
}

/* Puts a value into the shadow VMCS as L1 does: make it current, write, clear. */
static void shadow_set(u32 f, u64 v)
{
	vmptrld(shadow);
	vmwrite(f, v);
	vmclear(shadow);
}

static u64 shadow_get(u32 f)
{
	u64 v;

	vmclear(shadow);
	vmptrld(shadow);
	v = vmread(f);
	vmclear(shadow);
	return v;
}

void test_main(void)
{
	struct vm_result r;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_SHADOW)) {
		skip("shadowing", "not offered");
		return;
	}
	read_map = page_alloc();
	write_map = page_alloc();
	shadow = vmcs_alloc();
	*(u32 *)ptr_to(shadow) |= 1u << 31;
	expect_eq("vmclear-shadow", vmclear(shadow), VM_OK);
	shadow_set(VMCS_GUEST_RSP, 0x51);
	r = run(l2_vmread, VMCS_GUEST_RSP, 0, true);
	expect_done("read-no-exit", r);
	expect_eq("read-outcome", outcome, VM_OK);
	expect_eq("read-value", value, 0x51);
	r = run(l2_vmwrite, VMCS_GUEST_RIP, 0x7777, true);
	expect_done("write-no-exit", r);
	expect_eq("write-value", shadow_get(VMCS_GUEST_RIP), 0x7777);
	r = run(l2_vmwrite_from_memory, VMCS_GUEST_CR3, 0x5000, true);
	expect_done("memory-write-no-exit", r);
	r = run(l2_vmread_to_memory, VMCS_GUEST_CR3, 0, true);
	expect_done("memory-read-no-exit", r);
	expect_eq("memory-read-value", value, 0x5000);
	expect_eq("l1-reads-the-same", shadow_get(VMCS_GUEST_CR3), 0x5000);
	r = run(l2_vmwrite, VMCS_EXIT_REASON, 0x1234, true);
	expect_done("information-write-no-exit", r);
	expect_eq("information-value", shadow_get(VMCS_EXIT_REASON), 0x1234);
	r = run(l2_vmread, 0x7ffe, 0, true);
	expect_done("unknown-no-exit", r);
	expect_eq("unknown-outcome", outcome & 0x20000, 0x20000);
	r = run(l2_vmread, 0x681e | BIT(20), 0, true);
	expect_exit("high-bits-exit", r, EXIT_VMREAD);
	read_map[VMCS_GUEST_RSP / 8] |= (u8)(1u << VMCS_GUEST_RSP % 8);
	write_map[VMCS_GUEST_RIP / 8] |= (u8)(1u << VMCS_GUEST_RIP % 8);
	r = run(l2_vmread, VMCS_GUEST_RSP, 0, true);
	expect_exit("read-bit-exits", r, EXIT_VMREAD);
	r = run(l2_vmwrite, VMCS_GUEST_RIP, 0, true);
	expect_exit("write-bit-exits", r, EXIT_VMWRITE);
	r = run(l2_vmread, VMCS_GUEST_RIP, 0, true);
	expect_done("write-bit-does-not-stop-reads", r);
	r = run(l2_vmread, VMCS_GUEST_RIP, 0, false);
	expect_done("no-link-no-exit", r);
	expect_eq("no-link-fails-invalid", outcome, VMFAIL_INVALID);
	vmptrld(shadow);
	r = l2_launch();
	expect_fail("launch-of-shadow", r, FAILED(VMFAIL_INVALID));
}
