/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One physical CPU: its descriptor tables, stacks, and what it runs. Reached through GS in root mode
 * (HOST_GS_BASE). Indexes are dense (0 = boot CPU) and are not APIC ids.
 */
#ifndef NIDUS_HV_CPU_H
#define NIDUS_HV_CPU_H

#include "hv/pmu.h"
#include "hv/spinlock.h"
#include "hv/timer.h"
#include "hv/types.h"

#define CPUS_MAX        64
#define CPU_STACK_ORDER 2 /* 16 KiB, plus a guard page below */

/* Host vectors above the exceptions. */
#define HOST_VEC_TIMER    0xf0
#define HOST_VEC_KICK     0xf1 /* look at pending work; no other meaning */
#define HOST_VEC_CONSOLE  0xf2
#define HOST_VEC_PMI      0xf3 /* hv/pmu */
#define HOST_VEC_SPURIOUS 0xff

/* Selectors of the host GDT. */
#define SEL_CODE 0x08
#define SEL_DATA 0x10
#define SEL_TSS  0x18

struct vcpu;
struct vmcs;

struct cpu {
	struct cpu *self; /* must stay first: this_cpu() reads %gs:0 */
	u32 index;
	u32 apic_id;
	u64 stack_top;        /* entry.S switches here at each exit */
	struct vcpu *running; /* entered last, or about to be */
	struct vcpu *loaded;  /* whose MSRs, XCR0, DRs and FPU state the CPU holds; NULL: nobody's */
	u64 since;            /* TSC when the vCPU that runs was chosen */
	struct vmcs *current; /* hv/vmcs: what VMPTRLD named last */
	bool online;
	bool idle;     /* halted in sched_idle; needs an IPI to look at its queue */
	bool vmx_root; /* VMXON done */

	struct spinlock run_lock;
	struct vcpu *run_queue; /* all vCPUs pinned here, a ring by vcpu->next_on_cpu */
	struct timer_queue timers;

	u64 gdt[8];
	u8 tss[104];
	void *stacks; /* guard pages and the stacks of NMI, #DF, #MC below stack_top */
	void *vmxon_page;
	u64 nmis;         /* host NMIs seen */
	struct pmu pmu;   /* what its PMU's registers hold; counts as of the last vCPU's leaving */
	u64 *evmcs_entry; /* hyperv/client: of the page behind this structure */
	void *assist;     /* hyperv/client: VP assist page */
};

extern struct cpu *cpus[CPUS_MAX];
extern unsigned nr_cpus;

static inline struct cpu *this_cpu(void)
{
	struct cpu *c;

	asm("mov %%gs:0, %0" : "=r"(c));
	return c;
}

/* What runs here, fetched anew: kept over a call it would cost four instructions, not one. */
static inline struct vcpu *cpu_running(void)
{
	struct vcpu *v;

	asm volatile("mov %%gs:%c1, %0" : "=r"(v) : "i"(offsetof(struct cpu, running)));
	return v;
}

/* Allocate and register the next CPU (struct, stacks with guards). NULL: no memory or CPUS_MAX reached. Boot
 * CPU only. */
struct cpu *cpu_create(u32 apic_id);
/* On the CPU itself: GDT, TSS, IDT, GS, host page tables, control registers. IF stays 0. */
void cpu_init(struct cpu *c);
/* The IDT, shared by all CPUs (hv/idt.c). */
void idt_init(void);
void idt_load(void);
u64 idt_base(void);

/*
 * An interrupt of vector >= 32 in root mode, from the IDT or acknowledged by a VM exit: EOI, then timers or
 * console input. A kick needs nothing: having left the guest is its whole effect.
 */
void host_interrupt(u8 vector);
/* Called with each NMI that reached L0 (IDT). What it means for the loaded vCPU is decided there: hv/event.c.
 */
void host_nmi(void);
/* After an NMI exit: take the NMI as root mode would; its IRET also unblocks the next one. */
static inline void host_nmi_take(void)
{
	asm volatile("int $2" : : : "memory");
}

/* hv/lapic.c: another physical CPU takes an interrupt; it looks at its pending work. */
void cpu_kick(struct cpu *c);

#endif
