/* SPDX-License-Identifier: Apache-2.0 */
/* Per-CPU data, GDT and TSS, and running functions on other CPUs. */
#pragma once

#include "types.h"
#include "x86.h"

#define SEL_CODE64   0x08
#define SEL_DATA     0x10
#define SEL_CODE32   0x18
#define SEL_USERDATA 0x23
#define SEL_USER64   0x2b
#define SEL_CODE16   0x30
#define SEL_TSS      0x40 /* one 16-byte descriptor a CPU from here on; STR tells a CPU its number */

#define VEC_WAKE 0xf0 /* interrupt that ends the HLT of an idle CPU */

struct tss {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3, io_map;
} __attribute__((packed));

typedef void cpu_fn(u64 arg);

struct cpu {
	u32 apic_id;
	volatile bool online; /* has reached its idle loop at least once since cpu_start_all() */
	volatile u32 starts;  /* times it came through the SIPI path */
	cpu_fn *volatile fn;
	volatile u64 arg;
	volatile u32 trap;
	volatile u64 trap_cr2;
	u64 user_rsp;
	struct tss tss;
};

_Static_assert(sizeof(struct tss) == 104, "SDM: 64-Bit TSS Format");

extern struct cpu cpus[MAX_CPUS];
extern u64 gdt[];
extern u32 cpu_count; /* CPUs that ACPI lists as enabled; the boot CPU is number 0 */

static inline u32 cpu_index(void)
{
	return (u32)(str() - SEL_TSS) / 16;
}

static inline struct cpu *this_cpu(void)
{
	return &cpus[cpu_index()];
}

u64 tss_base(u32 cpu);

void cpu_init(void);     /* boot CPU: GDT, TSS */
void cpu_list(void);     /* fills cpus[] from ACPI */
u32 cpu_start_all(void); /* INIT, SIPI, SIPI to each; returns how many CPUs are online */
void cpu_place_trampoline(void);
bool cpu_wait_online(u32 cpu, u32 microseconds);

/* Runs fn on an idle CPU; returns at once. cpu_wait() waits for its end. */
void cpu_run(u32 cpu, cpu_fn *fn, u64 arg);
void cpu_wait(u32 cpu);
bool cpu_wait_for(u32 cpu, u32 microseconds);

/* A CPU that tells what it sees when it is asked, and does nothing in between that would flush its TLB. It
 * answers until it is dismissed, which waits for the end of its cpu_run(). */
void cpu_answer(u64 (*look)(void));
u64 cpu_ask(void);
void cpu_dismiss(u32 cpu);
