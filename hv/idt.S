/* SPDX-License-Identifier: Apache-2.0 */
/* One 8-byte stub per vector: push the vector, go on where error code (0 where the CPU pushes none) and vector are completed; save the registers, call trap(). */

	.section .text, "ax"
	.code64

	/* Exceptions with an error code of their own: #DF #TS #NP #SS #GP #PF #AC #CP. */
#define HAS_ERROR 0x60227d00 /* bits 8 10-14 17 21 29 30 */

	.balign 16
	.globl	idt_stubs
idt_stubs:
	.set	vector, 0
	.rept	256
	.balign	8
	.byte	0x6a, vector			/* push: sign-extended */
	.if	(vector < 32) && ((HAS_ERROR >> (vector & 31)) & 1)
	jmp	trap_common
	.else
	jmp	trap_plain
	.endif
	.set	vector, vector + 1
	.endr

	.balign	16
trap_plain:
	push	(%rsp)
	movq	$0, 8(%rsp)
	andq	$0xff, (%rsp)
trap_common:
	push	%rax
	push	%rbx
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%rbp
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	cld
	mov	%rsp, %rdi
	call	trap
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rbp
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rbx
	pop	%rax
	add	$16, %rsp
	iretq

	.section .note.GNU-stack, "", @progbits
