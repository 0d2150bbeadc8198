/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posted interrupts, where they are offered: the notification is processed without an exit wherever L2
 * stands, another interrupt exits. SDM "Posted-Interrupt Processing".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: posted interrupts";

#define NOTIFY 0xe5
#define OTHER  0xe6
#define POSTED 0x62
#define HIGHER 0x73
#define ALL    (PROC2_VID | PROC2_APIC_REG | PROC2_APIC_ACCESS)

static u8 *vapic;
static u64 access_page;
static volatile u64 *descriptor; /* four words of requests, then the one with ON */
static volatile u32 hits, first;

static void on_posted(struct regs *r)
{
	if (!hits++)
		first = (u32)r->vector;
	*(volatile u32 *)ptr_to(access_page + APIC_EOI) = 0;
}

/* As in nested_apic: what the delivery needs is touched first. */
static void touch(void)
{
	(void)*(volatile u64 *)ptr_to(sidt().base + POSTED * 16);
	(void)*(volatile u64 *)ptr_to(sgdt().base + SEL_CODE64);
}

static void l2_open(void)
{
	touch();
	asm volatile("sti; nop; nop; cli");
	l2_call(hits);
}

static void l2_spin(void)
{
	touch();
	asm volatile("sti");
	for (u32 i = 0; i < 100000000 && !hits; i++)
		cpu_pause();
	asm volatile("cli");
	l2_call(hits);
}

static void l2_sleep(void)
{
	touch();
	asm volatile("sti; hlt; cli");
	l2_call(hits);
}

static void post(u32 vector)
{
	descriptor[vector / 64] |= BIT(vector % 64);
	descriptor[4] |= 1;
}

static void prepare(l2_fn *fn)
{
	hits = 0;
	memset(vapic, 0, PAGE_SIZE);
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT | PIN_POSTED);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_TPR_SHADOW);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_HLT);
	vmcs_set_bits(VMCS_PROC2_CTL, ALL);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_ACK_INT);
	vmwrite(VMCS_VIRTUAL_APIC, addr_of(vapic));
	vmwrite(VMCS_APIC_ACCESS, access_page);
	vmwrite(VMCS_GUEST_INTR_STATUS, 0);
	for (u32 i = 0; i < 4; i++)
		vmwrite(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, 0);
	vmwrite(VMCS_POSTED_VECTOR, NOTIFY);
	vmwrite(VMCS_POSTED_DESC, addr_of(descriptor));
}

static void notify(u32 vector)
{
	lapic_ipi(0, ICR_SELF | ICR_ASSERT | vector);
}

static void at_entry(void)
{
	struct vm_result r;

	prepare(l2_open);
	post(POSTED);
	post(HIGHER);
	descriptor[4] |= 2; /* SN is no business of the processing */
	notify(NOTIFY);
	r = l2_launch();
	expect_true("posted-at-entry", l2_called(&r, 2));
	expect_eq("posted-highest-first", first, HIGHER);
	expect_eq("posted-requests-taken", descriptor[0] | descriptor[1], 0);
	expect_eq("posted-on-cleared", descriptor[4], 2);
	expect_true("posted-dismissed", !lapic_bit(APIC_IRR, NOTIFY) && !lapic_bit(APIC_ISR, NOTIFY));
	descriptor[4] = 0;
}

/* A notification with nothing posted, and one that L2 cannot take yet. */
static void nothing_to_take(void)
{
	struct vm_result r;

	prepare(l2_open);
	notify(NOTIFY);
	r = l2_launch();
	expect_true("posted-nothing", l2_called(&r, 0));
	prepare(l2_open);
	*(volatile u32 *)(void *)(vapic + APIC_TPR) = 0x70;
	post(POSTED);
	notify(NOTIFY);
	r = l2_launch();
	expect_true("posted-below-tpr", l2_called(&r, 0));
	expect_eq("posted-rvi", vmread(VMCS_GUEST_INTR_STATUS), POSTED);
}

static void from_the_timer(const char *name, l2_fn *fn)
{
	struct vm_result r;

	prepare(fn);
	post(POSTED);
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, NOTIFY);
	lapic_write(APIC_TIMER_INITIAL, 100000);
	r = l2_launch();
	lapic_write(APIC_TIMER_INITIAL, 0);
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
	expect_true(name, l2_called(&r, 1));
}

static void another_vector(void)
{
	struct vm_result r;

	prepare(l2_open);
	notify(OTHER);
	post(POSTED);
	r = l2_launch();
	expect_exit("posted-other-vector-exits", r, EXIT_EXT_INT);
	expect_eq("posted-other-vector", r.intr_info & 0xff, OTHER);
	expect_eq("posted-stays", descriptor[4], 1);
	lapic_eoi();
	notify(NOTIFY);
	r = l2_run();
	expect_true("posted-after-another", l2_called(&r, 1));
}

#define POSTS 2000u

/* As an L1 posts for an L2 on another CPU: the request, then ON, and a notification if it was clear. */
static void poster(u64 arg)
{
	(void)arg;
	for (u32 i = 0; i < POSTS; i++) {
		while (hits != i)
			cpu_pause();
		__atomic_fetch_or(&descriptor[POSTED / 64], BIT(POSTED % 64), __ATOMIC_SEQ_CST);
		if (!(__atomic_fetch_or(&descriptor[4], 1, __ATOMIC_SEQ_CST) & 1))
			lapic_ipi(cpus[0].apic_id, ICR_ASSERT | NOTIFY);
	}
}

static void l2_take_all(void)
{
	touch();
	asm volatile("sti");
	for (u32 i = 0; i < 100000000 && hits < POSTS; i++)
		cpu_pause();
	asm volatile("cli");
	l2_call(hits);
}

static void from_another_cpu(void)
{
	struct vm_result r;

	prepare(l2_take_all);
	cpu_run(1, poster, 0);
	r = l2_launch();
	expect_true("posted-by-another-cpu", l2_called(&r, POSTS));
	cpu_wait_for(1, 1000000);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!ctl_has(VMCS_PIN_CTL, PIN_POSTED) || !proc2_has(ALL)) {
		skip("posted", "not offered");
		return;
	}
	lapic_enable();
	vapic = page_alloc();
	access_page = addr_of(page_alloc());
	descriptor = (volatile u64 *)page_alloc() + 8; /* 64-byte aligned is enough */
	trap_handle(POSTED, on_posted);
	trap_handle(HIGHER, on_posted);
	at_entry();
	nothing_to_take();
	from_the_timer("posted-while-running", l2_spin);
	from_the_timer("posted-while-halted", l2_sleep);
	another_vector();
	if (cpu_start_all() == 2)
		from_another_cpu();
}
