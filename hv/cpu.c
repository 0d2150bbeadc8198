/* SPDX-License-Identifier: Apache-2.0 */
/* Per-CPU structure, stacks, GDT, TSS and control registers. Starting other CPUs is boot/smp's business. */
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hv/x86.h"
#include "mm/hostpt.h"
#include "mm/palloc.h"

/*
 * One block of 64 KiB per CPU, so that each stack has an absent page below it:
 * guard, 2 pages NMI, guard, 2 pages #DF, guard, 2 pages #MC, guard, 6 pages main.
 */
#define STACKS_ORDER   4
#define CPU_ORDER      1 /* the second page is hyperv/client's window */
#define STACK_MAIN_TOP 16
#define IST_TOP(n)     (3 * (n)) /* page index behind IST stack n */

/* SDM "64-Bit TSS": IST1 at 0x24, I/O map base at 0x66. */
#define TSS_IST1  0x24
#define TSS_IOMAP 0x66
/* GDT descriptors: 64-bit code, data, and the low half of an available 64-bit TSS. */
#define DESC_CODE 0x00af9b000000ffffull
#define DESC_DATA 0x00cf93000000ffffull
#define DESC_TSS  0x0000890000000000ull

/* PAT entries 0-3 as after reset, 4 WB, 5 write-combining (framebuffer), 6 UC-, 7 UC. */
#define HOST_PAT 0x0007010600070406ull

struct cpu *cpus[CPUS_MAX];
unsigned nr_cpus;

_Static_assert(sizeof(struct cpu) <= PAGE_SIZE, "one page per CPU");
_Static_assert(offsetof(struct cpu, self) == 0, "this_cpu reads %gs:0");

static void guard_stacks(u8 *base)
{
	for (unsigned page = 0; page <= 9; page += 3)
		hostpt_guard(base + page * PAGE_SIZE);
}

static void fill_tss(struct cpu *c)
{
	for (unsigned ist = 1; ist <= 3; ist++) {
		u64 top = (u64)(uintptr_t)c->stacks + IST_TOP(ist) * PAGE_SIZE;

		memcpy(c->tss + TSS_IST1 + (ist - 1) * 8, &top, 8);
	}
	*(u16 *)(void *)(c->tss + TSS_IOMAP) = sizeof(c->tss);
}

static void fill_gdt(struct cpu *c)
{
	u64 tss = (u64)(uintptr_t)c->tss;

	c->gdt[SEL_CODE / 8] = DESC_CODE;
	c->gdt[SEL_DATA / 8] = DESC_DATA;
	c->gdt[SEL_TSS / 8] =
		DESC_TSS | (sizeof(c->tss) - 1) | (tss & 0xffffff) << 16 | (tss >> 24 & 0xff) << 56;
	c->gdt[SEL_TSS / 8 + 1] = tss >> 32;
}

struct cpu *cpu_create(u32 apic_id)
{
	struct cpu *c = nr_cpus < CPUS_MAX ? pages_alloc(CPU_ORDER) : NULL;

	if (!c)
		return NULL;
	c->stacks = pages_alloc(STACKS_ORDER);
	c->vmxon_page = page_alloc();
	if (!c->stacks || !c->vmxon_page)
		return NULL; /* boot goes on without this CPU; the few pages stay lost */
	guard_stacks(c->stacks);
	c->self = c;
	c->apic_id = apic_id;
	c->index = nr_cpus;
	c->stack_top = (u64)(uintptr_t)c->stacks + STACK_MAIN_TOP * PAGE_SIZE;
	fill_tss(c);
	fill_gdt(c);
	cpus[nr_cpus++] = c;
	return c;
}

struct descriptor_ptr {
	u16 limit;
	u64 base;
} __attribute__((packed));

static void load_segments(struct cpu *c)
{
	struct descriptor_ptr gdt = {sizeof(c->gdt) - 1, (u64)(uintptr_t)c->gdt};

	asm volatile("lgdt %0\n"
		     "push %1\n"
		     "lea 1f(%%rip), %%rax\n"
		     "push %%rax\n"
		     "lretq\n"
		     "1: mov %2, %%ds\n"
		     "mov %2, %%es\n"
		     "mov %2, %%ss\n"
		     "mov %3, %%fs\n"
		     "mov %3, %%gs\n"
		     "lldt %w3\n"
		     "ltr %w4"
		     :
		     : "m"(gdt), "i"(SEL_CODE), "r"(SEL_DATA), "r"(0), "r"(SEL_TSS)
		     : "rax", "memory");
	wrmsr(MSR_GS_BASE, (u64)(uintptr_t)c);
	wrmsr(MSR_FS_BASE, 0);
}

/* What every CPU needs beyond hostpt_load: FPU usable for guests' state, XSETBV when there is XSAVE, machine
 * checks taken. */
static void set_control_registers(void)
{
	u64 cr4 = read_cr4() | CR4_MCE | CR4_OSFXSR | CR4_OSXMMEXCPT;

	if (cpuid(1, 0).ecx & BIT32(26))
		cr4 |= CR4_OSXSAVE;
	write_cr4(cr4);
	write_cr0((read_cr0() | CR0_NE | CR0_MP) & ~(CR0_TS | CR0_EM | CR0_AM | CR0_CD | CR0_NW));
	wrmsr(MSR_PAT, HOST_PAT);
}

void cpu_init(struct cpu *c)
{
	load_segments(c);
	idt_load();
	hostpt_load();
	set_control_registers();
}
