/* SPDX-License-Identifier: Apache-2.0 */
/*
 * External interrupts and L2: exiting with and without acknowledge, delivery straight into L2, interrupt
 * windows, HLT, and interrupts that are pending at entry. Each interrupt must be seen exactly once. SDM
 * "External Interrupts".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: interrupts";

#define VECTOR 0x55

static volatile u32 hits, hits_in_l2;
static volatile bool in_l2;

static void on_interrupt(struct regs *r)
{
	(void)r;
	hits++;
	hits_in_l2 += in_l2;
	lapic_eoi();
}

static void self_ipi(void)
{
	lapic_ipi(0, ICR_SELF | ICR_ASSERT | VECTOR);
}

/* The STI is what makes Bochs look at a pending interrupt again after an entry with IF = 0 (Q1). */
static void l2_open(void)
{
	asm volatile("sti; nop; nop; cli");
}

static void l2_raise(void)
{
	in_l2 = true;
	asm volatile("sti");
	self_ipi();
	for (u32 i = 0; i < 1000 && !hits; i++)
		cpu_pause();
	asm volatile("cli");
	in_l2 = false;
}

static void l2_sleep(void)
{
	asm volatile("sti; hlt; cli");
	l2_call(hits);
}

static void exit_without_ack(void)
{
	struct vm_result r;

	hits = 0;
	l2_prepare(l2_raise);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	r = l2_launch();
	in_l2 = false;
	expect_exit("no-ack-exit", r, EXIT_EXT_INT);
	expect_eq("no-ack-info-invalid", r.intr_info & INTR_VALID, 0);
	expect_true("no-ack-still-in-irr", lapic_bit(APIC_IRR, VECTOR));
	expect_eq("no-ack-not-taken", hits, 0);
	sti_nop_cli();
	expect_eq("no-ack-taken-by-l1", hits, 1);
	sti_nop_cli();
	expect_eq("no-ack-once", hits, 1);
	r = l2_run();
	expect_done("no-ack-l2-goes-on", r);
}

static void exit_with_ack(void)
{
	struct vm_result r;

	hits = 0;
	l2_prepare(l2_raise);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_ACK_INT);
	r = l2_launch();
	in_l2 = false;
	expect_exit("ack-exit", r, EXIT_EXT_INT);
	expect_eq("ack-info", r.intr_info, INTR_VALID | INTR_EXTERNAL | VECTOR);
	expect_true("ack-in-service", lapic_bit(APIC_ISR, VECTOR));
	expect_eq("ack-not-pending", lapic_bit(APIC_IRR, VECTOR), 0);
	sti_nop_cli();
	expect_eq("ack-not-delivered-again", hits, 0);
	lapic_eoi();
	expect_eq("ack-eoi", lapic_bit(APIC_ISR, VECTOR), 0);
	hits = 1;
	r = l2_run();
	expect_done("ack-l2-goes-on", r);
}

static void straight_into_l2(void)
{
	struct vm_result r;

	hits = hits_in_l2 = 0;
	l2_prepare(l2_raise);
	r = l2_launch();
	expect_done("direct-no-exit", r);
	expect_eq("direct-once", hits, 1);
	expect_eq("direct-in-l2", hits_in_l2, 1);
}

/* Pending in L1 with IF = 0 when L2 is entered (Linux f27a85c4988d). */
static void pending_at_entry(void)
{
	struct vm_result r;

	hits = 0;
	l2_prepare(l2_open);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	self_ipi();
	r = l2_launch();
	expect_exit("pending-exits-at-once", r, EXIT_EXT_INT);
	sti_nop_cli();
	expect_eq("pending-once", hits, 1);
	r = l2_run();
	expect_done("pending-l2-goes-on", r);

	/* With IF = 0 in L2 it exits all the same: external-interrupt exiting does not look at IF. */
	hits = 0;
	l2_prepare(l2_open);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	self_ipi();
	r = l2_launch();
	expect_exit("pending-if-0", r, EXIT_EXT_INT);
	sti_nop_cli();
	expect_eq("pending-if-0-once", hits, 1);
}

static void l2_spin_closed(void)
{
	for (volatile u32 i = 0; i < 1000000; i++)
		;
}

static void l2_arm_and_spin_closed(void)
{
	lapic_write(APIC_TIMER_INITIAL, 1000);
	l2_spin_closed();
}

static void check_closed(const char *name, l2_fn *fn, u32 timer)
{
	struct vm_result r;

	hits = 0;
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	if (timer)
		lapic_write(APIC_TIMER_INITIAL, timer);
	r = l2_launch();
	expect_exit(name, r, EXIT_EXT_INT);
	lapic_write(APIC_TIMER_INITIAL, 0);
	sti_nop_cli();
}

/* L1's timer runs out while L2 spins with IF = 0; armed by L1, and by L2 in L1's own local APIC. */
static void timer_and_closed_l2(void)
{
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, VECTOR);
	check_closed("timer-ends-closed-l2", l2_spin_closed, 100000);
	check_closed("timer-of-closed-l2", l2_arm_and_spin_closed, 0);
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
}

