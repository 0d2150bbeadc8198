/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into a guest and back. HOST_RSP of every VMCS is &vcpu->regs[16], so an exit pushes the registers straight into the vCPU; the C part
 * runs on the CPU's own stack, from its top each time: nothing of an exit survives it there. No policy here.
 */
#include "hv/offsets.h"

#define INSN_ERROR_FIELD	0x4400
#define INSN_ERROR_SITE		(0x120 << 22)	/* hv/vmcs.h: VMCS_KEY of it << VMCS_SITE_SHIFT */
#define ERROR_NOT_LAUNCHED	5	/* SDM "VM-Instruction Error Numbers": VMRESUME with non-launched VMCS */

	.text

/* All but RSP, from the vCPU at RAX; RAX last. */
	.macro	load_registers
	mov	8(%rax), %rcx
	mov	16(%rax), %rdx
	mov	24(%rax), %rbx
	mov	40(%rax), %rbp
	mov	48(%rax), %rsi
	mov	56(%rax), %rdi
	mov	64(%rax), %r8
	mov	72(%rax), %r9
	mov	80(%rax), %r10
	mov	88(%rax), %r11
	mov	96(%rax), %r12
	mov	104(%rax), %r13
	mov	112(%rax), %r14
	mov	120(%rax), %r15
	mov	0(%rax), %rax
	.endm

/* Exit: HOST_RIP. Interrupts are off, GS is the CPU's, flags are clear. */
	.globl vmx_exit
	.balign 16
vmx_exit:
	push	%r15
	push	%r14
	push	%r13
	push	%r12
	push	%r11
	push	%r10
	push	%r9
	push	%r8
	push	%rdi
	push	%rsi
	push	%rbp
	lea	-8(%rsp), %rsp			/* RSP is in the VMCS */
	push	%rbx
	push	%rdx
	push	%rcx
	push	%rax
	mov	%rsp, %rdi
	mov	%gs:CPU_STACK_TOP, %rsp
	xor	%ebp, %ebp			/* a back-trace ends here */
	call	vcpu_exit

/* RAX: the vCPU to enter; its VMCS is current. It was launched before nearly always: where not, VMRESUME says so. */
enter_guest:
	load_registers
	vmresume

/* VMfail: the guest has not run, its registers are in the vCPU still. */
vmx_entry_failed:
	mov	%gs:CPU_STACK_TOP, %rsp
	xor	%ebp, %ebp
	mov	$INSN_ERROR_FIELD, %eax
2:	vmread	%rax, %rax
	jbe	vmcs_access_failed
	.pushsection .vmcs_sites, "a"
	.long	2b + INSN_ERROR_SITE
	.popsection
	cmp	$ERROR_NOT_LAUNCHED, %eax
	jne	1f
	mov	%gs:CPU_RUNNING, %rax
	load_registers
	vmlaunch
	jmp	vmx_entry_failed
1:	call	vcpu_entry_failed
	jmp	enter_guest

/* void vcpu_enter(struct vcpu *v): enter v->vmcs, which is current. Does not return. */
	.globl vcpu_enter
vcpu_enter:
	mov	%rdi, %rax
	jmp	enter_guest

	.section .note.GNU-stack, "", @progbits
