/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot1 header and start of the small L2 kernel: a stack, then kernel_main(magic). */
#define MAGIC 0x1badb002
#define FLAGS 0

	.code32
	.section .multiboot, "a"
	.balign 4
	.long	MAGIC, FLAGS, -(MAGIC + FLAGS)

	.text
	.globl	_start
_start:
	movl	$stack_top, %esp
	pushl	%eax
	call	kernel_main
halt:
	cli
	hlt
	jmp	halt

	.bss
	.balign	16
	.skip	4096
stack_top:

	.section .note.GNU-stack, "", @progbits
