/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APIC virtualisation for L2: TPR shadow and its threshold, the APIC-access page, x2APIC mode, register
 * virtualisation and virtual-interrupt delivery, each where it is offered. SDM "APIC Virtualization and
 * Virtual Interrupts".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: APIC virtualisation";

static u8 *vapic;
static volatile u64 seen;
static u64 access_page;

static volatile u32 *vreg(u32 reg)
{
	return (volatile u32 *)(void *)(vapic + reg);
}

static void l2_cr8(void)
{
	write_cr8(9);
	seen = read_cr8();
}

static void l2_lower_tpr(void)
{
	write_cr8(2);
	l2_call(1);
}

static void l2_read_id(void)
{
	seen = *(volatile u32 *)ptr_to(access_page + APIC_ID);
}

static void l2_write_tpr(void)
{
	*(volatile u32 *)ptr_to(access_page + APIC_TPR) = 0x70;
	seen = *(volatile u32 *)ptr_to(access_page + APIC_TPR);
}

static void l2_write_eoi(void)
{
	*(volatile u32 *)ptr_to(access_page + APIC_EOI) = 0;
}

static void l2_rdmsr_tpr(void)
{
	wrmsr(0x808, 0x50);
	seen = rdmsr(0x808);
}

static void prepare(l2_fn *fn, u64 proc2)
{
	memset(vapic, 0, PAGE_SIZE);
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_TPR_SHADOW);
	vmcs_set_bits(VMCS_PROC2_CTL, proc2);
	vmwrite(VMCS_VIRTUAL_APIC, addr_of(vapic));
	vmwrite(VMCS_TPR_THRESHOLD, 0);
	if (proc2_has(PROC2_APIC_ACCESS))
		vmwrite(VMCS_APIC_ACCESS, access_page);
}

static void tpr_shadow(void)
{
	struct vm_result r;

	prepare(l2_cr8, 0);
	r = l2_launch();
	expect_done("cr8-run", r);
	expect_eq("cr8-reads-back", seen, 9);
	expect_eq("cr8-in-virtual-apic", *vreg(APIC_TPR), 0x90);
	expect_eq("cr8-not-in-l1-apic", lapic_read(APIC_TPR), 0);
	prepare(l2_lower_tpr, 0);
	*vreg(APIC_TPR) = 0x80;
	vmwrite(VMCS_TPR_THRESHOLD, 5);
	r = l2_launch();
	expect_exit("threshold-exit", r, EXIT_TPR);
	expect_eq("threshold-trap-like", *vreg(APIC_TPR), 0x20);
	vmwrite(VMCS_TPR_THRESHOLD, 0);
	r = l2_run();
	expect_true("threshold-goes-on", l2_called(&r, 1));
}

static void apic_access(void)
{
	struct vm_result r;

	if (!proc2_has(PROC2_APIC_ACCESS)) {
		skip("apic-access", "not offered");
		return;
	}
	prepare(l2_read_id, PROC2_APIC_ACCESS);
	r = l2_launch();
	expect_exit("access-read", r, EXIT_APIC_ACCESS);
	expect_eq("access-read-qualification", r.qual & 0xffff, APIC_ID);
	prepare(l2_write_eoi, PROC2_APIC_ACCESS);
	r = l2_launch();
	expect_exit("access-write", r, EXIT_APIC_ACCESS);
	expect_eq("access-write-qualification", r.qual & 0xffff, 0x1000 | APIC_EOI);
	prepare(l2_write_tpr, PROC2_APIC_ACCESS);
	r = l2_launch();
	expect_done("access-tpr-virtualised", r);
	expect_eq("access-tpr-value", seen, 0x70);
	expect_eq("access-tpr-in-virtual-apic", *vreg(APIC_TPR), 0x70);
	prepare(l2_read_id, 0);
	*(u32 *)ptr_to(access_page + APIC_ID) = 0x42;
	r = l2_launch();
	expect_done("access-off-is-memory", r);
	expect_eq("access-off-value", seen, 0x42);
}

static void register_virtualisation(void)
{
	struct vm_result r;

	if (!proc2_has(PROC2_APIC_REG | PROC2_APIC_ACCESS)) {
		skip("register-virtualisation", "not offered");
		return;
	}
	prepare(l2_read_id, PROC2_APIC_ACCESS | PROC2_APIC_REG);
	*vreg(APIC_ID) = 0x5000000;
	r = l2_launch();
	expect_done("register-read-run", r);
	expect_eq("register-read", seen, 0x5000000);
	prepare(l2_write_eoi, PROC2_APIC_ACCESS | PROC2_APIC_REG);
	r = l2_launch();
	expect_exit("register-write-exit", r, EXIT_APIC_WRITE);
	expect_eq("register-write-offset", r.qual & 0xfff, APIC_EOI);
}

static void x2apic_mode(void)
{
	struct vm_result r;

	if (!proc2_has(PROC2_X2APIC)) {
		skip("x2apic-mode", "not offered");
		return;
	}
	prepare(l2_rdmsr_tpr, PROC2_X2APIC);
	r = l2_launch();
	expect_done("x2apic-tpr-run", r);
	expect_eq("x2apic-tpr", seen, 0x50);
	expect_eq("x2apic-tpr-in-virtual-apic", *vreg(APIC_TPR), 0x50);
}

static volatile u32 hits;

static void on_virtual(struct regs *r)
{
	(void)r;
	hits++;
	*(volatile u32 *)ptr_to(access_page + APIC_EOI) = 0;
}

/*
 * The descriptors of the delivery are touched first: when it stops at a page that the machine below has yet
 * to map, Bochs does not say which virtual interrupt was on its way (IDT-vectoring information), so it cannot
 * come back.
 */
