/* SPDX-License-Identifier: Apache-2.0 */
/* The controls that load and save MSRs and debug registers at entry and exit, each on and off; and PAUSE-loop
 * exiting. SDM "VM-Entry Controls", "VM-Exit Controls". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: registers that controls load and save";

#define PAT_L1   0x0007040600070406ul
#define PAT_HOST 0x0007040600070506ul
#define PAT_L2   0x0706050400010406ul
#define PAT_NEW  0x0101010101010101ul
#define DR7_L1   0x402ul
#define DR7_L2   0x408ul
#define DR7_NEW  0x420ul
#define PLE_TIME 20000u

static volatile u64 found;

static void l2_pat(void)
{
	found = rdmsr(MSR_PAT);
	wrmsr(MSR_PAT, PAT_NEW);
}

static void l2_efer(void)
{
	found = rdmsr(MSR_EFER);
	wrmsr(MSR_EFER, found ^ EFER_SCE);
}

static void l2_dr7(void)
{
	found = read_dr7();
	write_dr7(DR7_NEW);
}

static void run(const char *name, u32 entry, u32 entry_off, u32 exit, u32 exit_off)
{
	struct vm_result r;

	vmcs_set_bits(VMCS_ENTRY_CTL, entry);
	vmcs_clear_bits(VMCS_ENTRY_CTL, entry_off);
	vmcs_set_bits(VMCS_EXIT_CTL, exit);
	vmcs_clear_bits(VMCS_EXIT_CTL, exit_off);
	r = l2_launch();
	expect_done(name, r);
}

static void pat(void)
{
	for (u32 on = 0; on < 2; on++) {
		const u32 exits = EXIT_SAVE_PAT | EXIT_LOAD_PAT;

		wrmsr(MSR_PAT, PAT_L1);
		l2_prepare(l2_pat);
		vmwrite(VMCS_GUEST_PAT, PAT_L2);
		vmwrite(VMCS_HOST_PAT, PAT_HOST);
		run(on ? "pat-on" : "pat-off", on ? ENTRY_LOAD_PAT : 0, on ? 0 : ENTRY_LOAD_PAT,
		    on ? exits : 0, on ? 0 : exits);
		expect_eq(on ? "pat-loaded" : "pat-inherited", found, on ? PAT_L2 : PAT_L1);
		expect_eq(on ? "pat-saved" : "pat-not-saved", vmread(VMCS_GUEST_PAT), on ? PAT_NEW : PAT_L2);
		expect_eq(on ? "pat-host-loaded" : "pat-left-to-host", rdmsr(MSR_PAT),
			  on ? PAT_HOST : PAT_NEW);
	}
	wrmsr(MSR_PAT, PAT_L1);
}

static void efer(void)
{
	u64 own = rdmsr(MSR_EFER);

	for (u32 on = 0; on < 2; on++) {
		const u32 exits = EXIT_SAVE_EFER | EXIT_LOAD_EFER;

		wrmsr(MSR_EFER, own);
		l2_prepare(l2_efer);
		vmwrite(VMCS_GUEST_EFER, own & ~EFER_NXE);
		run(on ? "efer-on" : "efer-off", on ? ENTRY_LOAD_EFER : 0, on ? 0 : ENTRY_LOAD_EFER,
		    on ? exits : 0, on ? 0 : exits);
		expect_eq(on ? "efer-loaded" : "efer-inherited", found, on ? own & ~EFER_NXE : own);
		expect_eq(on ? "efer-saved" : "efer-not-saved", vmread(VMCS_GUEST_EFER),
			  (own & ~EFER_NXE) ^ (on ? EFER_SCE : 0));
		expect_eq(on ? "efer-host-loaded" : "efer-left-to-host", rdmsr(MSR_EFER),
			  on ? own : own ^ EFER_SCE);
	}
	wrmsr(MSR_EFER, own);
}

static void debug(void)
{
	for (u32 on = 0; on < 2; on++) {
		write_dr7(DR7_L1);
		l2_prepare(l2_dr7);
		vmwrite(VMCS_GUEST_DR7, DR7_L2);
		run(on ? "debug-on" : "debug-off", on ? ENTRY_LOAD_DEBUG : 0, on ? 0 : ENTRY_LOAD_DEBUG,
		    on ? EXIT_SAVE_DEBUG : 0, on ? 0 : EXIT_SAVE_DEBUG);
		expect_eq(on ? "dr7-loaded" : "dr7-inherited", found, on ? DR7_L2 : DR7_L1);
		expect_eq(on ? "dr7-saved" : "dr7-not-saved", vmread(VMCS_GUEST_DR7), on ? DR7_NEW : DR7_L2);
		expect_eq(on ? "dr7-reset-by-exit-1" : "dr7-reset-by-exit-2", read_dr7(), 0x400);
	}
}

static void l2_spin(void)
{
	for (u32 i = 0; i < 4 * PLE_TIME; i++)
		cpu_pause();
}

/* SDM "PAUSE-Loop Exiting": the PAUSEs come closer than the gap, for longer than the window. */
static void pause_loop(void)
{
	struct vm_result r;

	if (!proc2_has(PROC2_PLE)) {
		skip("pause-loop", "not offered");
		return;
	}
	for (u32 on = 0; on < 2; on++) {
		l2_prepare(l2_spin);
		if (on)
			vmcs_set_bits(VMCS_PROC2_CTL, PROC2_PLE);
		vmwrite(VMCS_PLE_GAP, PLE_TIME / 2);
		vmwrite(VMCS_PLE_WINDOW, PLE_TIME);
		r = l2_launch();
		if (on)
			expect_exit("pause-loop-exits", r, EXIT_PAUSE);
		else
			expect_done("pause-loop-off", r);
	}
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	pat();
	efer();
	debug();
	pause_loop();
}
