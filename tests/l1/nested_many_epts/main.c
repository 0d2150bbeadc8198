/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many EPT roots with sparse and aliased maps: whatever L0 keeps for them must be recycled, never run out,
 * and stay right (ACRN's pool that was "not an accurate upper bound"). SDM "EPT Translation Mechanism".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: many EPT roots";

#define ROOTS    24
#define POINTS   96
#define FAR_BASE (1ul << 32)

static u64 roots[ROOTS], shared_pd, shared_pt, data_page, first, step;
static volatile u64 sum;

/* L2 runs on page tables that map the far window one to one in 1 GiB pages. */
static void l2_touch_points(void)
{
	u64 s = 0;

	for (u64 i = 0; i < POINTS; i++)
		s += *(volatile u64 *)ptr_to(first + i * step);
	sum = s;
}

static void make_root(u32 n)
{
	u64 *pdpt;

	roots[n] = ept_identity(64ul << 20, PAGE_2M);
	pdpt = ptr_to(*(u64 *)ptr_to(roots[n]) & ~4095ul);
	for (u64 g = 4; g < 512; g++)
		pdpt[g] = shared_pd | EPT_RWX;
}

static void map_window_linear(void)
{
	u64 *pdpt = ptr_to(page_pml4[0] & ~4095ul);

	for (u64 g = 4; g < 512; g++)
		pdpt[g] = g << 30 | PTE_RAM | PTE_PS;
}

static u64 run(u32 root, u64 from, u64 stride)
{
	struct vm_result r;

	first = from;
	step = stride;
	sum = 0;
	vmwrite(VMCS_EPTP, ept_pointer(roots[root]));
	l2_set_entry(l2_touch_points);
	r = l2_run();
	return l2_called(&r, L2_DONE) ? sum : ~0ul;
}

void test_main(void)
{
	u32 wrong = 0;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_EPT)) {
		skip("ept", "not offered");
		return;
	}
	data_page = addr_of(page_alloc());
	for (u32 i = 0; i < 512; i++)
		((u64 *)ptr_to(data_page))[i] = 3;
	shared_pd = addr_of(page_alloc());
	shared_pt = addr_of(page_alloc());
	for (u32 i = 0; i < 512; i++) {
		((u64 *)ptr_to(shared_pt))[i] = data_page | EPT_RWX | EPT_WB;
		((u64 *)ptr_to(shared_pd))[i] = shared_pt | EPT_RWX;
	}
	map_window_linear();
	for (u32 i = 0; i < ROOTS; i++)
		make_root(i);
	l2_prepare(l2_touch_points);
	for (u32 pass = 0; pass < 3; pass++)
		for (u32 i = 0; i < ROOTS; i++)
			count_eq(wrong, "sparse-sum",
				 run(i, FAR_BASE + pass * 0x7000, PAGE_1G + PAGE_2M * 3 + PAGE_SIZE),
				 POINTS * 3);
	expect_eq("sparse-in-many-roots", wrong, 0);
	for (u32 i = 0; i < ROOTS; i++)
		count_eq(wrong, "dense-sum", run(i, FAR_BASE + i * PAGE_1G, PAGE_2M), POINTS * 3);
	expect_eq("dense-in-many-roots", wrong, 0);
	((u64 *)ptr_to(data_page))[0] = 5;
	expect_eq("alias-shows-one-write-everywhere", run(0, FAR_BASE, PAGE_2M), POINTS * 5);
}
