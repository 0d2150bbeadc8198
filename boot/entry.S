/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the loader's 32-bit protected mode to long mode, on page tables in .bss that map the low 4 GiB at their own address. Writes
 * nothing outside the image: the loader's data is still unread.
 */

#define PTE_P	  0x001
#define PTE_RW	  0x002
#define PTE_PS	  0x080
#define CR0_BITS  0x80010033 /* PG WP NE ET MP PE */
#define CR4_PAE	  0x20
#define MSR_EFER  0xc0000080
#define EFER_LME  0x100
#define BOOT_STACK_SIZE 0x8000

	.section .text.entry, "ax"
	.code32
	.globl	start32
start32:
	cli
	cld
	mov	%eax, %edi		/* loader's magic: first argument of boot_main */
	mov	%ebx, %esi		/* loader's structure: second */
	mov	$boot_stack_top, %esp

	mov	$0x80000000, %eax
	cpuid
	cmp	$0x80000001, %eax
	jb	no_long_mode
	mov	$0x80000001, %eax
	cpuid
	bt	$29, %edx
	jnc	no_long_mode

	/* Level 4 and 3, then 2048 pages of 2 MiB. */
	movl	$boot_pdpt + PTE_P + PTE_RW, boot_pml4
	mov	$boot_pd + PTE_P + PTE_RW, %eax
	xor	%ecx, %ecx
1:	mov	%eax, boot_pdpt(, %ecx, 8)
	add	$0x1000, %eax
	inc	%ecx
	cmp	$4, %ecx
	jb	1b
	mov	$PTE_P + PTE_RW + PTE_PS, %eax
	xor	%ecx, %ecx
2:	mov	%eax, boot_pd(, %ecx, 8)
	add	$0x200000, %eax
	inc	%ecx
	cmp	$2048, %ecx
	jb	2b

	mov	$CR4_PAE, %eax
	mov	%eax, %cr4
	mov	$boot_pml4, %eax
	mov	%eax, %cr3
	mov	$MSR_EFER, %ecx
	rdmsr
	or	$EFER_LME, %eax
	wrmsr
	mov	$CR0_BITS, %eax
	mov	%eax, %cr0
	lgdt	boot_gdt_ptr
	ljmp	$0x08, $start64

no_long_mode:
	mov	$no_long_mode_text, %esi
	mov	$0x3f8, %dx
3:	lodsb
	test	%al, %al
	jz	4f
	out	%al, %dx
	jmp	3b
4:	cli
	hlt
	jmp	4b

	.code64
start64:
	mov	$0x10, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	xor	%eax, %eax
	mov	%eax, %fs
	mov	%eax, %gs
	mov	%eax, %eax
	mov	%edi, %edi
	mov	%esi, %esi
	mov	$boot_stack_top, %esp
	xor	%ebp, %ebp
	call	boot_main
5:	cli
	hlt
	jmp	5b

/* void stack_switch(u64 top, void (*fn)(void)): never returns, neither may fn. */
	.globl	stack_switch
stack_switch:
	mov	%rdi, %rsp
	xor	%ebp, %ebp
	call	*%rsi
	ud2

	.section .rodata.boot, "a"
	.balign	8
	.globl	boot_gdt
boot_gdt:
	.quad	0
	.quad	0x00af9b000000ffff	/* 0x08: 64-bit code */
	.quad	0x00cf93000000ffff	/* 0x10: data */
boot_gdt_end:
boot_gdt_ptr:
	.short	boot_gdt_end - boot_gdt - 1
	.quad	boot_gdt
no_long_mode_text:
	.asciz	"nidus: this CPU has no 64-bit mode\r\n"

	.section .bss.pages, "aw", @nobits
	.balign	4096
	.globl	boot_pml4
boot_pml4:
	.skip	4096
boot_pdpt:
	.skip	4096
boot_pd:
	.skip	4 * 4096
	.globl	boot_stack_guard
boot_stack_guard:
	.skip	4096
	.skip	BOOT_STACK_SIZE
boot_stack_top:

	.section .note.GNU-stack, "", @progbits
