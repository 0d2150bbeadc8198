/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L2's linear translations: after L1 changed a page-table entry behind L2's back, each form of INVVPID,
 * another VPID and no VPID must show the new page; and one VPID number in two VMCSs mixes nothing with L1's
 * own. SDM "Operations that Invalidate Cached Mappings".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: VPID";

#define VA 0x5000000000ul

static u64 page_a, page_b;
static volatile u64 seen;

static void l2_read(void)
{
	seen = *(volatile u64 *)ptr_to(VA);
}

static void l2_read_loop(void)
{
	for (;;)
		l2_call(*(volatile u64 *)ptr_to(VA));
}

static void start(u16 vpid)
{
	page_map(VA, page_a, PTE_RAM);
	l2_prepare(l2_read_loop);
	if (vpid) {
		vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VPID);
		vmwrite(VMCS_VPID, vpid);
	}
}

enum flush { ADDRESS, SINGLE, ALL, RETAINING, NEW_VPID, VPID_OFF };

static void change_and_flush(const char *name, enum flush how)
{
	struct vm_result r;
	char text[40];

	start(5);
	r = l2_launch();
	format_text(text, sizeof(text), "%s-before", name);
	expect_true(text, l2_called(&r, 0xaaaa));
	*page_entry(VA) = page_b | PTE_RAM; /* no INVLPG in L2 */
	if (how <= RETAINING)
		expect_eq(name, invvpid(how, 5, VA), VM_OK);
	else if (how == NEW_VPID)
		vmwrite(VMCS_VPID, 6);
	else
		vmcs_clear_bits(VMCS_PROC2_CTL, PROC2_VPID);
	r = l2_run_past(&r);
	format_text(text, sizeof(text), "%s-after", name);
	expect_true(text, l2_called(&r, 0xbbbb));
}

/* L1 and its L2 map the same linear address to different pages; neither may see the other's. */
static void l1_and_l2_apart(void)
{
	u64 *pml4 = page_alloc(), *own_pml4 = ptr_to(read_cr3()), wrong = 0;
	struct vm_result r;

	memcpy(pml4, own_pml4, PAGE_SIZE);
	page_map(VA, page_a, PTE_RAM);
	{
		/* L2's own tables below this PML4 slot. */
		u64 *pdpt = page_alloc(), *pd = page_alloc(), *pt = page_alloc();

		pt[VA >> 12 & 511] = page_b | PTE_RAM;
		pd[VA >> 21 & 511] = addr_of(pt) | PTE_RAM;
		pdpt[VA >> 30 & 511] = addr_of(pd) | PTE_RAM;
		memcpy(pdpt, ptr_to(own_pml4[0] & ~4095ul), 4 * sizeof(u64));
		pml4[VA >> 39 & 511] = addr_of(pdpt) | PTE_RAM;
	}
	l2_prepare(l2_read_loop);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VPID);
	vmwrite(VMCS_VPID, 1);
	vmwrite(VMCS_GUEST_CR3, addr_of(pml4));
	r = l2_launch();
	for (u32 i = 0; i < 50; i++) {
		wrong += !l2_called(&r, 0xbbbb);
		wrong += *(volatile u64 *)ptr_to(VA) != 0xaaaa;
		r = l2_run_past(&r);
	}
	expect_eq("l1-and-l2-apart", wrong, 0);
}

static void two_vmcss_one_vpid(void)
{
	u64 other = vmcs_alloc();
	struct vm_result r;

	page_map(VA, page_a, PTE_RAM);
	l2_prepare_in(other, l2_read);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VPID);
	vmwrite(VMCS_VPID, 9);
	r = l2_launch();
	expect_eq("first-vmcs-reads", seen, 0xaaaa);
	*page_entry(VA) = page_b | PTE_RAM;
	invvpid(1, 9, 0);
	l2_prepare(l2_read);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VPID);
	vmwrite(VMCS_VPID, 9);
	r = l2_launch();
	expect_done("second-vmcs-run", r);
	expect_eq("second-vmcs-reads", seen, 0xbbbb);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_VPID)) {
		skip("vpid", "not offered");
		return;
	}
	page_a = addr_of(page_alloc());
	page_b = addr_of(page_alloc());
	*(u64 *)ptr_to(page_a) = 0xaaaa;
	*(u64 *)ptr_to(page_b) = 0xbbbb;
	change_and_flush("invvpid-address", ADDRESS);
	change_and_flush("invvpid-single", SINGLE);
	change_and_flush("invvpid-all", ALL);
	change_and_flush("invvpid-retaining", RETAINING);
	change_and_flush("new-vpid", NEW_VPID);
	change_and_flush("vpid-off", VPID_OFF);
	l1_and_l2_apart();
	two_vmcss_one_vpid();
}
