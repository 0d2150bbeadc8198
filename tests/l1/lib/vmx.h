/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMX instructions with their outcome as one number, VMCS access, control bits, and a VMCS with sane
 * defaults. Every CPU has its own VMXON region. Bits are named GROUP_NAME after SDM "VM-Execution Control
 * Fields" ff.
 */
#pragma once

#include "trap.h"
#include "types.h"
#include "vmcs_fields.h"

/* Outcome of a VMX instruction: VM_OK, one of these, or FAULT(...) of trap.h. */
#define VM_OK             0u
#define VMFAIL_INVALID    0x10000u
#define VMFAIL_VALID(err) (0x20000u | (u32)(err))

#define MSR_VMX_BASIC        0x480
#define MSR_VMX_PIN          0x481
#define MSR_VMX_PROC         0x482
#define MSR_VMX_EXIT         0x483
#define MSR_VMX_ENTRY        0x484
#define MSR_VMX_MISC         0x485
#define MSR_VMX_CR0_FIXED0   0x486
#define MSR_VMX_CR0_FIXED1   0x487
#define MSR_VMX_CR4_FIXED0   0x488
#define MSR_VMX_CR4_FIXED1   0x489
#define MSR_VMX_VMCS_ENUM    0x48a
#define MSR_VMX_PROC2        0x48b
#define MSR_VMX_EPT_VPID_CAP 0x48c
#define MSR_VMX_TRUE_PIN     0x48d
#define MSR_VMX_TRUE_PROC    0x48e
#define MSR_VMX_TRUE_EXIT    0x48f
#define MSR_VMX_TRUE_ENTRY   0x490
#define MSR_VMX_VMFUNC       0x491

#define PIN_EXT_INT BIT(0)
#define PIN_NMI     BIT(3)
#define PIN_VNMI    BIT(5)
#define PIN_TIMER   BIT(6)
#define PIN_POSTED  BIT(7)

#define PROC_INTR_WINDOW BIT(2)
#define PROC_TSC_OFFSET  BIT(3)
#define PROC_HLT         BIT(7)
#define PROC_INVLPG      BIT(9)
#define PROC_MWAIT       BIT(10)
#define PROC_RDPMC       BIT(11)
#define PROC_RDTSC       BIT(12)
#define PROC_CR3_LOAD    BIT(15)
#define PROC_CR3_STORE   BIT(16)
#define PROC_CR8_LOAD    BIT(19)
#define PROC_CR8_STORE   BIT(20)
#define PROC_TPR_SHADOW  BIT(21)
#define PROC_NMI_WINDOW  BIT(22)
#define PROC_MOV_DR      BIT(23)
#define PROC_IO          BIT(24)
#define PROC_IO_BITMAPS  BIT(25)
#define PROC_MTF         BIT(27)
#define PROC_MSR_BITMAP  BIT(28)
#define PROC_MONITOR     BIT(29)
#define PROC_PAUSE       BIT(30)
#define PROC_SECONDARY   BIT(31)

#define PROC2_APIC_ACCESS  BIT(0)
#define PROC2_EPT          BIT(1)
#define PROC2_DESC_TABLE   BIT(2)
#define PROC2_RDTSCP       BIT(3)
#define PROC2_X2APIC       BIT(4)
#define PROC2_VPID         BIT(5)
#define PROC2_WBINVD       BIT(6)
#define PROC2_UNRESTRICTED BIT(7)
#define PROC2_APIC_REG     BIT(8)
#define PROC2_VID          BIT(9)
#define PROC2_PLE          BIT(10)
#define PROC2_RDRAND       BIT(11)
#define PROC2_INVPCID      BIT(12)
#define PROC2_VMFUNC       BIT(13)
#define PROC2_SHADOW       BIT(14)
#define PROC2_RDSEED       BIT(16)
#define PROC2_PML          BIT(17)
#define PROC2_VE           BIT(18)
#define PROC2_XSAVES       BIT(20)
#define PROC2_MBE          BIT(22)
#define PROC2_TSC_SCALING  BIT(25)

#define EXIT_SAVE_DEBUG BIT(2)
#define EXIT_HOST64     BIT(9)
#define EXIT_LOAD_PERF  BIT(12)
#define EXIT_ACK_INT    BIT(15)
#define EXIT_SAVE_PAT   BIT(18)
#define EXIT_LOAD_PAT   BIT(19)
#define EXIT_SAVE_EFER  BIT(20)
#define EXIT_LOAD_EFER  BIT(21)
#define EXIT_SAVE_TIMER BIT(22)

#define ENTRY_LOAD_DEBUG   BIT(2)
#define ENTRY_IA32E        BIT(9)
#define ENTRY_SMM          BIT(10)
#define ENTRY_DUAL_MONITOR BIT(11)
#define ENTRY_LOAD_PERF    BIT(13)
#define ENTRY_LOAD_PAT     BIT(14)
#define ENTRY_LOAD_EFER    BIT(15)

