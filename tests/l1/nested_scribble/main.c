/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second CPU writes junk into everything that an entry reads from memory (EPT tables, bitmaps, MSR lists)
 * while the first one enters L2 in a loop. Any clean outcome is right; the machine must live, and L1 must
 * never see what it did not allow (Linux 4f2777bc9797).
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: memory changing under an entry";

#define ROUNDS 2000

static volatile bool stop;
static volatile u64 *victims[4];
static u64 seed = 88172645463325252ul;
static u32 victim_count;

static u64 random64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static void scribble(u64 unused)
{
	(void)unused;
	while (!stop) {
		u64 r = random64();

		victims[r % victim_count][r >> 8 & 511] = random64();
	}
}

static volatile u64 *touched;

static void l2_work(void)
{
	for (u32 i = 0; i < 8; i++)
		touched[i * 512]++;
	rdmsr(MSR_LSTAR);
	l2_call(1);
}

static bool allowed(u32 reason)
{
	switch (reason) {
	case EXIT_VMCALL:
	case EXIT_EPT_VIOLATION:
	case EXIT_EPT_MISCONFIG:
	case EXIT_RDMSR:
	case EXIT_IO:
	case EXIT_EXCEPTION:
	case EXIT_TRIPLE_FAULT:
	case EXIT_ENTRY_FAILED | EXIT_BAD_MSR:
		return true;
	default:
		return false;
	}
}

void test_main(void)
{
	u32 strange = 0;
	u64 *list;

	if (!vmx_available() || !vmx_start())
		return;
	if (!expect_eq("cpus-online", cpu_start_all(), 2) || !proc2_has(PROC2_EPT))
		return;
	touched = ptr_to(24ul << 20);
	list = page_alloc();
	list[0] = MSR_LSTAR;
	ept_entry(l2_ept(), 24ul << 20, PAGE_SIZE);
	victims[0] = ptr_to(*ept_entry(l2_ept(), 24ul << 20, PAGE_2M) & 0x000ffffffffff000);
	victims[1] = (void *)l2_msr_bitmap();
	victims[2] = page_alloc(); /* I/O bitmap */
	victims[3] = list;
	victim_count = 4;
	cpu_run(1, scribble, 0);
	for (u32 i = 0; i < ROUNDS; i++) {
		struct vm_result r;

		if (i % 64 == 0) {
			l2_prepare(l2_work);
			vmcs_set_bits(VMCS_PROC_CTL, PROC_IO_BITMAPS);
			vmwrite(VMCS_EXCEPTION_BITMAP, ~0u);
			vmwrite(VMCS_IO_BITMAP_A, addr_of(victims[2]));
			vmwrite(VMCS_IO_BITMAP_B, addr_of(victims[2]));
			vmwrite(VMCS_ENTRY_MSR_LOAD, addr_of(list));
			vmwrite(VMCS_ENTRY_MSR_LOAD_COUNT, i % 128 ? 1 : 0);
		}
		l2_set_entry(l2_work);
		r = l2_run();
		if (!allowed(r.reason) || r.kind != VM_EXIT)
			count_eq(strange, "outcome", l2_outcome(&r), EXIT_VMCALL);
		if (i % 16 == 0)
			invept(1, ept_pointer(l2_ept()));
	}
	stop = true;
	expect_true("scribbler-came-back", cpu_wait_for(1, 1000000));
	expect_eq("only-clean-outcomes", strange, 0);
}
