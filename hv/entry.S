/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Into a guest and back. HOST_RSP of every VMCS is &vcpu->regs[16], so an exit pushes the registers straight into the vCPU; the C part
 * runs on the CPU's own stack, from its top each time: nothing of an exit survives it there. No policy here.
 */
#include "hv/offsets.h"

	.text

/* All but RSP, from the vCPU at RDI; RDI last. */
	.macro	load_registers
	mov	0(%rdi), %rax
	mov	8(%rdi), %rcx
	mov	16(%rdi), %rdx
	mov	24(%rdi), %rbx
	mov	40(%rdi), %rbp
	mov	48(%rdi), %rsi
	mov	64(%rdi), %r8
	mov	72(%rdi), %r9
	mov	80(%rdi), %r10
	mov	88(%rdi), %r11
	mov	96(%rdi), %r12
	mov	104(%rdi), %r13
	mov	112(%rdi), %r14
	mov	120(%rdi), %r15
	mov	56(%rdi), %rdi
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
	mov	%rax, %rdi

/* void vcpu_enter(struct vcpu *v): enter v->vmcs, which is current. Does not return. */
	.globl vcpu_enter
vcpu_enter:
	mov	VCPU_VMCS(%rdi), %rax
	cmpb	$0, VMCS_LAUNCHED(%rax)
	je	1f
	load_registers
	vmresume
	jmp	vmx_entry_failed
1:	movb	$1, VMCS_LAUNCHED(%rax)		/* a VMLAUNCH that fails early is L0's bug; late, nested/ never retries it */
	load_registers
	vmlaunch

/* VMfail: the guest has not run, its registers are in the vCPU still. */
vmx_entry_failed:
	mov	%gs:CPU_STACK_TOP, %rsp
	xor	%ebp, %ebp
	call	vcpu_entry_failed
	mov	%rax, %rdi
	jmp	vcpu_enter

	.section .note.GNU-stack, "", @progbits
