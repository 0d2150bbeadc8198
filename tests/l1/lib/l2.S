/* SPDX-License-Identifier: Apache-2.0 */
/* Entering and leaving L2. The exit code pushes L2's registers right into struct l2_frame, on which HOST_RSP points. */
#define FRAME_REGS 512

	.text
	.code64

/* u64 l2_switch(struct l2_frame *, bool resume): 0 after an exit, RFLAGS after a failed instruction. */
	.globl l2_switch
l2_switch:
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	push %rdi
	mov %rsp, (%rdi)
	test %esi, %esi
	mov FRAME_REGS+0(%rdi), %r15
	mov FRAME_REGS+8(%rdi), %r14
	mov FRAME_REGS+16(%rdi), %r13
	mov FRAME_REGS+24(%rdi), %r12
	mov FRAME_REGS+32(%rdi), %r11
	mov FRAME_REGS+40(%rdi), %r10
	mov FRAME_REGS+48(%rdi), %r9
	mov FRAME_REGS+56(%rdi), %r8
	mov FRAME_REGS+64(%rdi), %rbp
	mov FRAME_REGS+80(%rdi), %rsi
	mov FRAME_REGS+88(%rdi), %rdx
	mov FRAME_REGS+96(%rdi), %rcx
	mov FRAME_REGS+104(%rdi), %rbx
	mov FRAME_REGS+112(%rdi), %rax
	mov FRAME_REGS+72(%rdi), %rdi
	jnz 1f
	.globl l2_vmlaunch
l2_vmlaunch:
	vmlaunch
	jmp 2f
1:	vmresume
2:	pushf
	pop %rax
	jmp 3f
	.pushsection .fixups, "a"
	.quad l2_vmlaunch, 2b
	.quad 1b, 2b
	.popsection

	.globl l2_exit
l2_exit:
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
	mov -FRAME_REGS(%rsp), %rsp
	xor %eax, %eax
3:	pop %rdi
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret

/* First instruction of a 64-bit L2: RDI = the function. */
	.globl l2_start
l2_start:
	call *%rdi
	mov $0xd04e, %eax
	vmcall
	jmp l2_start

	.globl l2_call
l2_call:
	mov %rdi, %rax
	vmcall
	ret

	.section .note.GNU-stack, "", @progbits
