/* SPDX-License-Identifier: Apache-2.0 */
/* The 256 interrupt stubs, and the way to ring 3 and back. No policy: trap_entry() in trap.c decides. */
	.text
	.code64

/* A stub is 16 bytes: push a zero where the CPU pushes no error code, push the vector, go on. */
	.align 16
	.globl trap_stubs
trap_stubs:
	vector = 0
	.rept 256
	.align 16
	.if (vector == 8) || (vector >= 10 && vector <= 14) || (vector == 17) || (vector == 21) || (vector == 30)
	.else
	pushq $0
	.endif
	pushq $vector
	jmp trap_common
	vector = vector + 1
	.endr

	.align 16
trap_common:
	cld
	push %rax
	push %rbx
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %rbp
	push %r8
	push %r9
	push %r10
	push %r11
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, %rdi
	call trap_entry
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rbp
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rbx
	pop %rax
	add $16, %rsp
	iretq

/* void user_enter(fn, user stack, u64 *kernel_rsp): runs fn in ring 3; comes back through vector 0x81. */
	.globl user_enter
user_enter:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	mov %rsp, (%rdx)
	pushq $0x23
	push %rsi
	pushq $2
	pushq $0x2b
	pushq $user_code
	iretq
user_code:
	call *%rdi
	int $0x81

/* void user_leave(u64 kernel_rsp): the other end, called by the handler of vector 0x81 in ring 0. */
	.globl user_leave
user_leave:
	mov %rdi, %rsp
	mov $0x10, %eax
	mov %eax, %ss				/* the CPU left it null */
	mov %eax, %ds
	mov %eax, %es
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* void compat_call(code32): far call to 32-bit code in compatibility mode; it comes back by a 32-bit lret. */
	.globl compat_call
compat_call:
	push %rbx
	push %rbp
	push %rdi
	movl %edi, compat_target
	lcall *compat_target
	pop %rdi
	pop %rbp
	pop %rbx
	ret

	.data
	.align 8
compat_target:
	.long 0
	.word 0x18

	.section .note.GNU-stack, "", @progbits
