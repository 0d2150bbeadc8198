/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an L1 that is no hypervisor: its exits to L0, and its local APIC in x2APIC mode. */
#include "bench.h"

#define VECTOR       0x61
#define X2APIC_EOI   0x80b
#define X2APIC_TIMER 0x832
#define X2APIC_SELF  0x83f
#define WAKE_AFTER   40000 /* ticks: long enough for HLT to be reached, whatever L0 does */

static u64 tsc_adjust;
static volatile u64 woken;
static volatile u32 taken;

static void op_cpuid(void)
{
	cpuid(0, 0);
}

static void op_rdmsr(void)
{
	rdmsr(MSR_TSC_ADJUST);
}

static void op_wrmsr(void)
{
	wrmsr(MSR_TSC_ADJUST, tsc_adjust);
}

/* The PIC's mask, which KVM has in the kernel too; and the RTC, which it leaves to QEMU. */
static void op_in(void)
{
	inb(0x21);
}

static void op_in_rtc(void)
{
	inb(0x71);
}

static void op_out(void)
{
	outb(0x80, 0);
}

static void op_mmio(void)
{
	asm volatile("mov (%0), %%eax" : : "r"((u64)acpi.ioapic_base + 0x10) : "eax", "memory");
}

void rows_l1(void)
{
	MEASURE("cpuid", op_cpuid);
	MEASURE("rdmsr", op_rdmsr);
	tsc_adjust = rdmsr(MSR_TSC_ADJUST);
	MEASURE("wrmsr", op_wrmsr);
	MEASURE("port-in", op_in);
	MEASURE("port-in-rtc", op_in_rtc);
	MEASURE("port-out", op_out);
	MEASURE("mmio", op_mmio);
}

/* The library's own EOI would ask for the APIC's mode first. */
static void on_interrupt(struct regs *r)
{
	(void)r;
	woken = rdtsc();
	taken++;
	wrmsr(X2APIC_EOI, 0);
}

static void op_self_ipi(void)
{
	wrmsr(X2APIC_SELF, VECTOR);
	asm volatile("sti; nop; cli" : : : "memory");
}

static void op_eoi(void)
{
	wrmsr(X2APIC_EOI, 0);
}

static void op_timer_now(void)
{
	wrmsr(MSR_TSC_DEADLINE, 1);
	asm volatile("sti; nop; cli" : : : "memory");
}

/* From the deadline to the first instruction of L1's handler, in the middle of a HLT. */
static u64 wake_delay(void)
{
	u64 best = ~0ull;

	for (u32 i = 0; i < BATCHES; i++) {
		u64 deadline = rdtsc() + WAKE_AFTER, late;

		wrmsr(MSR_TSC_DEADLINE, deadline);
		sti_hlt_cli();
		late = woken - deadline;
		best = late < best ? late : best;
	}
	return best;
}

static void named_row(const char *name, const char *suffix, u64 ticks, u32 operations)
{
	char text[40];

	format_text(text, sizeof(text), "%s%s", name, suffix);
	row(text, ticks, operations);
}

void rows_apic(const char *suffix)
{
	if (!cpu_has_x2apic() || !(cpuid(1, 0).ecx & BIT(24))) {
		skip("apic", "no x2APIC or no TSC-deadline timer");
		return;
	}
	lapic_enable();
	lapic_enter_x2apic();
	trap_handle(VECTOR, on_interrupt);
	named_row("self-ipi", suffix, best_of(op_self_ipi), ROUNDS);
	expect_eq("each-ipi-taken", taken, 3 + BATCHES * ROUNDS); /* three before the batches */
	named_row("eoi", suffix, best_of(op_eoi), ROUNDS);
	wrmsr(X2APIC_TIMER, LVT_DEADLINE | VECTOR);
	named_row("timer-now", suffix, best_of(op_timer_now), ROUNDS);
	expect_eq("each-timer-taken", taken, 2 * (3 + BATCHES * ROUNDS));
	named_row("hlt-wake", suffix, wake_delay(), 1);
}
