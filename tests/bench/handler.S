/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's exit handlers of the round-trip rows, as short as a hypervisor's can be: save 15 registers, read reason, RIP and length, move
 * RIP on, load the registers, resume. Any exit but CPUID goes to the library's own handler, which returns to C.
 */
#define FIELD_LENGTH 0x440c
#define FIELD_REASON 0x4402
#define FIELD_RIP    0x681e
#define REASON_CPUID 10
#define EV_REASON    692
#define EV_LENGTH    712
#define EV_RIP       816
#define EV_CLEAN     824

	.macro SAVE
	.irp reg, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15
	push %\reg
	.endr
	.endm

	.macro LOAD
	.irp reg, r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax
	pop %\reg
	.endr
	.endm

	.macro NEXT_PLAIN
	mov $FIELD_REASON, %ecx
	vmread %rcx, %rax
	cmp $REASON_CPUID, %eax
	jne leave
	mov $FIELD_RIP, %ecx
	vmread %rcx, %rdx
	mov $FIELD_LENGTH, %ebx
	vmread %rbx, %rsi
	add %rsi, %rdx
	vmwrite %rdx, %rcx
	.endm

	.macro NEXT_EVMCS
	mov bench_evmcs, %rbx
	cmpl $REASON_CPUID, EV_REASON(%rbx)
	jne leave
	mov EV_RIP(%rbx), %rdx
	mov EV_LENGTH(%rbx), %esi
	add %rsi, %rdx
	mov %rdx, EV_RIP(%rbx)
	.endm

	.text
	.code64
	.globl bench_exit_plain
bench_exit_plain:
	SAVE
	NEXT_PLAIN
	LOAD
	vmresume
	ud2

/* As above, and goes on with the other VMCS of bench_pair; after bench_left exits it leaves. */
	.globl bench_exit_pair
bench_exit_pair:
	SAVE
	NEXT_PLAIN
	mov bench_turn, %rax
	xor $8, %rax
	mov %rax, bench_turn
	vmptrld bench_pair(%rax)
	decl bench_left
	jz leave
	LOAD
	vmresume
	ud2

	.globl bench_exit_clean
bench_exit_clean:
	SAVE
	NEXT_EVMCS
	LOAD
	vmresume
	ud2

	.globl bench_exit_dirty
bench_exit_dirty:
	SAVE
	NEXT_EVMCS
	movl $0, EV_CLEAN(%rbx)
	LOAD
	vmresume
	ud2

leave:
	LOAD
	jmp l2_exit

	.data
	.balign 8
	.globl bench_evmcs, bench_pair, bench_turn, bench_left
bench_evmcs:
	.quad 0
bench_pair:
	.quad 0, 0
bench_turn:
	.quad 0
bench_left:
	.long 0

	.section .note.GNU-stack, "", @progbits
