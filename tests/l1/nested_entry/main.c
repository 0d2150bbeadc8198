/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an L2: VMXON, VMLAUNCH, exits, VMRESUME, VMXOFF; and the launch state, which decides between
 * errors 4 and 5. SDM "VM Entries", "VM-Instruction Error Numbers".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: entry and exit";

static volatile u64 seen;

static void count_and_cpuid(void)
{
	for (u32 i = 0; i < 3; i++) {
		seen++;
		cpuid(0x1234, i);
	}
}

static void return_value(void)
{
	seen = l2_call(0x77);
}

static void exits_and_resumes(void)
{
	struct vm_result r;

	l2_prepare(count_and_cpuid);
	seen = 0;
	r = l2_launch();
	expect_exit("cpuid-exits", r, EXIT_CPUID);
	expect_eq("cpuid-length", r.insn_len, 2);
	expect_eq("l2-ran", seen, 1);
	expect_eq("l2-rax", l2_regs()->rax, 0x1234);
	r = l2_run_past(&r);
	expect_exit("second-cpuid", r, EXIT_CPUID);
	expect_eq("l2-rcx", l2_regs()->rcx, 1);
	r = l2_run();
	expect_exit("not-skipped-repeats", r, EXIT_CPUID);
	expect_eq("not-skipped-same-count", seen, 2);
	r = l2_run_past(&r);
	r = l2_run_past(&r);
	expect_done("function-returned", r);
}

static void registers_go_both_ways(void)
{
	struct vm_result r;

	l2_prepare(return_value);
	r = l2_launch();
	expect_true("vmcall-exits", l2_called(&r, 0x77));
	expect_eq("vmcall-length", r.insn_len, 3);
	l2_regs()->rax = 0x123456789abcdef0;
	r = l2_run_past(&r);
	expect_done("resumed-to-the-end", r);
	expect_eq("l2-saw-rax", seen, 0x123456789abcdef0);
}

static void launch_state(void)
{
	struct vm_result r;
	u64 current = 0, rip;

	l2_prepare(return_value);
	r = l2_resume();
	expect_fail("resume-of-clear-vmcs", r, FAILED(VMFAIL_VALID(5)));
	r = l2_launch();
	expect_exit("launch-after-failed-resume", r, EXIT_VMCALL);
	rip = r.rip;
	r = l2_launch();
	expect_fail("launch-of-launched-vmcs", r, FAILED(VMFAIL_VALID(4)));
	expect_eq("error-field", vmread(VMCS_INSN_ERROR), 4);
	expect_eq("failed-entry-keeps-rip", vmread(VMCS_GUEST_RIP), rip);
	expect_eq("failed-entry-keeps-reason", vmread(VMCS_EXIT_REASON), EXIT_VMCALL);
	expect_eq("vmclear", vmclear(l2_vmcs()), VM_OK);
	vmptrst(&current);
	expect_eq("no-current-vmcs", current, ~0ull);
	r = l2_launch();
	expect_fail("launch-without-vmcs", r, FAILED(VMFAIL_INVALID));
	r = l2_resume();
	expect_fail("resume-without-vmcs", r, FAILED(VMFAIL_INVALID));
	expect_eq("vmptrld", vmptrld(l2_vmcs()), VM_OK);
	r = l2_launch();
	expect_exit("vmclear-made-it-clear", r, EXIT_VMCALL);
}

static void leave_and_return(void)
{
	struct vm_result r;

	expect_eq("vmxoff", vmxoff(), VM_OK);
	expect_eq("vmlaunch-after-vmxoff", l2_launch().fail, UD);
	l2_prepare(return_value);
	r = l2_launch();
	expect_exit("second-vmx-life", r, EXIT_VMCALL);
	expect_eq("vmxoff-again", vmxoff(), VM_OK);
	write_cr4(read_cr4() & ~CR4_VMXE);
	expect_eq("vmxe-off", read_cr4() & CR4_VMXE, 0);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	exits_and_resumes();
	registers_go_both_ways();
	launch_state();
	leave_and_return();
}
