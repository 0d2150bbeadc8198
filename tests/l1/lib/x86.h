/* SPDX-License-Identifier: Apache-2.0 */
/* Inline access to ports, control registers, MSRs and CPUID. Plain forms fault when the CPU says so; see
 * trap.h for try_. */
#pragma once

#include "types.h"

#define CR0_PE       BIT(0)
#define CR0_MP       BIT(1)
#define CR0_TS       BIT(3)
#define CR0_NE       BIT(5)
#define CR0_WP       BIT(16)
#define CR0_AM       BIT(18)
#define CR0_NW       BIT(29)
#define CR0_CD       BIT(30)
#define CR0_PG       BIT(31)
#define CR4_TSD      BIT(2)
#define CR4_DE       BIT(3)
#define CR4_PSE      BIT(4)
#define CR4_PAE      BIT(5)
#define CR4_PGE      BIT(7)
#define CR4_PCE      BIT(8)
#define CR4_OSFXSR   BIT(9)
#define CR4_UMIP     BIT(11)
#define CR4_LA57     BIT(12)
#define CR4_VMXE     BIT(13)
#define CR4_SMXE     BIT(14)
#define CR4_FSGSBASE BIT(16)
#define CR4_PCIDE    BIT(17)
#define CR4_OSXSAVE  BIT(18)
#define CR4_SMEP     BIT(20)
#define CR4_SMAP     BIT(21)
#define CR4_PKE      BIT(22)
#define CR4_CET      BIT(23)

#define EFER_SCE BIT(0)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)
#define EFER_NXE BIT(11)

#define RFLAGS_CF BIT(0)
#define RFLAGS_ZF BIT(6)
#define RFLAGS_TF BIT(8)
#define RFLAGS_IF BIT(9)
#define RFLAGS_AC BIT(18)

#define MSR_TSC             0x10
#define MSR_APIC_BASE       0x1b
#define MSR_FEATURE_CONTROL 0x3a
#define MSR_TSC_ADJUST      0x3b
#define MSR_MTRRCAP         0xfe
#define MSR_SYSENTER_CS     0x174
#define MSR_SYSENTER_ESP    0x175
#define MSR_SYSENTER_EIP    0x176
#define MSR_DEBUGCTL        0x1d9
#define MSR_PAT             0x277
#define MSR_MTRR_DEF        0x2ff
#define MSR_TSC_DEADLINE    0x6e0
#define MSR_EFER            0xc0000080
#define MSR_STAR            0xc0000081
#define MSR_LSTAR           0xc0000082
#define MSR_FS_BASE         0xc0000100
#define MSR_GS_BASE         0xc0000101
#define MSR_KERNEL_GS_BASE  0xc0000102
#define MSR_TSC_AUX         0xc0000103

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

struct desc_ptr {
	u16 limit;
	u64 base;
} __attribute__((packed));

static inline void outb(u16 port, u8 v)
{
	asm volatile("outb %0, %1" : : "a"(v), "Nd"(port) : "memory");
}

static inline void outw(u16 port, u16 v)
{
	asm volatile("outw %0, %1" : : "a"(v), "Nd"(port) : "memory");
}

static inline void outl(u16 port, u32 v)
{
	asm volatile("outl %0, %1" : : "a"(v), "Nd"(port) : "memory");
}

static inline u8 inb(u16 port)
{
	u8 v;

	asm volatile("inb %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline u16 inw(u16 port)
{
	u16 v;

	asm volatile("inw %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline u32 inl(u16 port)
{
	u32 v;

	asm volatile("inl %1, %0" : "=a"(v) : "Nd"(port) : "memory");
	return v;
}

static inline struct cpuid cpuid(u32 leaf, u32 subleaf)
{
	struct cpuid r;

	asm volatile("cpuid" : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx) : "a"(leaf), "c"(subleaf));
	return r;
}

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr) : "memory");
	return (u64)hi << 32 | lo;
}

static inline void wrmsr(u32 msr, u64 v)
{
	asm volatile("wrmsr" : : "c"(msr), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}

static inline u64 rdtsc(void)
{
	u32 lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi) : : "memory");
	return (u64)hi << 32 | lo;
}

#define READ_CR(n)                                                                                           \
	static inline u64 read_cr##n(void)                                                                   \
	{                                                                                                    \
		u64 v;                                                                                       \
                                                                                                             \
		asm volatile("mov %%cr" #n ", %0" : "=r"(v) : : "memory");                                   \
		return v;                                                                                    \
	}                                                                                                    \
	static inline void write_cr##n(u64 v)                                                                \
	{                                                                                                    \
		asm volatile("mov %0, %%cr" #n : : "r"(v) : "memory");                                       \
	}

READ_CR(0)
READ_CR(2)
READ_CR(3)
READ_CR(4)
READ_CR(8)

static inline u64 read_dr6(void)
{
	u64 v;

	asm volatile("mov %%dr6, %0" : "=r"(v));
	return v;
}

static inline u64 read_dr7(void)
{
	u64 v;

	asm volatile("mov %%dr7, %0" : "=r"(v));
	return v;
}

static inline void write_dr6(u64 v)
{
	asm volatile("mov %0, %%dr6" : : "r"(v) : "memory");
}

static inline void write_dr7(u64 v)
{
	asm volatile("mov %0, %%dr7" : : "r"(v) : "memory");
}

static inline u64 read_rflags(void)
{
	u64 v;

	asm volatile("pushf; pop %0" : "=r"(v) : : "memory");
	return v;
}

static inline struct desc_ptr sgdt(void)
{
	struct desc_ptr d;

	asm volatile("sgdt %0" : "=m"(d));
	return d;
}

static inline struct desc_ptr sidt(void)
{
	struct desc_ptr d;

	asm volatile("sidt %0" : "=m"(d));
	return d;
}

static inline void lgdt(struct desc_ptr d)
{
	asm volatile("lgdt %0" : : "m"(d));
}

static inline void lidt(struct desc_ptr d)
{
	asm volatile("lidt %0" : : "m"(d));
}

static inline u16 str(void)
{
	u16 v;

	asm volatile("str %0" : "=r"(v));
	return v;
}

static inline void cli(void)
{
	asm volatile("cli" : : : "memory");
}

static inline void sti(void)
{
	asm volatile("sti" : : : "memory");
}

/* Opens interrupts for exactly one instruction, so that whatever is pending is taken here. */
static inline void sti_nop_cli(void)
{
	asm volatile("sti; nop; nop; cli" : : : "memory");
}

/* Waits for one interrupt with no window in which it could be missed. Returns with interrupts off. */
static inline void sti_hlt_cli(void)
{
	asm volatile("sti; hlt; cli" : : : "memory");
}

static inline void cpu_pause(void)
{
	asm volatile("pause" : : : "memory");
}

static inline void barrier(void)
{
	asm volatile("" : : : "memory");
}

static inline void invlpg(u64 va)
{
	asm volatile("invlpg (%0)" : : "r"(va) : "memory");
}

static inline bool cpu_has_vmx(void)
{
	return cpuid(1, 0).ecx & BIT(5);
}

static inline bool cpu_has_x2apic(void)
{
	return cpuid(1, 0).ecx & BIT(21);
}

/* Width of physical addresses in bits. */
static inline u32 phys_bits(void)
{
	return cpuid(0x80000008, 0).eax & 0xff;
}
