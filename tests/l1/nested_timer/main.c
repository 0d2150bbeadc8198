/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VMX-preemption timer: ends a spinning L2 with interrupts off, zero exits at once but behind injected
 * events, saves its value only when told. SDM "VMX-Preemption Timer".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: preemption timer";

static volatile u64 rounds;
static volatile u32 hits;

static void l2_spin(void)
{
	for (;;)
		rounds++;
}

static void on_ud(struct regs *r)
{
	(void)r;
	hits++;
}

static void l2_call_one(void)
{
	l2_call(1);
}

static void on_db(struct regs *r)
{
	(void)r;
	hits++;
	write_dr6(0xffff0ff0);
}

/* A debug trap that waits at the entry is L2's before anything else happens, and wakes it from HLT. */
#define PENDING_B1 (BIT(12) | BIT(1))
static void behind_debug_trap(void)
{
	struct vm_result r;

	trap_handle(VEC_DB, on_db);
	l2_prepare(l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 0);
	vmwrite(VMCS_GUEST_PENDING_DEBUG, PENDING_B1);
	r = l2_launch();
	expect_exit("zero-with-pending-trap", r, EXIT_TIMER);
	expect_eq("trap-first", r.rip, addr_of(trap_stub(VEC_DB)));

	vmwrite(VMCS_GUEST_PENDING_DEBUG, PENDING_B1);
	vmwrite(VMCS_EXCEPTION_BITMAP, BIT(VEC_DB));
	r = l2_run();
	expect_exit("trap-wanted-by-l1", r, EXIT_EXCEPTION);
	expect_eq("trap-qualification", r.qual, BIT(1));

	hits = 0;
	l2_prepare(l2_call_one);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_HLT);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 1000000);
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, 1);
	vmwrite(VMCS_GUEST_PENDING_DEBUG, PENDING_B1);
	r = l2_launch();
	expect_exit("trap-ends-halt", r, EXIT_VMCALL);
	expect_eq("trap-once", hits, 1);
	trap_handle(VEC_DB, NULL);
}

static struct vm_result run(l2_fn *fn, u32 value)
{
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, value);
	return l2_launch();
}

/* SDM "Activity State": interrupts do not end a shutdown, the timer does. */
static void in_shutdown(void)
{
	struct vm_result r;

	if (!(rdmsr(MSR_VMX_MISC) & BIT(7))) {
		skip("shutdown", "not offered");
		return;
	}
	rounds = 0;
	l2_prepare(l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 100000);
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, 2);
	r = l2_launch();
	expect_exit("ends-a-shutdown", r, EXIT_TIMER);
	expect_eq("shutdown-ran-nothing", rounds, 0);
}

void test_main(void)
{
	struct vm_result r;
	u64 start;
	u32 shift;

	if (!vmx_available())
		return;
	vmx_start();
	if (!ctl_has(VMCS_PIN_CTL, PIN_TIMER)) {
		skip("preemption-timer", "not offered");
		return;
	}
	shift = rdmsr(MSR_VMX_MISC) & 31;
	start = rdtsc();
	r = run(l2_spin, 100000);
	start = rdtsc() - start;
	expect_exit("ends-a-spinning-l2", r, EXIT_TIMER);
	expect_true("l2-ran", rounds > 0);
	expect_true("not-early", start >> shift >= 99999);
	rounds = 0;
	r = run(l2_spin, 0);
	expect_exit("zero", r, EXIT_TIMER);
	expect_eq("zero-before-first-instruction", rounds, 0);

	trap_handle(VEC_UD, on_ud);
	l2_prepare(l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 0);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | VEC_UD);
	r = l2_launch();
	expect_exit("zero-with-injection", r, EXIT_TIMER);
	expect_eq("event-was-delivered-first", r.idt_info & INTR_VALID, 0);
	expect_eq("stands-at-handler", r.rip, addr_of(trap_stub(VEC_UD)));
	trap_handle(VEC_UD, NULL);
	behind_debug_trap();

	r = run(l2_call_one, 0x10000000);
	expect_exit("other-exit-first", r, EXIT_VMCALL);
	expect_eq("value-kept-without-save", vmread(VMCS_PREEMPTION_TIMER), 0x10000000);
	l2_prepare(l2_call_one);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_SAVE_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 0x10000000);
	r = l2_launch();
	expect_exit("save-run", r, EXIT_VMCALL);
	expect_near("value-saved", vmread(VMCS_PREEMPTION_TIMER), 1, 0x0ffffffe);
	l2_prepare(l2_spin);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_SAVE_TIMER);
	vmwrite(VMCS_PREEMPTION_TIMER, 5000);
	r = l2_launch();
	expect_exit("save-expired-run", r, EXIT_TIMER);
	expect_eq("expired-saves-zero", vmread(VMCS_PREEMPTION_TIMER), 0);

	in_shutdown();
	l2_prepare(l2_call_one);
	vmwrite(VMCS_PREEMPTION_TIMER, 0);
	r = l2_launch();
	expect_exit("off-means-off", r, EXIT_VMCALL);
	expect_eq("vmxoff", vmxoff(), VM_OK);
	delay_us(2000);
	expect_true("nothing-after-vmxoff", true);
}
