/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiboot1 header, the way from 32-bit protected mode to 64-bit code, and the trampoline of application processors.
 * Nothing else: everything that can be C is in start.c.
 */
#define GDT_CODE64 0x08
#define GDT_DATA   0x10
#define GDT_CODE32 0x18
#define STACK_SIZE 16384

	.section .multiboot, "a"
	.align 4
	.long 0x1badb002			/* Multiboot specification, "The layout of Multiboot header" */
	.long 0x00000003			/* page-aligned modules, memory information */
	.long -(0x1badb002 + 0x00000003)

	.section .bss
	.align 4096
	.globl page_pml4, page_pdpt, page_pd
page_pml4:	.skip 4096
page_pdpt:	.skip 4096
page_pd:	.skip 4 * 4096

	.section .data
	.align 8
gdt_pointer:
	.word 0x40 + 16 * 16 - 1
	.long gdt
	.globl boot_magic, boot_info_addr
boot_magic:	.long 0
boot_info_addr:	.long 0

	.text
	.code32
	.globl start32
start32:
	cli
	cld
	mov %eax, boot_magic
	mov %ebx, boot_info_addr

	/* Identity map of 4 GiB in 2 MiB pages, user-accessible so that ring-3 tests need no map of their own. */
	mov $page_pdpt + 7, %eax
	mov %eax, page_pml4
	mov $page_pd + 7, %eax
	mov $page_pdpt, %edi
	mov $4, %ecx
1:	mov %eax, (%edi)
	add $4096, %eax
	add $8, %edi
	loop 1b
	mov $0x87, %eax
	mov $page_pd, %edi
	mov $2048, %ecx
2:	mov %eax, (%edi)
	add $0x200000, %eax
	add $8, %edi
	loop 2b

	mov $start64, %ebp
	jmp long_mode

/* In: protected mode with flat segments, EBP = 64-bit entry point below 4 GiB. */
long_mode:
	lgdt gdt_pointer
	mov $page_pml4, %eax
	mov %eax, %cr3
	mov %cr4, %eax
	or $0x20, %eax				/* PAE */
	mov %eax, %cr4
	mov $0xc0000080, %ecx
	rdmsr
	or $0x900, %eax				/* EFER.LME, NXE */
	wrmsr
	mov %cr0, %eax
	and $0x9fffffff, %eax			/* caches on: INIT leaves CD and NW set */
	or $0x80010023, %eax			/* PG, WP, NE, MP, PE */
	mov %eax, %cr0
	ljmp $GDT_CODE64, $1f
	.code64
1:	mov $GDT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	xor %eax, %eax
	mov %eax, %fs
	mov %eax, %gs
	mov %ebp, %ebp
	jmp *%rbp

start64:
	mov $cpu_stack + STACK_SIZE, %rsp
	xor %ebp, %ebp
	call bsp_main

/* A CPU finds its number by its APIC id, so that INIT and SIPI may come at any time and in any form. */
ap64:
	mov $1, %eax
	cpuid
	shr $24, %ebx
	movzbl apic_to_cpu(%rbx), %edi
	lea 1(%rdi), %eax
	imul $STACK_SIZE, %eax, %eax
	lea cpu_stack(%rax), %rsp
	xor %ebp, %ebp
	call ap_main

	.code32
ap32:
	mov $GDT_DATA, %eax
	mov %eax, %ds
	mov %eax, %es
	mov %eax, %ss
	mov $ap64, %ebp
	jmp long_mode

/* Copied to the page that the SIPI vector names. */
	.code16
	.globl ap_trampoline, ap_trampoline_end
ap_trampoline:
	cli
	mov %cs, %ax
	mov %ax, %ds
	lgdtl ap_gdt_pointer - ap_trampoline
	mov %cr0, %eax
	or $1, %eax
	mov %eax, %cr0
	ljmpl $GDT_CODE32, $ap32
	.align 4
ap_gdt_pointer:
	.word 0x3f
	.long gdt
ap_trampoline_end:
	.code64

	.section .note.GNU-stack, "", @progbits
