/* SPDX-License-Identifier: Apache-2.0 */
/* GDT and TSS of each CPU, start-up of application processors and their idle loop. */
#include "cpu.h"
#include "acpi.h"
#include "lapic.h"
#include "report.h"
#include "timer.h"
#include "trap.h"

#define TRAMPOLINE 0x8000u
#define STACK_SIZE 16384

extern const u8 ap_trampoline[], ap_trampoline_end[];
void ap_main(u32 cpu) __attribute__((noreturn));

struct cpu cpus[MAX_CPUS];
u32 cpu_count = 1;
u8 cpu_stack[MAX_CPUS][STACK_SIZE] __attribute__((aligned(16)));
u8 apic_to_cpu[256];
static u8 trap_stack[MAX_CPUS][4096] __attribute__((aligned(16)));
static u8 df_stack[MAX_CPUS][4096] __attribute__((aligned(16)));

u64 gdt[8 + 2 * MAX_CPUS] __attribute__((aligned(16))) = {
	0,
	0x00af9b000000ffff, /* 08 code, 64-bit */
	0x00cf93000000ffff, /* 10 data */
	0x00cf9b000000ffff, /* 18 code, 32-bit */
	0x00cff3000000ffff, /* 20 data, ring 3 */
	0x00affb000000ffff, /* 28 code, 64-bit, ring 3 */
	0x000f9b000000ffff, /* 30 code, 16-bit */
};

u64 tss_base(u32 cpu)
{
	return addr_of(&cpus[cpu].tss);
}

static void load_tss(u32 cpu)
{
	struct tss *t = &cpus[cpu].tss;
	u64 base = addr_of(t);

	*t = (struct tss){.io_map = sizeof(*t)};
	t->rsp[0] = addr_of(trap_stack[cpu]) + sizeof(trap_stack[0]);
	t->ist[0] = addr_of(df_stack[cpu]) + sizeof(df_stack[0]);
	gdt[8 + 2 * cpu] = 0x0000890000000067ull | (base & 0xffffff) << 16 | (base >> 24 & 0xff) << 56;
	gdt[9 + 2 * cpu] = base >> 32;
	lgdt((struct desc_ptr){sizeof(gdt) - 1, addr_of(gdt)});
	asm volatile("ltr %0" : : "r"((u16)(SEL_TSS + 16 * cpu)));
}

void cpu_init(void)
{
	load_tss(0);
}

void cpu_list(void)
{
	u32 self = cpuid(1, 0).ebx >> 24;

	cpus[0].apic_id = self;
	cpus[0].online = true;
	for (u32 i = 0; i < acpi.cpu_count; i++) {
		if (acpi.cpu_apic_id[i] == self || cpu_count == MAX_CPUS)
			continue;
		apic_to_cpu[acpi.cpu_apic_id[i] & 0xff] = (u8)cpu_count;
		cpus[cpu_count++].apic_id = acpi.cpu_apic_id[i];
	}
}

static void wake(struct regs *r)
{
	(void)r;
	lapic_eoi();
}

static void idle_loop(struct cpu *c)
{
	for (;;) {
		cli();
		while (!c->fn)
			sti_hlt_cli();
		c->fn(c->arg);
		barrier();
		c->fn = NULL;
	}
}

void ap_main(u32 cpu)
{
	load_tss(cpu);
	trap_load();
	lapic_enable();
	cpus[cpu].fn = NULL;
	cpus[cpu].starts++;
	cpus[cpu].online = true;
	idle_loop(&cpus[cpu]);
	__builtin_unreachable();
}

void cpu_place_trampoline(void)
{
	trap_handle(VEC_WAKE, wake);
	memcpy(ptr_to(TRAMPOLINE), ap_trampoline, (size_t)(ap_trampoline_end - ap_trampoline));
}

bool cpu_wait_online(u32 cpu, u32 microseconds)
{
	u64 end = rdtsc() + us_to_tsc(microseconds);

	while (!cpus[cpu].online)
		if (rdtsc() > end)
			return false;
	return true;
}

/* SDM "MP Initialization Protocol Requirements and Restrictions": INIT, 10 ms, SIPI, 200 us, SIPI. */
u32 cpu_start_all(void)
{
	u32 online = 1;

	cpu_place_trampoline();
	lapic_enable();
	for (u32 i = 1; i < cpu_count; i++) {
		lapic_ipi(cpus[i].apic_id, ICR_INIT | ICR_ASSERT);
		delay_us(10000);
		lapic_ipi(cpus[i].apic_id, ICR_STARTUP | ICR_ASSERT | TRAMPOLINE >> 12);
		if (!cpu_wait_online(i, 200))
			lapic_ipi(cpus[i].apic_id, ICR_STARTUP | ICR_ASSERT | TRAMPOLINE >> 12);
		online += cpu_wait_online(i, 500000);
	}
	return online;
}

void cpu_run(u32 cpu, cpu_fn *fn, u64 arg)
{
	cpu_wait(cpu);
	cpus[cpu].arg = arg;
	barrier();
	cpus[cpu].fn = fn;
	lapic_ipi(cpus[cpu].apic_id, ICR_FIXED | ICR_ASSERT | VEC_WAKE);
}

void cpu_wait(u32 cpu)
{
	while (cpus[cpu].fn)
		cpu_pause();
}

bool cpu_wait_for(u32 cpu, u32 microseconds)
{
	u64 end = rdtsc() + us_to_tsc(microseconds);

	while (cpus[cpu].fn)
		if (rdtsc() > end)
			return false;
	return true;
}

#define DISMISSED (~0u)

static volatile u32 asked, answered;
static volatile u64 answer;

void cpu_answer(u64 (*look)(void))
{
	u32 last = 0;

	sti(); /* an emulator's quirk: with IF=0 no host interrupt ends the guest's turn */
	while (asked != DISMISSED) {
		if (asked == last)
			continue;
		last = asked;
		answer = look();
		answered = last;
	}
	cli();
}

u64 cpu_ask(void)
{
	u32 number = asked + 1;

	asked = number;
	while (answered != number)
		cpu_pause();
	return answer;
}

void cpu_dismiss(u32 cpu)
{
	asked = DISMISSED;
	cpu_wait(cpu);
	asked = answered = 0;
}
