/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC timer: one-shot, periodic and TSC-deadline, first in xAPIC mode, then in x2APIC mode. SDM
 * "APIC Timer". */
#include "l1.h"

const char test_title[] = "local APIC timer";

#define VECTOR 0x61

static volatile u32 hits;
static volatile u64 last_hit;
static const char *mode;
static u64 rate; /* timer ticks in 1 ms at divide by 1 */

static void on_timer(struct regs *r)
{
	(void)r;
	hits++;
	last_hit = rdtsc();
	lapic_eoi();
}

static void wait_us(u64 us)
{
	sti();
	delay_us(us);
	cli();
}

static const char *named(const char *what)
{
	static char name[48];

	format_text(name, sizeof(name), "%s-%s", mode, what);
	return name;
}

static void calibrate(void)
{
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, VECTOR | LVT_MASKED);
	lapic_write(APIC_TIMER_INITIAL, 0xffffffff);
	delay_us(1000);
	rate = 0xffffffff - lapic_read(APIC_TIMER_CURRENT);
	expect_true(named("counts-down"), rate > 100);
	lapic_write(APIC_TIMER_INITIAL, 0);
	expect_eq(named("zero-stops"), lapic_read(APIC_TIMER_CURRENT), 0);
}

static void one_shot(void)
{
	hits = 0;
	lapic_write(APIC_LVT_TIMER, VECTOR);
	lapic_write(APIC_TIMER_INITIAL, (u32)rate);
	wait_us(500);
	expect_eq(named("one-shot-not-early"), hits, 0);
	wait_us(3000);
	expect_eq(named("one-shot-once"), hits, 1);
	expect_eq(named("one-shot-current"), lapic_read(APIC_TIMER_CURRENT), 0);
	lapic_write(APIC_LVT_TIMER, VECTOR | LVT_MASKED);
	lapic_write(APIC_TIMER_INITIAL, (u32)rate / 10);
	wait_us(1000);
	expect_eq(named("masked"), hits, 1);
}

static void divided(void)
{
	hits = 0;
	lapic_write(APIC_TIMER_DIVIDE, 0x3); /* by 16 */
	lapic_write(APIC_LVT_TIMER, VECTOR);
	lapic_write(APIC_TIMER_INITIAL, (u32)(rate / 8)); /* 2 ms */
	wait_us(1000);
	expect_eq(named("divide-16-not-early"), hits, 0);
	wait_us(3000);
	expect_eq(named("divide-16"), hits, 1);
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
}

static void periodic(void)
{
	u32 seen;

	hits = 0;
	lapic_write(APIC_LVT_TIMER, VECTOR | LVT_PERIODIC);
	lapic_write(APIC_TIMER_INITIAL, (u32)rate);
	wait_us(10500);
	seen = hits;
	expect_near(named("periodic-10ms"), seen, 9, 11);
	lapic_write(APIC_TIMER_INITIAL, 0);
	sti_nop_cli();
	hits = 0;
	wait_us(2000);
	expect_eq(named("periodic-stopped"), hits, 0);
}

static void deadline(void)
{
	u64 when;

	if (!(cpuid(1, 0).ecx & BIT(24))) {
		skip(named("deadline"), "no TSC-deadline mode");
		return;
	}
	hits = 0;
	lapic_write(APIC_LVT_TIMER, VECTOR | LVT_DEADLINE);
	asm volatile("mfence" : : : "memory");
	when = rdtsc() + us_to_tsc(1000);
	wrmsr(MSR_TSC_DEADLINE, when);
	expect_eq(named("deadline-reads-back"), rdmsr(MSR_TSC_DEADLINE), when);
	wait_us(3000);
	expect_eq(named("deadline-once"), hits, 1);
	expect_true(named("deadline-not-early"), last_hit >= when);
	expect_eq(named("deadline-reads-zero"), rdmsr(MSR_TSC_DEADLINE), 0);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() - 1);
	wait_us(100);
	expect_eq(named("deadline-in-the-past"), hits, 2);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + us_to_tsc(500));
	wrmsr(MSR_TSC_DEADLINE, 0);
	wait_us(1500);
	expect_eq(named("deadline-disarmed"), hits, 2);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + us_to_tsc(500));
	lapic_write(APIC_LVT_TIMER, VECTOR);
	wait_us(1500);
	expect_eq(named("deadline-mode-change-disarms"), hits, 2);
	wrmsr(MSR_TSC_DEADLINE, rdtsc() + us_to_tsc(100));
	expect_eq(named("deadline-ignored-in-other-mode"), rdmsr(MSR_TSC_DEADLINE), 0);
}

static void all(const char *which)
{
	mode = which;
	calibrate();
	one_shot();
	divided();
	periodic();
	deadline();
}

/* SDM "x2APIC Register Address Space": what is not a register faults; what is read-only or has reserved bits
 * too. */
static void x2apic_registers(void)
{
	u64 value = 0;

	expect_eq("x2-id", rdmsr(0x802), cpuid(1, 0).ebx >> 24);
	expect_eq("x2-reserved-800", try_rdmsr(0x800, NULL), GP);
	expect_eq("x2-no-dfr", try_rdmsr(0x80e, NULL), GP);
	expect_eq("x2-no-icr-high", try_rdmsr(0x831, NULL), GP);
	expect_eq("x2-reserved-bff", try_rdmsr(0xbff, NULL), GP);
	expect_eq("x2-eoi-read", try_rdmsr(0x80b, NULL), GP);
	expect_eq("x2-eoi-not-zero", try_wrmsr(0x80b, 1), GP);
	expect_eq("x2-id-write", try_wrmsr(0x802, 0), GP);
	expect_eq("x2-ldr-write", try_wrmsr(0x80d, 0), GP);
	expect_eq("x2-tpr-reserved", try_wrmsr(0x808, 0x100), GP);
	expect_eq("x2-svr-high-bits", try_wrmsr(0x80f, BIT(32) | 0x1ff), GP);
	expect_eq("x2-icr-read", try_rdmsr(0x830, &value), 0);
	expect_eq("x2-self-ipi-read", try_rdmsr(0x83f, NULL), GP);
	hits = 0;
	wrmsr(0x83f, VECTOR);
	sti_nop_cli();
	expect_eq("x2-self-ipi", hits, 1);
	expect_eq("x2-back-to-xapic", try_wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) & ~(u64)APIC_BASE_X2APIC),
		  GP);
	expect_true("x2-still-on", lapic_is_x2apic());
}

void test_main(void)
{
	tsc_hz(); /* measured now, so that no later delay is stretched by it */
	lapic_enable();
	trap_handle(VECTOR, on_timer);
	all("xapic");
	if (!cpu_has_x2apic()) {
		skip("x2apic", "no x2APIC");
		return;
	}
	lapic_enter_x2apic();
	expect_true("x2apic-mode", lapic_is_x2apic());
	lapic_enable();
	all("x2apic");
	x2apic_registers();
}