static void window(void)
{
	struct vm_result r;

	l2_prepare(l2_open);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_INTR_WINDOW);
	r = l2_launch();
	expect_exit("window-opens-after-sti", r, EXIT_INTR_WINDOW);
	expect_eq("window-if", vmread(VMCS_GUEST_RFLAGS) & RFLAGS_IF, RFLAGS_IF);
	expect_eq("window-no-blocking", vmread(VMCS_GUEST_INTERRUPTIBILITY) & 3, 0);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_INTR_WINDOW);
	r = l2_run();
	expect_done("window-closed", r);

	l2_prepare(l2_open);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_INTR_WINDOW);
	vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	r = l2_launch();
	expect_exit("window-open-at-entry", r, EXIT_INTR_WINDOW);
	expect_eq("window-before-first-instruction", l2_regs()->rdi, addr_of((void *)(uintptr_t)l2_open));
}

static void halt(void)
{
	struct vm_result r;

	l2_prepare(l2_sleep);
	r = l2_launch();
	expect_exit("hlt-exits", r, EXIT_HLT);
	expect_eq("hlt-length", r.insn_len, 1);
	expect_eq("hlt-activity-active", vmread(VMCS_GUEST_ACTIVITY_STATE), 0);

	/* Without HLT exiting L2 sleeps until an interrupt: here a timer, straight into L2. */
	hits = 0;
	l2_prepare(l2_sleep);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_HLT);
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, VECTOR);
	lapic_write(APIC_TIMER_INITIAL, 200000);
	r = l2_launch();
	expect_true("hlt-woken-in-l2", l2_called(&r, 1));

	/* And with external-interrupt exiting: L1 gets it, L2's state says halted or already awake at the
	 * same RIP. */
	hits = 0;
	l2_prepare(l2_sleep);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_HLT);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	lapic_write(APIC_TIMER_INITIAL, 200000);
	r = l2_launch();
	expect_exit("hlt-timer-exits", r, EXIT_EXT_INT);
	sti_nop_cli();
	expect_eq("hlt-timer-once", hits, 1);
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, 0);
	r = l2_run();
	expect_true("hlt-resumed-behind", l2_called(&r, 1));
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
}

/* Many rounds of timer against entries: what was raised is what was seen. */
static void sum_of_deliveries(void)
{
	u32 exits = 0, lost = 0;

	l2_prepare(l2_raise);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	for (u32 i = 0; i < 200; i++) {
		struct vm_result r;

		hits = 0;
		l2_set_entry(l2_raise);
		r = l2_run();
		exits += r.reason == EXIT_EXT_INT;
		sti_nop_cli();
		lost += hits != 1;
	}
	expect_eq("rounds-all-exit", exits, 200);
	expect_eq("rounds-none-lost", lost, 0);
}

#define IOAPIC        0xfec00000ul
#define DEVICE_ROUNDS 3000u
#define SPARE_PIN     23u

/* Selects and reads or writes registers of a device that L1 leaves to L2. */
static u32 device_register(u32 index, const u32 *value)
{
	*(volatile u32 *)ptr_to(IOAPIC) = index;
	if (value)
		*(volatile u32 *)ptr_to(IOAPIC + 0x10) = *value;
	return *(volatile u32 *)ptr_to(IOAPIC + 0x10);
}

static u32 device_version;

static void l2_use_device(void)
{
	u64 wrong = 0;

	for (u32 i = 0; i < DEVICE_ROUNDS; i++) {
		u32 entry = 0x10000 | (i & 0xff);

		wrong += device_register(1, NULL) != device_version;
		wrong += device_register(0x10 + 2 * SPARE_PIN, &entry) != entry;
	}
	l2_call(wrong);
}

/* A fast timer of L1 ends L2 between and in the accesses: each is carried out once, for L2. */
static void timer_and_device(void)
{
	struct vm_result r;
	u32 ticks = 0;

	hits = 0;
	device_version = device_register(1, NULL);
	l2_prepare(l2_use_device);
	vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_ACK_INT);
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, VECTOR | LVT_PERIODIC);
	lapic_write(APIC_TIMER_INITIAL, 7001);
	for (r = l2_launch(); r.reason == EXIT_EXT_INT; r = l2_run()) {
		ticks++;
		lapic_eoi();
	}
	lapic_write(APIC_TIMER_INITIAL, 0);
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
	sti_nop_cli();
	expect_true("device-each-access-once", l2_called(&r, 0));
	expect_true("device-timer-came", ticks >= 5);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	lapic_enable();
	trap_handle(VECTOR, on_interrupt);
	exit_without_ack();
	exit_with_ack();
	straight_into_l2();
	pending_at_entry();
	timer_and_closed_l2();
	window();
	halt();
	sum_of_deliveries();
	timer_and_device();
}