static void l2_open(void)
{
	(void)*(volatile u64 *)ptr_to(sidt().base + 0x62 * 16);
	(void)*(volatile u64 *)ptr_to(sgdt().base + SEL_CODE64);
	asm volatile("sti; nop; nop; cli");
	l2_call(hits);
}

/* RVI above PPR is delivered when L2 opens interrupts; its EOI exits only when the bitmap says so. */
static void interrupt_delivery(void)
{
	u64 all = PROC2_VID | PROC2_APIC_REG | PROC2_APIC_ACCESS;
	struct vm_result r;

	if (!proc2_has(all)) {
		skip("interrupt-delivery", "not offered");
		return;
	}
	trap_handle(0x62, on_virtual);
	for (u32 exiting = 0; exiting < 2; exiting++) {
		hits = 0;
		prepare(l2_open, all);
		vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
		for (u32 i = 0; i < 4; i++)
			vmwrite(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, 0);
		if (exiting)
			vmwrite(VMCS_EOI_EXIT_BITMAP_1, BIT(0x62 - 64));
		*vreg(APIC_IRR + 0x30) = 1u << (0x62 - 0x60);
		vmwrite(VMCS_GUEST_INTR_STATUS, 0x62);
		r = l2_launch();
		if (exiting) {
			expect_exit("eoi-exit", r, EXIT_EOI);
			expect_eq("eoi-exit-vector", r.qual, 0x62);
			r = l2_run();
		}
		expect_true(exiting ? "delivered-with-eoi-exit" : "delivered", l2_called(&r, 1));
		expect_eq(exiting ? "status-after-eoi-exit" : "status-after-eoi",
			  vmread(VMCS_GUEST_INTR_STATUS), 0);
		expect_eq(exiting ? "irr-after-eoi-exit" : "irr-after-eoi", *vreg(APIC_IRR + 0x30), 0);
	}
	trap_handle(0x62, NULL);
}

static void l2_sleep(void)
{
	asm volatile("sti; hlt; cli");
	l2_call(hits);
}

#define ALARM 0x55

static volatile u32 alarms;

static void on_alarm(struct regs *r)
{
	(void)r;
	alarms++;
	lapic_eoi();
}

/* SDM "Virtual-Interrupt Delivery": it ends a halt, whether L2 came there by itself or by the entry. Where it
 * does not, as in Bochs, the alarm does. */
static void interrupt_wakes(void)
{
	const u64 all = PROC2_VID | PROC2_APIC_REG | PROC2_APIC_ACCESS;
	struct vm_result r;

	if (!proc2_has(all)) {
		skip("interrupt-wakes", "not offered");
		return;
	}
	trap_handle(0x62, on_virtual);
	for (u32 halted = 0; halted < 2; halted++) {
		hits = 0;
		prepare(halted ? l2_open : l2_sleep, all);
		vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
		vmcs_clear_bits(VMCS_PROC_CTL, PROC_HLT);
		vmwrite(VMCS_EOI_EXIT_BITMAP_1, 0);
		if (halted) {
			vmwrite(VMCS_GUEST_ACTIVITY_STATE, 1);
			vmcs_set_bits(VMCS_GUEST_RFLAGS, BIT(9));
		}
		*vreg(APIC_IRR + 0x30) = 1u << (0x62 - 0x60);
		vmwrite(VMCS_GUEST_INTR_STATUS, 0x62);
		lapic_write(APIC_LVT_TIMER, ALARM);
		lapic_write(APIC_TIMER_INITIAL, 1000000);
		r = l2_launch();
		lapic_write(APIC_TIMER_INITIAL, 0);
		sti_nop_cli();
		expect_true(halted ? "wakes-from-entered-halt" : "wakes-from-hlt", l2_called(&r, 1));
	}
	trap_handle(0x62, NULL);
}

static void l2_lower_l1_tpr(void)
{
	write_cr8(0);
	asm volatile("nop; nop");
	l2_call(alarms);
}

/* Without a TPR shadow CR8 of L2 is L1's own: an interrupt of L1 that waited for it comes now, as an exit or
 * in L2. */
static void interrupt_waits_for_l1_tpr(void)
{
	struct vm_result r;

	for (u32 exiting = 0; exiting < 2; exiting++) {
		alarms = 0;
		l2_prepare(l2_lower_l1_tpr);
		vmwrite(VMCS_GUEST_RFLAGS, 2 | BIT(9));
		if (exiting)
			vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
		lapic_write(APIC_TPR, 0x80);
		lapic_ipi(0, ICR_SELF | ICR_ASSERT | ALARM);
		r = l2_launch();
		expect_eq(exiting ? "l1-tpr-lowered" : "l1-tpr-lowered-no-exit", lapic_read(APIC_TPR), 0);
		if (exiting) {
			expect_exit("l1-tpr-exit", r, EXIT_EXT_INT);
			sti_nop_cli();
			expect_eq("l1-tpr-taken", alarms, 1);
			r = l2_run();
		}
		expect_true(exiting ? "l1-tpr-goes-on" : "l1-tpr-taken-in-l2", l2_called(&r, 1));
	}
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!ctl_has(VMCS_PROC_CTL, PROC_TPR_SHADOW)) {
		skip("tpr-shadow", "not offered");
		return;
	}
	lapic_enable();
	vapic = page_alloc();
	access_page = addr_of(page_alloc());
	trap_handle(ALARM, on_alarm);
	tpr_shadow();
	interrupt_waits_for_l1_tpr();
	apic_access();
	register_virtualisation();
	x2apic_mode();
	interrupt_delivery();
	interrupt_wakes();
}
