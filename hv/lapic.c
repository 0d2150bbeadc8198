/* SPDX-License-Identifier: Apache-2.0 */
/* Local APIC access. The mode is chosen once and kept: going back from x2APIC to xAPIC is not allowed by
 * hardware. */
#include "hv/lapic.h"
#include "hv/apic_regs.h"
#include "hv/cpu.h"
#include "hv/print.h"
#include "hv/tsc.h"
#include "hv/x86.h"
#include "mm/hostpt.h"

#define LVT_NMI          0x400
#define LVT_TSC_DEADLINE BIT32(18)
#define DIVIDE_BY_1      0xb
#define ICR_NMI          0x400
#define ICR_INIT         0x500
#define ICR_STARTUP      0x600
#define ICR_ASSERT       0x4000
#define ICR_BUSY         BIT32(12)
#define BUSY_LOOPS       1000000

static bool x2apic, tsc_deadline;
static volatile u32 *regs; /* xAPIC only */
static u64 timer_hz;       /* of the initial-count timer, divided by 1 */

static u32 lapic_read(enum apic_reg r)
{
	return x2apic ? (u32)rdmsr(MSR_X2APIC_BASE + (u32)r / 16) : regs[r / 4];
}

static void lapic_write(enum apic_reg r, u32 v)
{
	if (x2apic)
		wrmsr(MSR_X2APIC_BASE + (u32)r / 16, v);
	else
		regs[r / 4] = v;
}

static void choose_mode(void)
{
	u32 features = cpuid(1, 0).ecx;

	x2apic = features & BIT32(21);
	tsc_deadline = features & BIT32(24);
	if (!x2apic)
		regs = hostpt_map_device(HPA(rdmsr(MSR_APIC_BASE) & 0xffffff000ull), PAGE_SIZE);
}

/* Pins: LINT1 is the machine's NMI line, LINT0 (the PIC) stays masked: L0 uses no PIC interrupt. */
static void set_lvts(void)
{
	u32 max = (lapic_read(APIC_VERSION) >> 16) & 0xff;

	lapic_write(APIC_LVT_TIMER, LVT_MASKED | HOST_VEC_TIMER);
	lapic_write(APIC_LVT_LINT0, LVT_MASKED | HOST_VEC_SPURIOUS);
	lapic_write(APIC_LVT_LINT1, LVT_NMI);
	lapic_write(APIC_LVT_ERROR, LVT_MASKED | HOST_VEC_SPURIOUS);
	if (max >= 4)
		lapic_write(APIC_LVT_PERF, LVT_MASKED | HOST_VEC_SPURIOUS);
	if (max >= 5)
		lapic_write(APIC_LVT_THERMAL, LVT_MASKED | HOST_VEC_SPURIOUS);
	if (max >= 6)
		lapic_write(APIC_CMCI, LVT_MASKED | HOST_VEC_SPURIOUS);
}

void lapic_init(bool boot)
{
	u64 base = rdmsr(MSR_APIC_BASE);

	if (boot)
		choose_mode();
	wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE);
	if (x2apic)
		wrmsr(MSR_APIC_BASE, base | APIC_BASE_ENABLE | APIC_BASE_X2APIC);
	lapic_write(APIC_SVR, SVR_ENABLE | HOST_VEC_SPURIOUS);
	set_lvts();
	lapic_write(APIC_TPR, 0);
	lapic_write(APIC_TIMER_DIVIDE, DIVIDE_BY_1);
	lapic_write(APIC_LVT_TIMER, HOST_VEC_TIMER | (tsc_deadline ? LVT_TSC_DEADLINE : 0));
	/* SDM "TSC-Deadline Mode": the write to the LVT must be seen before one to the deadline MSR. */
	asm volatile("mfence" : : : "memory");
}

void lapic_measure(void)
{
	u32 from, to;
	u64 tsc;

	if (tsc_deadline)
		return;
	lapic_write(APIC_LVT_TIMER, LVT_MASKED | HOST_VEC_TIMER);
	lapic_write(APIC_TIMER_INITIAL, 0xffffffff);
	from = lapic_read(APIC_TIMER_CURRENT);
	tsc = rdtsc();
	tsc_delay_us(10000);
	to = lapic_read(APIC_TIMER_CURRENT);
	timer_hz = mul_div(from - to, tsc_hz, rdtsc() - tsc);
	lapic_write(APIC_TIMER_INITIAL, 0);
	lapic_write(APIC_LVT_TIMER, HOST_VEC_TIMER);
	log_debug("local APIC timer: %llu Hz", (unsigned long long)timer_hz);
}

u32 lapic_id(void)
{
	return x2apic ? lapic_read(APIC_ID) : lapic_read(APIC_ID) >> 24;
}

u32 lapic_cpuid_id(void)
{
	struct cpuid topology = cpuid(0, 0).eax >= 0xb ? cpuid(0xb, 0) : (struct cpuid){0};

	return topology.ebx ? topology.edx : cpuid(1, 0).ebx >> 24;
}

void lapic_eoi(void)
{
	lapic_write(APIC_EOI, 0);
}

void lapic_set_pmi(bool on)
{
	lapic_write(APIC_LVT_PERF, on ? HOST_VEC_PMI : LVT_MASKED | HOST_VEC_SPURIOUS);
}

static void wait_icr(void)
{
	for (u32 i = 0; i < BUSY_LOOPS && (lapic_read(APIC_ICR) & ICR_BUSY); i++)
		cpu_relax();
}

static void send(u32 apic_id, u32 command)
{
	if (x2apic) {
		/* The write is not serialising: what the target shall see must be out before (SDM "MSR Access
		 * in x2APIC Mode"). */
		asm volatile("mfence; lfence" : : : "memory");
		wrmsr(MSR_X2APIC_BASE + APIC_ICR / 16, (u64)apic_id << 32 | command);
		return;
	}
	if (apic_id >= 0xff)
		return; /* not reachable in xAPIC mode, and 0xff would be everybody */
	wait_icr();
	lapic_write(APIC_ICR2, apic_id << 24);
	lapic_write(APIC_ICR, command);
}

void lapic_ipi(u32 apic_id, u8 vector)
{
	send(apic_id, ICR_ASSERT | vector);
}

void lapic_nmi(u32 apic_id)
{
	send(apic_id, ICR_ASSERT | ICR_NMI);
}

void lapic_send_init(u32 apic_id)
{
	send(apic_id, ICR_ASSERT | ICR_INIT);
}

void lapic_send_startup(u32 apic_id, hpa_t page)
{
	send(apic_id, ICR_ASSERT | ICR_STARTUP | (u32)(page.v >> PAGE_SHIFT));
}

/* A count that does not fit fires early; timer_run then finds nothing due and sets the rest. */
static void set_count(u64 deadline)
{
	s64 ticks = (s64)(deadline - rdtsc());
	u64 count = ticks > 0 ? mul_div((u64)ticks, timer_hz, tsc_hz) : 0;

	lapic_write(APIC_TIMER_INITIAL, (u32)MIN(count, 0xfffffffeu) + 1);
}

void lapic_timer_set(u64 deadline)
{
	if (tsc_deadline)
		wrmsr(MSR_TSC_DEADLINE, deadline ? deadline : 1);
	else
		set_count(deadline);
}

void cpu_kick(struct cpu *c)
{
	lapic_ipi(c->apic_id, HOST_VEC_KICK);
}
