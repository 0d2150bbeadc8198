/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many VMCSs on one CPU: each L2 goes on where it was, with its own state, EPT and TSC offset, however often
 * and in whatever order L1 switches; VMCLEAR takes one out and its content survives. SDM "Guidelines for VMCS
 * Use".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: switching between VMCSs";

#define VMCSS 20 /* more than any sensible cache holds */

static u64 vmcs[VMCSS];
extern volatile u64 counter[VMCSS]; /* named by the assembly */
volatile u64 counter[VMCSS];
static struct l2_regs saved[VMCSS];
static u64 *shared, private_page[VMCSS], roots[VMCSS];

/* RBX holds the L2's number all the time; no memory but its counter is touched. */
extern void l2_count(void);
asm(".pushsection .text\n"
    "l2_count:\n"
    "incq counter(,%rbx,8)\n"
    "mov shared_address, %rdx\n"
    "mov (%rdx), %rcx\n"
    "mov counter(,%rbx,8), %rax\n"
    "vmcall\n"
    "jmp l2_count\n"
    ".popsection");
extern u64 shared_address;
u64 shared_address;

static void make(u32 i)
{
	vmcs[i] = vmcs_alloc();
	l2_prepare_in(vmcs[i], l2_count);
	if (proc2_has(PROC2_EPT)) {
		roots[i] = ept_identity(64ul << 20, PAGE_2M);
		private_page[i] = addr_of(page_alloc());
		*(u64 *)ptr_to(private_page[i]) = 0x1000 + i;
		*ept_entry(roots[i], shared_address, PAGE_SIZE) = private_page[i] | EPT_RWX | EPT_WB;
		vmwrite(VMCS_EPTP, ept_pointer(roots[i]));
	}
	vmwrite(VMCS_GUEST_RIP, addr_of((void *)(uintptr_t)l2_count));
	saved[i] = (struct l2_regs){.rbx = i};
}

/* One turn of L2 number i; true when it did what it should. */
static bool turn(u32 i, bool first, u64 expected)
{
	u64 flags, rip;

	vmptrld(vmcs[i]);
	*l2_regs() = saved[i];
	flags = l2_enter_raw(!first);
	saved[i] = *l2_regs();
	if (flags || vmread(VMCS_EXIT_REASON) != EXIT_VMCALL)
		return false;
	rip = vmread(VMCS_GUEST_RIP);
	vmwrite(VMCS_GUEST_RIP, rip + vmread(VMCS_EXIT_INSN_LEN));
	return saved[i].rbx == i && counter[i] == expected && saved[i].rax == expected &&
	       (!roots[i] || saved[i].rcx == 0x1000 + i);
}

static void round_robin(void)
{
	u32 wrong = 0;

	for (u64 round = 1; round <= 6; round++)
		for (u32 i = 0; i < VMCSS; i++)
			wrong += !turn(i, round == 1, round);
	expect_eq("round-robin", wrong, 0);
}

static void two_alternating(void)
{
	u32 wrong = 0;

	for (u64 round = 0; round < 50; round++)
		for (u32 i = 3; i < 5; i++)
			wrong += !turn(i, false, counter[i] + 1);
	expect_eq("two-alternating", wrong, 0);
}

static void fields_are_separate(void)
{
	u32 wrong = 0;

	for (u32 i = 0; i < VMCSS; i++) {
		vmptrld(vmcs[i]);
		vmwrite(VMCS_TSC_OFFSET, i * 0x100000000);
		vmwrite(VMCS_GUEST_SYSENTER_ESP, i);
	}
	for (u32 i = 0; i < VMCSS; i++) {
		vmptrld(vmcs[VMCSS - 1 - i]);
		wrong += vmread(VMCS_TSC_OFFSET) != (VMCSS - 1 - i) * 0x100000000;
		wrong += vmread(VMCS_GUEST_SYSENTER_ESP) != VMCSS - 1 - i;
	}
	expect_eq("fields-are-separate", wrong, 0);
}

static void cleared_and_launched_again(void)
{
	expect_eq("vmclear-of-not-current", vmclear(vmcs[7]), VM_OK);
	vmptrld(vmcs[7]);
	expect_eq("content-kept", vmread(VMCS_GUEST_SYSENTER_ESP), 7);
	expect_true("resume-refused", l2_enter_raw(true) & RFLAGS_ZF);
	expect_eq("resume-error", vmread(VMCS_INSN_ERROR), 5);
	expect_true("launch-goes-on", turn(7, true, counter[7] + 1));
	expect_true("others-undisturbed", turn(8, false, counter[8] + 1));
}

/* A VMCS that was cleared and copied to other memory goes on from there. */
static void moved(void)
{
	u64 copy = vmcs_alloc();

	vmclear(vmcs[9]);
	memcpy(ptr_to(copy), ptr_to(vmcs[9]), PAGE_SIZE);
	memset(ptr_to(vmcs[9]), 0, PAGE_SIZE);
	vmcs[9] = copy;
	expect_true("moved-vmcs-goes-on", turn(9, true, counter[9] + 1));
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	shared = page_alloc();
	shared_address = addr_of(shared);
	for (u32 i = 0; i < VMCSS; i++)
		make(i);
	round_robin();
	two_alternating();
	fields_are_separate();
	cleared_and_launched_again();
	moved();
}
