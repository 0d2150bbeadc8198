/* SPDX-License-Identifier: Apache-2.0 */
/* Local APIC access. The mode is read from the CPU each time, so that a test may change it freely. */
#include "lapic.h"
#include "x86.h"

#define MMIO 0xfee00000u

/* CPUID is asked once: it would exit when an L2 comes here. */
bool lapic_is_x2apic(void)
{
	static u8 known; /* 1 no, 2 yes */

	if (!known)
		known = cpu_has_x2apic() ? 2 : 1;
	return known == 2 && (rdmsr(MSR_APIC_BASE) & APIC_BASE_X2APIC);
}

u32 lapic_read(u32 reg)
{
	if (lapic_is_x2apic())
		return (u32)rdmsr(0x800 + reg / 16);
	return *(volatile u32 *)ptr_to(MMIO + reg);
}

void lapic_write(u32 reg, u32 v)
{
	if (lapic_is_x2apic())
		wrmsr(0x800 + reg / 16, v);
	else
		*(volatile u32 *)ptr_to(MMIO + reg) = v;
}

void lapic_enable(void)
{
	lapic_write(APIC_SVR, 0x100 | VEC_SPURIOUS);
	lapic_write(APIC_TPR, 0);
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
	lapic_write(APIC_LVT_LINT0, LVT_MASKED);
	lapic_write(APIC_LVT_LINT1, LVT_MASKED);
	lapic_write(APIC_LVT_ERROR, LVT_MASKED);
}

void lapic_enter_x2apic(void)
{
	wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | APIC_BASE_X2APIC);
}

void lapic_eoi(void)
{
	lapic_write(APIC_EOI, 0);
}

void lapic_ipi(u32 dest, u32 low)
{
	if (lapic_is_x2apic()) {
		barrier();
		wrmsr(0x800 + APIC_ICR / 16, (u64)dest << 32 | low);
		return;
	}
	lapic_write(APIC_ICR_HIGH, dest << 24);
	lapic_write(APIC_ICR, low);
	while (lapic_read(APIC_ICR) & ICR_PENDING)
		cpu_pause();
}

bool lapic_bit(u32 bank, u32 vector)
{
	return lapic_read(bank + vector / 32 * 16) >> vector % 32 & 1;
}
