/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running an L2. By default it is a C function in 64-bit mode with its own stack, in the program's own
 * address space and with the program's IDT, so TRY() works in it too. It leaves by l2_call(n); when the
 * function returns, that is l2_call(L2_DONE). Every CPU has one L2 of its own.
 */
#pragma once

#include "ept.h"
#include "vmx.h"

#define L2_DONE 0xd04eull

enum vm_kind { VM_EXIT = 0, VM_FAIL = 1 };

struct vm_result {
	enum vm_kind kind;
	u32 fail;   /* when VM_FAIL: VMFAIL_INVALID, VMFAIL_VALID(n) or FAULT(...) */
	u32 reason; /* with bit 31 for a failed entry */
	u32 insn_len, intr_info, intr_error, idt_info, idt_error, insn_info;
	u64 qual, gpa, gla, rip;
};

/* In push order of the exit code, lowest address first. */
struct l2_regs {
	u64 r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
};

typedef void l2_fn(void);

/* VMXON if needed, VMCLEAR and VMPTRLD of the CPU's default VMCS, all fields set. Launch state is clear
 * afterwards. */
void l2_prepare(l2_fn *fn);
void l2_prepare_in(u64 vmcs, l2_fn *fn); /* the same in another VMCS */
void l2_set_entry(l2_fn *fn);            /* RIP, RSP and registers for fn; nothing else */
u64 l2_vmcs(void);
u64 l2_ept(void); /* root of the default identity map of 4 GiB in 2 MiB pages */
u8 *l2_msr_bitmap(void);
struct l2_regs *l2_regs(void);
u64 l2_stack_top(void);

struct vm_result l2_launch(void);
struct vm_result l2_resume(void);
struct vm_result l2_run(void); /* launch the first time, resume later */
u64 l2_enter_raw(bool resume); /* no reading of exit fields; 0 is an exit, else RFLAGS of the failure */
void l2_skip(const struct vm_result *r); /* RIP behind the instruction that exited */
struct vm_result l2_run_past(const struct vm_result *r);

/* Inside L2: exit to L1 with this number in RAX, by VMCALL. Returns RAX as L1 leaves it. */
u64 l2_call(u64 number);

/* True when r is the VMCALL exit of l2_call(number). */
bool l2_called(const struct vm_result *r, u64 number);

/* Expects the exit reason; on a VMfail reports the failure instead. */
#define expect_exit(name, r, want) report_eq(name, __FILE__, __LINE__, l2_outcome(&(r)), want)
#define expect_done(name, r)       report_eq(name, __FILE__, __LINE__, l2_called(&(r), L2_DONE), 1)
#define expect_fail(name, r, want) report_eq(name, __FILE__, __LINE__, l2_outcome(&(r)), want)
u64 l2_outcome(
	const struct vm_result *r); /* the exit reason, or fail with bit 40 set for telling them apart */
#define FAILED(fail) (BIT(40) | (fail))

/* Other modes: L2 runs this code at this linear address (below 1 MiB for real mode). Needs unrestricted guest
 * where paging is off. */
void l2_enter_real_mode(u16 segment, u16 offset);
void l2_enter_protected(u32 eip, u64 cr3, bool paging, bool pae);
