/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NMIs and L2: exiting, delivery straight into L2, injection, virtual NMIs and their window, blocking until
 * IRET on each level. SDM "Non-Maskable Interrupts", "NMI-Window Exiting".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: NMIs";

static volatile u32 hits, hits_in_l2;
static volatile bool in_l2;

static void on_nmi(struct regs *r)
{
	(void)r;
	hits++;
	hits_in_l2 += in_l2;
}

static void nmi_to_self(void)
{
	lapic_ipi(cpus[0].apic_id, ICR_NMI | ICR_ASSERT);
	for (u32 i = 0; i < 50; i++)
		cpu_pause();
}

static void l2_nmi(void)
{
	in_l2 = true;
	nmi_to_self();
	in_l2 = false;
}

static void l2_nothing(void)
{
	asm volatile("nop; nop");
	l2_call(1);
}

/* IRET to the next instruction: ends NMI blocking and nothing else. */
static void iret(void)
{
	asm volatile("mov %%rsp, %%rax\n\tpushq $0x10\n\tpush %%rax\n\tpushfq\n\tpushq $0x08\n\tlea "
		     "1f(%%rip), %%rax\n\t"
		     "push %%rax\n\tiretq\n1:"
		     :
		     :
		     : "rax", "memory", "cc");
}

static void exiting(void)
{
	struct vm_result r;

	hits = 0;
	l2_prepare(l2_nmi);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_NMI);
	r = l2_launch();
	in_l2 = false;
	expect_exit("nmi-exits", r, EXIT_EXCEPTION);
	expect_eq("nmi-exit-info", r.intr_info, INTR_VALID | INTR_NMI | 2);
	expect_eq("nmi-not-in-l1-handler", hits, 0);
	nmi_to_self();
	expect_eq("nmi-blocked-after-exit", hits, 0);
	iret();
	expect_eq("nmi-taken-after-iret", hits, 1);
	nmi_to_self();
	expect_eq("nmi-works-again", hits, 2);
	r = l2_run();
	expect_done("nmi-l2-goes-on", r);
	expect_eq("nmi-no-leftover", hits, 2);
}

static void straight_into_l2(void)
{
	struct vm_result r;

	iret(); /* Bochs keeps NMIs masked after an entry with the blocking bit set (Q5) */
	hits = hits_in_l2 = 0;
	l2_prepare(l2_nmi);
	r = l2_launch();
	expect_done("direct-run", r);
	expect_eq("direct-once", hits, 1);
	expect_eq("direct-in-l2", hits_in_l2, 1);
}

static void virtual_nmis(void)
{
	struct vm_result r;

	if (!ctl_has(VMCS_PIN_CTL, PIN_VNMI)) {
		skip("virtual-nmis", "not offered");
		return;
	}
	hits = 0;
	l2_prepare(l2_nothing);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_NMI | PIN_VNMI);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2);
	r = l2_launch();
	expect_true("inject-run", l2_called(&r, 1));
	expect_eq("inject-delivered", hits, 1);
	expect_eq("inject-unblocked-by-iret", vmread(VMCS_GUEST_INTERRUPTIBILITY) & BLOCK_NMI, 0);

	/* The window opens at once when nothing blocks, and after L2's IRET when an injected NMI does. */
	l2_prepare(l2_nothing);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_NMI | PIN_VNMI);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_NMI_WINDOW);
	r = l2_launch();
	expect_exit("window-at-once", r, EXIT_NMI_WINDOW);
	hits = 0;
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2);
	r = l2_run();
	expect_exit("window-after-iret", r, EXIT_NMI_WINDOW);
	expect_eq("window-handler-ran-first", hits, 1);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_NMI_WINDOW);
	r = l2_run();
	expect_true("window-goes-on", l2_called(&r, 1));
}

/* The stack of an injected NMI is missing in EPT: the exit names the NMI; injecting it again delivers it
 * once. */
static void interrupted_injection(void)
{
	u64 stack_page = (l2_stack_top() - 8) & ~4095ul;
	u64 *e = ept_entry(l2_ept(), stack_page, PAGE_SIZE), old = *e;
	struct vm_result r;

	hits = 0;
	*e = 0;
	invept(2, 0);
	l2_prepare(l2_nothing);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_NMI | PIN_VNMI);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_NMI | 2);
	r = l2_launch();
	expect_exit("interrupted-violation", r, EXIT_EPT_VIOLATION);
	expect_eq("interrupted-vectoring", r.idt_info, INTR_VALID | INTR_NMI | 2);
	*e = old;
	vmcs_clear_bits(VMCS_GUEST_INTERRUPTIBILITY, BLOCK_NMI);
	vmwrite(VMCS_ENTRY_INTR_INFO, r.idt_info);
	r = l2_run();
	expect_true("interrupted-redelivered", l2_called(&r, 1));
	expect_eq("interrupted-once", hits, 1);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	lapic_enable();
	trap_handle(VEC_NMI, on_nmi);
	exiting();
	straight_into_l2();
	virtual_nmis();
	if (proc2_has(PROC2_EPT) && ctl_has(VMCS_PIN_CTL, PIN_VNMI))
		interrupted_injection();
}
