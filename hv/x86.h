/* SPDX-License-Identifier: Apache-2.0 */
/* Privileged instructions as inline functions, and the architecture's bit and MSR names. No policy. */
#ifndef NIDUS_HV_X86_H
#define NIDUS_HV_X86_H

#include "hv/types.h"

/* SDM "Control Registers". */
#define CR0_PE         BIT(0)
#define CR0_MP         BIT(1)
#define CR0_EM         BIT(2)
#define CR0_TS         BIT(3)
#define CR0_ET         BIT(4)
#define CR0_NE         BIT(5)
#define CR0_WP         BIT(16)
#define CR0_AM         BIT(18)
#define CR0_NW         BIT(29)
#define CR0_CD         BIT(30)
#define CR0_PG         BIT(31)
#define CR4_VME        BIT(0)
#define CR4_PSE        BIT(4)
#define CR4_PAE        BIT(5)
#define CR4_MCE        BIT(6)
#define CR4_PGE        BIT(7)
#define CR4_PCE        BIT(8)
#define CR4_OSFXSR     BIT(9)
#define CR4_OSXMMEXCPT BIT(10)
#define CR4_UMIP       BIT(11)
#define CR4_LA57       BIT(12)
#define CR4_VMXE       BIT(13)
#define CR4_SMXE       BIT(14)
#define CR4_FSGSBASE   BIT(16)
#define CR4_PCIDE      BIT(17)
#define CR4_OSXSAVE    BIT(18)
#define CR4_SMEP       BIT(20)
#define CR4_SMAP       BIT(21)
#define CR4_PKE        BIT(22)
#define CR4_CET        BIT(23)

#define RFLAGS_CF    BIT(0)
#define RFLAGS_FIXED BIT(1)
#define RFLAGS_PF    BIT(2)
#define RFLAGS_AF    BIT(4)
#define RFLAGS_ZF    BIT(6)
#define RFLAGS_SF    BIT(7)
#define RFLAGS_TF    BIT(8)
#define RFLAGS_IF    BIT(9)
#define RFLAGS_DF    BIT(10)
#define RFLAGS_OF    BIT(11)
#define RFLAGS_NT    BIT(14)
#define RFLAGS_RF    BIT(16)
#define RFLAGS_VM    BIT(17)
#define RFLAGS_AC    BIT(18)
#define RFLAGS_ALU   (RFLAGS_CF | RFLAGS_PF | RFLAGS_AF | RFLAGS_ZF | RFLAGS_SF | RFLAGS_OF)

#define EFER_SCE BIT(0)
#define EFER_LME BIT(8)
#define EFER_LMA BIT(10)
#define EFER_NXE BIT(11)

enum vector {
	VEC_DE,
	VEC_DB,
	VEC_NMI,
	VEC_BP,
	VEC_OF,
	VEC_BR,
	VEC_UD,
	VEC_NM,
	VEC_DF,
	VEC_TS = 10,
	VEC_NP,
	VEC_SS,
	VEC_GP,
	VEC_PF,
	VEC_MF = 16,
	VEC_AC,
	VEC_MC,
	VEC_XM,
	VEC_VE,
};

