/* SPDX-License-Identifier: Apache-2.0 */
/* VM function 0: L2 switches its EPT from a list of L1; a bad entry or index exits with reason 59 and changes
 * nothing. SDM "EPTP Switching". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: EPTP switching";

#define GPA (24ul << 20)

static volatile u64 index, function, before, after;
static volatile u32 outcome;

static void l2_switch_and_read(void)
{
	before = *(volatile u64 *)ptr_to(GPA);
	trap_forget();
	asm volatile(TRY("vmfunc") : : "a"(function), "c"(index) : "memory");
	outcome = trap_last();
	after = *(volatile u64 *)ptr_to(GPA);
}

static u64 *list;
static u64 roots[2];

static struct vm_result run(u64 f, u64 i)
{
	function = f;
	index = i;
	outcome = ~0u;
	l2_prepare(l2_switch_and_read);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VMFUNC);
	vmwrite(VMCS_VMFUNC_CTL, 1);
	vmwrite(VMCS_EPTP_LIST, addr_of(list));
	vmwrite(VMCS_EPTP, ept_pointer(roots[0]));
	return l2_launch();
}

void test_main(void)
{
	struct vm_result r;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_VMFUNC | PROC2_EPT) || !(rdmsr(MSR_VMX_VMFUNC) & 1)) {
		skip("eptp-switching", "not offered");
		return;
	}
	list = page_alloc();
	for (u32 i = 0; i < 2; i++) {
		u64 *page = page_alloc();

		*page = 0x100 + i;
		roots[i] = ept_identity(64ul << 20, PAGE_2M);
		*ept_entry(roots[i], GPA, PAGE_SIZE) = addr_of(page) | EPT_RWX | EPT_WB;
	}
	list[0] = ept_pointer(roots[0]);
	list[3] = ept_pointer(roots[1]);
	list[5] = ept_pointer(roots[1]) | BIT(11);
	r = run(0, 3);
	expect_done("switch-run", r);
	expect_eq("before", before, 0x100);
	expect_eq("after", after, 0x101);
	expect_eq("eptp-field-follows", vmread(VMCS_EPTP), ept_pointer(roots[1]));
	r = run(0, 0x500000003);
	expect_done("only-ecx-counts", r);
	r = run(0, 512);
	expect_exit("index-512", r, EXIT_VMFUNC);
	expect_eq("index-512-keeps-eptp", vmread(VMCS_EPTP), ept_pointer(roots[0]));
	r = run(0, 5);
	expect_exit("bad-entry", r, EXIT_VMFUNC);
	r = run(0, 4);
	expect_exit("empty-entry", r, EXIT_VMFUNC);
	r = run(1, 0);
	expect_exit("function-not-enabled", r, EXIT_VMFUNC);
	r = run(64, 0);
	expect_done("function-64-run", r);
	expect_eq("function-64-undefined", outcome, UD);
}
