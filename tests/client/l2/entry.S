/* SPDX-License-Identifier: Apache-2.0 */
/* Multiboot1 header, PVH note and start of the small L2 kernel: a stack, then kernel_main(magic). */
#define MAGIC 0x1badb002
#define FLAGS 0
#define XEN_ELFNOTE_PHYS32_ENTRY 18

	.code32
	.section .multiboot, "a"
	.balign 4
	.long	MAGIC, FLAGS, -(MAGIC + FLAGS)

/* Xen "x86/HVM direct boot ABI (PVH)": where to start, in 32-bit protected mode without paging. */
	.section .note.pvh, "a", @note
	.balign 4
	.long	4, 4, XEN_ELFNOTE_PHYS32_ENTRY
	.asciz	"Xen"
	.long	pvh_start

	.text
	.globl	_start
pvh_start:
	movl	(%ebx), %eax		/* the magic number of struct hvm_start_info */
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
