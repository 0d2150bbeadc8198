/* SPDX-License-Identifier: Apache-2.0 */
/* Rows about L2's memory: first touch, and what an INVEPT throws away. */
#include "bench.h"
#include "l2.h"

#define REGIONS   4
#define PAGES     512
#define LIMIT     (64ul << 20)
#define SMALL     (16ul << 20) /* REGIONS of 2 MiB that EPT12 maps by 4 KiB pages */
#define LARGE     (32ul << 20) /* and by 2 MiB pages */
#define RAM_WANTS (LARGE + REGIONS * PAGE_2M)

static u64 root, *entries;
static struct inv_desc flush;
static volatile u64 l2_best, l2_best_large;

/* One write to each page of 2 MiB: four instructions a page. */
static void touch(u64 at)
{
	u32 left = PAGES;

	asm volatile("1: movb $1, (%0)\n\tadd $4096, %0\n\tdec %1\n\tjnz 1b"
		     : "+r"(at), "+r"(left)
		     :
		     : "cc", "memory");
}

static u64 touch_ticks(u64 at)
{
	u64 start = rdtsc();

	touch(at);
	return rdtsc() - start;
}

static u64 best_region(u64 base)
{
	u64 best = ~0ull;

	for (u64 i = 0; i < REGIONS; i++) {
		u64 ticks = touch_ticks(base + i * PAGE_2M);

		best = ticks < best ? ticks : best;
	}
	return best;
}

static void l2_first_touch(void)
{
	l2_best = best_region(SMALL);
	l2_best_large = best_region(LARGE);
}

/* Calls L1 before each pass; L1 then does something to the tables. */
static void l2_touch_again(void)
{
	l2_best = ~0ull;
	touch(SMALL);
	for (;;) {
		u64 ticks;

		l2_call(1);
		ticks = touch_ticks(SMALL);
		l2_best = ticks < l2_best ? ticks : l2_best;
	}
}

static void prepare(l2_fn *fn)
{
	l2_prepare(fn);
	vmwrite(VMCS_EPTP, ept_pointer(root));
}

static void invept_root(void)
{
	asm volatile("invept %0, %1" : : "m"(flush), "r"(1ul) : "cc", "memory");
}

/* RIP of L2 behind the VMCALL at which it waits. */
static void step_over_call(void)
{
	vmwrite(VMCS_GUEST_RIP, vmread(VMCS_GUEST_RIP) + 3);
}

static void first_touch(void)
{
	struct vm_result r;

	prepare(l2_first_touch);
	r = l2_launch();
	expect_done("first-touch", r);
	row("l2-touch-4k", l2_best, PAGES);
	row("l2-touch-2m", l2_best_large, PAGES);
}

static void unchanged(void)
{
	u64 best = ~0ull;

	for (u32 i = 0; i < BATCHES; i++) {
		u64 start = rdtsc();

		invept_root();
		start = rdtsc() - start;
		best = start < best ? start : best;
		step_over_call();
		l2_enter_raw(true);
	}
	expect_eq("touched-again", vmread(VMCS_EXIT_REASON), EXIT_VMCALL);
	row("invept-shadowed", best, 1);
	row("l2-retouch", l2_best, PAGES);
}

/* All of it is counted: L1's own writes, the INVEPT, and L2's pass with its exit. */
static void cleared(void)
{
	u64 best = ~0ull;

	for (u32 b = 0; b < BATCHES; b++) {
		u64 start;

		step_over_call();
		start = rdtsc();
		for (u32 i = 0; i < PAGES; i++)
			((volatile u64 *)entries)[i] = 0;
		invept_root();
		for (u64 i = 0; i < PAGES; i++)
			((volatile u64 *)entries)[i] = (SMALL + i * PAGE_SIZE) | EPT_RWX | EPT_WB;
		l2_enter_raw(true);
		start = rdtsc() - start;
		best = start < best ? start : best;
	}
	expect_eq("touched-restored", vmread(VMCS_EXIT_REASON), EXIT_VMCALL);
	row("l2-retouch-restored", best, PAGES);
}

void rows_memory(void)
{
	if (!proc2_has(PROC2_EPT) || boot_ram_bytes() < RAM_WANTS || addr_of(image_end) > SMALL) {
		skip("memory", "no EPT, or too little RAM");
		return;
	}
	root = ept_identity(LIMIT, PAGE_2M);
	flush.a = ept_pointer(root);
	for (u64 i = 0; i < REGIONS; i++)
		ept_entry(root, SMALL + i * PAGE_2M, PAGE_SIZE); /* splits it */
	entries = ept_entry(root, SMALL, PAGE_SIZE);
	first_touch();
	prepare(l2_touch_again);
	l2_launch();
	unchanged();
	cleared();
}
