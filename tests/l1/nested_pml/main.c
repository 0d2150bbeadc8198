/* SPDX-License-Identifier: Apache-2.0 */
/* Page-modification logging for L2: addresses of L2, page-aligned or exact, index counting down, exit 62 when
 * it is used up. SDM "Page-Modification Logging". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: page-modification log";

#define GPA   (24ul << 20)
#define PAGES 5

static u64 *log_page;

static void l2_dirty(void)
{
	for (u64 i = 0; i < PAGES; i++)
		*(volatile u64 *)ptr_to(GPA + i * PAGE_SIZE + 8) = i;
}

/* How many log entries name this page; the walk's own writes to page tables are logged as well. */
static u32 logged(u64 page)
{
	u32 n = 0;

	for (u32 i = 0; i < 512; i++)
		n += (log_page[i] & ~4095ul) == page;
	return n;
}

void test_main(void)
{
	u64 eptp, missing = 0;
	struct vm_result r;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_PML | PROC2_EPT) || !(rdmsr(MSR_VMX_EPT_VPID_CAP) & EPT_CAP_AD)) {
		skip("pml", "not offered");
		return;
	}
	log_page = page_alloc();
	eptp = ept_pointer(l2_ept()) | EPTP_AD;
	for (u64 i = 0; i < PAGES; i++)
		*ept_entry(l2_ept(), GPA + i * PAGE_SIZE, PAGE_SIZE) =
			(GPA + i * PAGE_SIZE) | EPT_RWX | EPT_WB;
	l2_prepare(l2_dirty);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_PML);
	vmwrite(VMCS_EPTP, eptp);
	vmwrite(VMCS_PML_ADDRESS, addr_of(log_page));
	vmwrite(VMCS_PML_INDEX, 511);
	invept(2, 0);
	r = l2_launch();
	expect_done("log-run", r);
	for (u64 i = 0; i < PAGES; i++)
		missing += logged(GPA + i * PAGE_SIZE) != 1;
	expect_eq("each-page-once", missing, 0);
	expect_true("index-counted-down", vmread(VMCS_PML_INDEX) <= 511 - PAGES);
	expect_eq("dirty-bit", *ept_entry(l2_ept(), GPA, PAGE_SIZE) & EPT_D, EPT_D);
	memset(log_page, 0, PAGE_SIZE);
	l2_set_entry(l2_dirty);
	r = l2_run();
	expect_eq("dirty-page-not-logged-again", logged(GPA), 0);

	for (u64 i = 0; i < PAGES; i++)
		*ept_entry(l2_ept(), GPA + i * PAGE_SIZE, PAGE_SIZE) &= ~(EPT_A | EPT_D);
	invept(2, 0);
	l2_set_entry(l2_dirty);
	vmwrite(VMCS_PML_INDEX, 1);
	r = l2_run();
	expect_exit("full-exits", r, EXIT_PML_FULL);
	expect_eq("full-index-wraps", vmread(VMCS_PML_INDEX), 0xffff);
	vmwrite(VMCS_PML_INDEX, 511);
	r = l2_run();
	expect_done("full-then-goes-on", r);
}