#define INTR_VALID      BIT(31)
#define INTR_ERROR_CODE BIT(11)
#define INTR_EXTERNAL   (0u << 8)
#define INTR_NMI        (2u << 8)
#define INTR_EXCEPTION  (3u << 8)
#define INTR_SOFT_INT   (4u << 8)
#define INTR_PRIV_SOFT  (5u << 8)
#define INTR_SOFT_EXC   (6u << 8)

#define BLOCK_STI    BIT(0)
#define BLOCK_MOV_SS BIT(1)
#define BLOCK_NMI    BIT(3)

enum exit_reason {
	EXIT_EXCEPTION = 0,
	EXIT_EXT_INT = 1,
	EXIT_TRIPLE_FAULT = 2,
	EXIT_INIT = 3,
	EXIT_SIPI = 4,
	EXIT_INTR_WINDOW = 7,
	EXIT_NMI_WINDOW = 8,
	EXIT_TASK_SWITCH = 9,
	EXIT_CPUID = 10,
	EXIT_GETSEC = 11,
	EXIT_HLT = 12,
	EXIT_INVD = 13,
	EXIT_INVLPG = 14,
	EXIT_RDPMC = 15,
	EXIT_RDTSC = 16,
	EXIT_VMCALL = 18,
	EXIT_VMCLEAR = 19,
	EXIT_VMLAUNCH = 20,
	EXIT_VMPTRLD = 21,
	EXIT_VMPTRST = 22,
	EXIT_VMREAD = 23,
	EXIT_VMRESUME = 24,
	EXIT_VMWRITE = 25,
	EXIT_VMXOFF = 26,
	EXIT_VMXON = 27,
	EXIT_CR = 28,
	EXIT_DR = 29,
	EXIT_IO = 30,
	EXIT_RDMSR = 31,
	EXIT_WRMSR = 32,
	EXIT_BAD_GUEST = 33,
	EXIT_BAD_MSR = 34,
	EXIT_MWAIT = 36,
	EXIT_MONITOR = 39,
	EXIT_PAUSE = 40,
	EXIT_TPR = 43,
	EXIT_APIC_ACCESS = 44,
	EXIT_EOI = 45,
	EXIT_GDTR_IDTR = 46,
	EXIT_LDTR_TR = 47,
	EXIT_EPT_VIOLATION = 48,
	EXIT_EPT_MISCONFIG = 49,
	EXIT_INVEPT = 50,
	EXIT_RDTSCP = 51,
	EXIT_TIMER = 52,
	EXIT_INVVPID = 53,
	EXIT_WBINVD = 54,
	EXIT_XSETBV = 55,
	EXIT_APIC_WRITE = 56,
	EXIT_RDRAND = 57,
	EXIT_INVPCID = 58,
	EXIT_VMFUNC = 59,
	EXIT_RDSEED = 61,
	EXIT_PML_FULL = 62,
	EXIT_XSAVES = 63,
	EXIT_XRSTORS = 64,
};

#define EXIT_ENTRY_FAILED BIT(31)

struct inv_desc {
	u64 a, b;
} __attribute__((aligned(16)));

/* The instructions. Addresses are guest-physical addresses of this program. */
u32 vmxon(u64 region);
u32 vmxoff(void);
u32 vmclear(u64 vmcs);
u32 vmptrld(u64 vmcs);
u32 vmptrst(u64 *vmcs);
u32 vmread_try(u64 field, u64 *value);
u32 vmwrite_try(u64 field, u64 value);
u32 invept(u64 type, u64 eptp);
u32 invvpid(u64 type, u64 vpid, u64 address);
u32 vmcall(u64 rax);

/* The same with a failure ending the program: for what must work. */
u64 vmread(u32 field);
void vmwrite(u32 field, u64 value);
void vmcs_set_bits(u32 field, u64 bits);
void vmcs_clear_bits(u32 field, u64 bits);

/* True when this CPU can do VMXON; says why not by a SKIP line. A program that needs VMX returns on false. */
bool vmx_available(void);
void vmx_enable(void); /* feature control, CR0.NE, CR4.VMXE: all that VMXON needs */
bool vmx_start(void);  /* vmx_enable() and VMXON with the CPU's own region; true when VMX operation is on */
u64 vmx_region(void);  /* the region vmx_start() used */
u64 vmcs_alloc(void);  /* a fresh region with the revision id, not yet cleared */

/* Must-be-1 and may-be-1 bits of a control word, from the true MSR where there is one. */
u32 ctl_must(u32 field);
u32 ctl_may(u32 field);
bool ctl_has(u32 field, u64 bits);
bool proc2_has(u64 bits);
