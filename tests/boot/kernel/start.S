/* SPDX-License-Identifier: Apache-2.0 */
/* 32-bit multiboot1 entry of the small kernels of tests/boot: a stack, then C. */
	.section .multiboot, "a"
	.balign 4
	.long 0x1badb002, 3, -(0x1badb002 + 3)	/* page-aligned modules, memory map */

	.text
	.globl _start
_start:
	mov	$stack_end, %esp
	push	%ebx
	push	%eax
	call	kernel_main
1:	hlt
	jmp	1b

	.bss
	.balign 16
	.skip	16384
stack_end:

	.section .note.GNU-stack, "", @progbits
