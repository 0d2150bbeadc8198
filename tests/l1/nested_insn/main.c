/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may execute VMX instructions: without CR4.VMXE, before VMXON, after VMXOFF, in ring 3 and in
 * compatibility mode they fault before they touch anything (XSA-75, XSA-278). SDM "VMX Instruction
 * Reference".
 */
#include "l1.h"
#include "vmx.h"

const char test_title[] = "nested: faults of VMX instructions";

extern u64 region; /* named by the 32-bit code too */
u64 region;
static u64 stored;

static u32 run_vmxon(void)
{
	return vmxon(region);
}

static u32 run_vmclear(void)
{
	return vmclear(region);
}

static u32 run_vmptrld(void)
{
	return vmptrld(region);
}

static u32 run_vmptrst(void)
{
	return vmptrst(&stored);
}

static u32 run_vmread(void)
{
	return vmread_try(VMCS_GUEST_RIP, NULL);
}

static u32 run_vmwrite(void)
{
	return vmwrite_try(VMCS_GUEST_RIP, 0);
}

#define PLAIN(name)                                                                                          \
	static u32 run_##name(void)                                                                          \
	{                                                                                                    \
		trap_forget();                                                                               \
		asm volatile(TRY(#name) : : "a"(0ul), "c"(0ul) : "memory", "cc");                            \
		return trap_last();                                                                          \
	}

PLAIN(vmlaunch)
PLAIN(vmresume)
PLAIN(vmcall)
PLAIN(vmfunc)

static u32 run_vmxoff(void)
{
	return vmxoff();
}

static u32 run_invept(void)
{
	return invept(2, 0);
}

static u32 run_invvpid(void)
{
	return invvpid(2, 0, 0);
}

struct insn {
	const char *name;
	u32 (*run)(void);
};

static const struct insn insns[] = {
	{"vmcall", run_vmcall},     {"vmclear", run_vmclear}, {"vmlaunch", run_vmlaunch},
	{"vmptrld", run_vmptrld},   {"vmptrst", run_vmptrst}, {"vmread", run_vmread},
	{"vmresume", run_vmresume}, {"vmwrite", run_vmwrite}, {"vmxoff", run_vmxoff},
	{"vmxon", run_vmxon},       {"invept", run_invept},   {"invvpid", run_invvpid},
	{"vmfunc", run_vmfunc},
};

static u32 results[ARRAY_SIZE(insns)];

static void run_all(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(insns); i++)
		results[i] = insns[i].run();
}

/* VMFUNC is #UD outside L2 whatever the ring. */
static void check_all(const char *when, u32 want)
{
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(insns); i++) {
		format_text(name, sizeof(name), "%s-%s", when, insns[i].name);
		expect_eq(name, results[i], insns[i].run == run_vmfunc ? UD : want);
	}
}

/* 32-bit code: each instruction with its fault skipped by the fix-up table; results are counted by
 * note_compat(). */
extern const u8 compat_insns[];
asm(".pushsection .text\n"
    ".code32\n"
    "compat_insns:\n"
    ".macro compat_try insn:vararg\n"
    "771: \\insn\n"
    "772:\n"
    ".pushsection .fixups,\"a\"\n.quad 771b, 772b\n.popsection\n"
    "lcall $0x08, $compat_note\n" /* back in 64-bit code for a moment */
    ".endm\n"
    "compat_try vmxoff\n"
    "compat_try vmlaunch\n"
    "compat_try vmptrld region\n"
    "compat_try vmclear region\n"
    "compat_try vmread %eax, %ecx\n"
    "compat_try vmxon region\n"
    "lret\n"
    ".code64\n"
    "compat_note:\n"
    "push %rax\npush %rcx\npush %rdx\npush %rsi\npush %rdi\npush %r8\npush %r9\npush %r10\npush %r11\n"
    "call note_compat\n"
    "pop %r11\npop %r10\npop %r9\npop %r8\npop %rdi\npop %rsi\npop %rdx\npop %rcx\npop %rax\n"
    "lretl\n"
    ".popsection\n");

void note_compat(void);
static u32 compat_uds, compat_total;

void note_compat(void)
{
	compat_total++;
	compat_uds += trap_last() == UD;
	trap_forget();
}

static void in_compatibility_mode(const char *name)
{
	compat_uds = compat_total = 0;
	trap_forget();
	compat_call(compat_insns);
	expect_eq(name, compat_uds, compat_total);
}

void test_main(void)
{
	u64 pointer = 0;

	if (!vmx_available())
		return;
	vmx_enable();
	region = vmcs_alloc();
	write_cr4(read_cr4() & ~CR4_VMXE);
	run_all();
	check_all("no-vmxe", UD);

	write_cr4(read_cr4() | CR4_VMXE);
	for (u32 i = 0; i < ARRAY_SIZE(insns); i++)
		results[i] = insns[i].run == run_vmxon ? UD : insns[i].run();
	check_all("before-vmxon", UD);
	in_compatibility_mode("compat-before-vmxon");

	expect_eq("vmxon", vmxon(vmx_region()), VM_OK);
	user_run(run_all);
	check_all("ring3", GP);
	in_compatibility_mode("compat-in-vmx-operation");
	expect_eq("nothing-became-current", vmptrst(&pointer), VM_OK);
	expect_eq("no-current-vmcs", pointer, ~0ul);
	expect_eq("vmfunc-in-root", run_vmfunc(), UD);
	expect_eq("vmcall-in-root", vmcall(0), VMFAIL_INVALID);

	expect_eq("vmxoff", vmxoff(), VM_OK);
	for (u32 i = 0; i < ARRAY_SIZE(insns); i++)
		results[i] = insns[i].run == run_vmxon ? UD : insns[i].run();
	check_all("after-vmxoff", UD);
}
