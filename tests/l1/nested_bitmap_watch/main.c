/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MSR bitmap that seldom changes: whoever writes to it, and however long it was left alone before, the
 * next entry goes by what it holds. A hypervisor that does not read it at each entry must notice every
 * writer. SDM "MSR-Bitmap Address".
 */
#include "cpu.h"
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: writes to an MSR bitmap that was left alone";

#define ROUND     1
#define READ_HIGH 1024
#define BIT_AT    (READ_HIGH + (MSR_KERNEL_GS_BASE & 0x1fff) / 8)
#define BIT_MASK  ((u8)(1u << MSR_KERNEL_GS_BASE % 8))
#define PIC_MASK  0x21

static u8 *bitmap; /* the one in use */
static volatile bool l2_toggles;

static void toggle(void)
{
	((volatile u8 *)bitmap)[BIT_AT] ^= BIT_MASK;
}

static u64 toggle_on_other(void)
{
	toggle();
	return 0;
}

static bool wanted(void)
{
	return bitmap[BIT_AT] & BIT_MASK;
}

static void l2_main(void)
{
	for (;;) {
		rdmsr(MSR_KERNEL_GS_BASE);
		if (l2_toggles)
			toggle();
		l2_call(ROUND);
	}
}

/* One round of L2, which is left behind its call. False: the RDMSR exits when it must not, or the other
 * way round. */
static bool round_is_right(void)
{
	bool want = wanted(), exits = false;
	struct vm_result r = l2_run();

	if (r.kind == VM_EXIT && r.reason == EXIT_RDMSR) {
		exits = true;
		r = l2_run_past(&r);
	}
	if (!l2_called(&r, ROUND))
		return false;
	l2_skip(&r);
	return exits == want;
}

/*
 * Rounds that were wrong, when `write` happens after each number of quiet rounds up to some. They are quiet
 * with the bit clear: an access that exits can be judged by the bitmap as it is then.
 */
static u64 wrong_rounds(void (*write)(void))
{
	u64 wrong = 0;

	bitmap[BIT_AT] &= (u8)~BIT_MASK;
	for (u32 quiet = 0; quiet < 150; quiet += quiet < 40 ? 1 : 15) {
		for (u32 i = 0; i < quiet; i++)
			wrong += !round_is_right();
		write();
		for (u32 i = 0; i < 3; i++)
			wrong += !round_is_right();
		write();
	}
	return wrong + wanted();
}

/* A page that L2 can read only, as a hypervisor keeps its own: what L2 may write to nobody can watch. */
static u8 *bitmap_alloc(void)
{
	u8 *page = page_alloc();

	*ept_entry(l2_ept(), addr_of(page), PAGE_SIZE) &= ~EPT_W;
	return page;
}

static void use_bitmap(void)
{
	vmcs_set_bits(VMCS_PROC_CTL, PROC_MSR_BITMAP);
	vmwrite(VMCS_MSR_BITMAP, addr_of(bitmap));
}

static void other_cpu(u64 unused)
{
	(void)unused;
	cpu_answer(toggle_on_other);
}

static void ask(void)
{
	cpu_ask();
}

/* The other CPU writes now and then and has no reason to walk its tables anew. */
static void test_other_cpu(void)
{
	cpu_run(1, other_cpu, 0);
	expect_eq("by-another-cpu", wrong_rounds(ask), 0);
	cpu_dismiss(1);
	expect_eq("by-this-cpu-afterwards", wrong_rounds(toggle), 0);
}

/* L2, when it has the page through its own EPT. It writes after its RDMSR: the round itself is not judged. */
static void write_in_l2(void)
{
	struct vm_result r;

	l2_toggles = true;
	r = l2_run();
	if (r.kind == VM_EXIT && r.reason == EXIT_RDMSR)
		r = l2_run_past(&r);
	l2_skip(&r);
	l2_toggles = false;
}

/* String input: a hypervisor that emulates the port writes to memory in L1's stead. */
static void write_by_ins(void)
{
	u8 old = inb(PIC_MASK), value = bitmap[BIT_AT] ^ BIT_MASK;
	void *to = bitmap + BIT_AT;
	u64 n = 1;

	outb(PIC_MASK, value);
	asm volatile("rep insb" : "+D"(to), "+c"(n) : "d"((u16)PIC_MASK) : "memory");
	outb(PIC_MASK, old);
}

/* Two VMCSs with one bitmap: what one of them has noticed is new to the other. */
static void test_two_vmcss(void)
{
	u64 a = l2_vmcs(), b = vmcs_alloc(), wrong = 0;

	l2_prepare_in(b, l2_main);
	use_bitmap();
	wrong += !round_is_right();
	for (u32 i = 0; i < 200; i++) {
		if (i % 41 == 36 || i % 41 == 40)
			toggle();
		vmptrld(i & 1 ? a : b);
		wrong += !round_is_right();
	}
	expect_eq("two-vmcss-with-one-bitmap", wrong, 0);
	vmptrld(a);
}

/* Another page, and back to the first one, which was written meanwhile. */
static void test_two_bitmaps(void)
{
	u8 *first = bitmap, *second = bitmap_alloc();
	u64 wrong = 0;

	second[BIT_AT] = first[BIT_AT] ^ BIT_MASK;
	for (u32 i = 0; i < 8; i++) {
		bitmap = i & 1 ? first : second;
		vmwrite(VMCS_MSR_BITMAP, addr_of(bitmap));
		for (u32 n = 0; n < 40; n++)
			wrong += !round_is_right();
		if (i & 2)
			(i & 1 ? second : first)[BIT_AT] ^= BIT_MASK;
	}
	expect_eq("another-bitmap-and-back", wrong, 0);
}

void test_main(void)
{
	cpu_start_all();
	bitmap = bitmap_alloc();
	l2_prepare(l2_main);
	use_bitmap();
	expect_eq("by-this-cpu", wrong_rounds(toggle), 0);
	test_other_cpu();
	expect_eq("by-string-input", wrong_rounds(write_by_ins), 0);
	test_two_vmcss();
	test_two_bitmaps();
	*ept_entry(l2_ept(), addr_of(bitmap), PAGE_SIZE) |= EPT_W;
	invept(2, 0); /* all contexts */
	expect_eq("by-l2", wrong_rounds(write_in_l2), 0);
	expect_eq("by-this-cpu-after-l2", wrong_rounds(toggle), 0);
}
