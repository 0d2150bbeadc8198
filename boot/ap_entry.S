/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an application processor starts after SIPI: real mode, at a page below 640 KiB that boot/smp.c copied ap_blob to. Goes to long
 * mode on the boot page tables, finds its slot by APIC id, claims it and calls ap_main(slot index). An unknown or late CPU halts for good.
 */
#include "boot/ap_slot.h"

#define CR0_BITS 0x80010033 /* PG WP NE ET MP PE */
#define CR4_PAE	 0x20
#define MSR_EFER 0xc0000080
#define EFER_LME 0x100

	.section .rodata.ap, "a"
	.globl	ap_blob, ap_blob_end
	.code16
ap_blob:
	cli
	cld
	mov	%cs, %ax
	mov	%ax, %ds
	lgdtl	ap_gdt_ptr - ap_blob
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
	ljmpl	$0x08, $ap_entry64
	.balign	8
ap_gdt_ptr:
	.short	0x17
	.long	boot_gdt
ap_blob_end:

	.section .text.entry, "ax"
	.code64
ap_entry64:
	mov	$0x10, %eax
	mov	%eax, %ds
	mov	%eax, %es
	mov	%eax, %ss
	xor	%eax, %eax
	mov	%eax, %fs
	mov	%eax, %gs

	/* APIC id: CPUID leaf 0xb when it means something, else leaf 1. */
	cpuid
	cmp	$0xb, %eax
	jb	1f
	mov	$0xb, %eax
	xor	%ecx, %ecx
	cpuid
	test	%ebx, %ebx
	mov	%edx, %edi
	jnz	2f
1:	mov	$1, %eax
	cpuid
	shr	$24, %ebx
	mov	%ebx, %edi

2:	mov	$ap_slots, %rsi
	xor	%ecx, %ecx
3:	cmp	ap_slots_used, %ecx
	jae	5f
	cmp	%edi, AP_SLOT_APIC_ID(%rsi)
	je	4f
	add	$AP_SLOT_SIZE, %rsi
	inc	%ecx
	jmp	3b
4:	mov	$AP_WAITED_FOR, %eax
	mov	$AP_ARRIVED, %edx
	lock cmpxchg %edx, AP_SLOT_STATE(%rsi)
	jne	5f
	mov	AP_SLOT_STACK(%rsi), %rsp
	xor	%ebp, %ebp
	mov	%ecx, %edi
	call	ap_main
5:	cli
	hlt
	jmp	5b

	.section .note.GNU-stack, "", @progbits
