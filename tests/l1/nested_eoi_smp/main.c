/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The EOI-exit bitmap of an L2 stays L2's while another CPU rewrites the IO-APIC and level-triggered
 * interrupts of L1 come with the same vector. SDM "Virtualized EOI".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: EOI-exit bitmap and a busy IO-APIC";

#define VIRTUAL 0x62 /* the vector of both */
#define ROUNDS  400u
#define ALL     (PROC2_VID | PROC2_APIC_REG | PROC2_APIC_ACCESS)

static u8 *vapic;
static u64 access_page;
static volatile u32 hits;
static volatile bool stop;
static volatile u32 rewrites;

static void on_virtual(struct regs *r)
{
	(void)r;
	hits++;
	*(volatile u32 *)ptr_to(access_page + APIC_EOI) = 0;
}

/* As in nested_apic: what the delivery needs is touched first. */
static void l2_open(void)
{
	(void)*(volatile u64 *)ptr_to(sidt().base + VIRTUAL * 16);
	(void)*(volatile u64 *)ptr_to(sgdt().base + SEL_CODE64);
	asm volatile("sti; nop; nop; cli");
}

/* The line is up nearly all the time: each time the entry is open for level triggers an interrupt comes. */
static void rewrite(u64 pin)
{
	while (!stop) {
		ioapic_set((u32)pin, (u64)cpus[0].apic_id << 56 | IOAPIC_LEVEL | VIRTUAL);
		delay_us(100);
		ioapic_set((u32)pin, (u64)cpus[0].apic_id << 56 | IOAPIC_MASKED | VIRTUAL);
		delay_us(100);
		rewrites++;
	}
	ioapic_mask_all();
}

static void prepare(void)
{
	l2_prepare(l2_open);
	vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_TPR_SHADOW);
	vmcs_set_bits(VMCS_PROC2_CTL, ALL);
	vmcs_set_bits(VMCS_EXIT_CTL, EXIT_ACK_INT);
	vmwrite(VMCS_VIRTUAL_APIC, addr_of(vapic));
	vmwrite(VMCS_APIC_ACCESS, access_page);
	for (u32 i = 0; i < 4; i++)
		vmwrite(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, 0);
}

struct counts {
	u32 eois, interrupts;
	bool done;
};

/* One virtual interrupt of L2, with as many of L1's as happen to come. */
static struct counts round(bool exiting)
{
	struct counts c = {0};
	struct vm_result r;

	hits = 0;
	l2_set_entry(l2_open);
	vmwrite(VMCS_EOI_EXIT_BITMAP_1, exiting ? BIT(VIRTUAL - 64) : 0);
	*(volatile u32 *)(void *)(vapic + APIC_IRR + 0x30) = 1u << (VIRTUAL - 0x60);
	vmwrite(VMCS_GUEST_INTR_STATUS, VIRTUAL);
	for (;;) {
		r = l2_run();
		if (r.reason == EXIT_EXT_INT)
			c.interrupts++, lapic_eoi();
		else if (r.reason == EXIT_EOI && r.qual == VIRTUAL)
			c.eois++;
		else
			break;
	}
	c.done = l2_called(&r, L2_DONE);
	return c;
}

void test_main(void)
{
	u32 wrong = 0, broken = 0, interrupts = 0;

	if (!vmx_available() || !vmx_start())
		return;
	if (!ctl_has(VMCS_PROC_CTL, PROC_TPR_SHADOW) || !proc2_has(ALL)) {
		skip("eoi-exit-bitmap", "not offered");
		return;
	}
	if (!expect_eq("cpus-online", cpu_start_all(), 2))
		return;
	lapic_enable();
	pic_init(0x40, 0x48);
	ioapic_mask_all();
	pit_set(0, PIT_RATE, 119);
	vapic = page_alloc();
	access_page = addr_of(page_alloc());
	trap_handle(VIRTUAL, on_virtual);
	prepare();
	cpu_run(1, rewrite, acpi.irq0_gsi);
	for (u32 i = 0; i < ROUNDS || rewrites < 20; i++) {
		struct counts c = round(i & 1);

		broken += !c.done || hits != 1;
		wrong += c.eois != (i & 1);
		interrupts += c.interrupts;
	}
	stop = true;
	cpu_wait(1);
	expect_eq("eoi-exits-as-l1-says", wrong, 0);
	expect_eq("each-delivered-once", broken, 0);
	expect_true("interrupts-of-l1-came", interrupts >= 5);
}