/* SDM volume 4, in numeric order. */
enum msr {
	MSR_TSC = 0x10,
	MSR_APIC_BASE = 0x1b,
	MSR_FEATURE_CONTROL = 0x3a,
	MSR_TSC_ADJUST = 0x3b,
	MSR_SPEC_CTRL = 0x48,
	MSR_PRED_CMD = 0x49,
	MSR_UCODE_WRITE = 0x79,
	MSR_UCODE_REV = 0x8b,
	MSR_PMC0 = 0xc1,
	MSR_PLATFORM_INFO = 0xce,
	MSR_MTRRCAP = 0xfe,
	MSR_ARCH_CAPABILITIES = 0x10a,
	MSR_MISC_FEATURES = 0x140,
	MSR_SYSENTER_CS = 0x174,
	MSR_SYSENTER_ESP = 0x175,
	MSR_SYSENTER_EIP = 0x176,
	MSR_MCG_CAP = 0x179,
	MSR_MCG_STATUS = 0x17a,
	MSR_PERFEVTSEL0 = 0x186,
	MSR_MISC_ENABLE = 0x1a0,
	MSR_DEBUGCTL = 0x1d9,
	MSR_MTRR_PHYSBASE0 = 0x200,
	MSR_MTRR_FIX64K = 0x250,
	MSR_MTRR_FIX16K = 0x258,
	MSR_MTRR_FIX4K = 0x268,
	MSR_PAT = 0x277,
	MSR_MTRR_DEF_TYPE = 0x2ff,
	MSR_FIXED_CTR0 = 0x309,
	MSR_PERF_CAPABILITIES = 0x345,
	MSR_FIXED_CTR_CTRL = 0x38d,
	MSR_PERF_GLOBAL_STATUS,
	MSR_PERF_GLOBAL_CTRL,
	MSR_PERF_GLOBAL_OVF,
	MSR_VMX_BASIC = 0x480,
	MSR_VMX_PIN_CTLS,
	MSR_VMX_PROC_CTLS,
	MSR_VMX_EXIT_CTLS,
	MSR_VMX_ENTRY_CTLS,
	MSR_VMX_MISC,
	MSR_VMX_CR0_FIXED0,
	MSR_VMX_CR0_FIXED1,
	MSR_VMX_CR4_FIXED0,
	MSR_VMX_CR4_FIXED1,
	MSR_VMX_VMCS_ENUM,
	MSR_VMX_SEC_CTLS,
	MSR_VMX_EPT_VPID_CAP,
	MSR_VMX_TRUE_PIN_CTLS,
	MSR_VMX_TRUE_PROC_CTLS,
	MSR_VMX_TRUE_EXIT_CTLS,
	MSR_VMX_TRUE_ENTRY_CTLS,
	MSR_VMX_VMFUNC,
	MSR_PMC0_FULL = 0x4c1,
	MSR_TSC_DEADLINE = 0x6e0,
	MSR_X2APIC_BASE = 0x800,
	MSR_XSS = 0xda0,
};
#define MSR_EFER           0xc0000080u
#define MSR_STAR           0xc0000081u
#define MSR_LSTAR          0xc0000082u
#define MSR_CSTAR          0xc0000083u
#define MSR_FMASK          0xc0000084u
#define MSR_FS_BASE        0xc0000100u
#define MSR_GS_BASE        0xc0000101u
#define MSR_KERNEL_GS_BASE 0xc0000102u
#define MSR_TSC_AUX        0xc0000103u

#define APIC_BASE_BSP    BIT(8)
#define APIC_BASE_X2APIC BIT(10)
#define APIC_BASE_ENABLE BIT(11)

static inline u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	asm volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr));
	return (u64)hi << 32 | lo;
}

static inline void wrmsr(u32 msr, u64 value)
{
	asm volatile("wrmsr" : : "c"(msr), "a"((u32)value), "d"((u32)(value >> 32)) : "memory");
}

struct cpuid {
	u32 eax, ebx, ecx, edx;
};

static inline struct cpuid cpuid(u32 leaf, u32 sub)
{
	struct cpuid r;

	asm volatile("cpuid" : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx) : "a"(leaf), "c"(sub));
	return r;
}

#define DEFINE_CR(n)                                                                                         \
	static inline u64 read_cr##n(void)                                                                   \
	{                                                                                                    \
		u64 v;                                                                                       \
		asm volatile("mov %%cr" #n ", %0" : "=r"(v) : : "memory");                                   \
		return v;                                                                                    \
	}                                                                                                    \
	static inline void write_cr##n(u64 v)                                                                \
	{                                                                                                    \
		asm volatile("mov %0, %%cr" #n : : "r"(v) : "memory");                                       \
	}
DEFINE_CR(0)
DEFINE_CR(2)
DEFINE_CR(3)
DEFINE_CR(4)
#undef DEFINE_CR

static inline u64 rdtsc(void)
{
	u32 lo, hi;

	asm volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (u64)hi << 32 | lo;
}

static inline u64 xgetbv0(void)
{
	u32 lo, hi;

	asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (u64)hi << 32 | lo;
}

static inline void xsetbv0(u64 v)
{
	asm volatile("xsetbv" : : "c"(0), "a"((u32)v), "d"((u32)(v >> 32)) : "memory");
}

#define DEFINE_PORT(bits, suffix)                                                                            \
	static inline u##bits in##bits(u16 port)                                                             \
	{                                                                                                    \
		u##bits v;                                                                                   \
		asm volatile("in" suffix " %w1, %0" : "=a"(v) : "Nd"(port) : "memory");                      \
		return v;                                                                                    \
	}                                                                                                    \
	static inline void out##bits(u16 port, u##bits v)                                                    \
	{                                                                                                    \
		asm volatile("out" suffix " %0, %w1" : : "a"(v), "Nd"(port) : "memory");                     \
	}
DEFINE_PORT(8, "b")
DEFINE_PORT(16, "w")
DEFINE_PORT(32, "l")
#undef DEFINE_PORT

static inline void cpu_relax(void)
{
	asm volatile("pause" : : : "memory");
}

#endif
