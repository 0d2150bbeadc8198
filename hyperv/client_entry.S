/* SPDX-License-Identifier: Apache-2.0 */
/* From a patched site (hyperv/client.c), where only the flags may change, to C and back. No policy here. */

	.macro	save
	push	%rax
	push	%rcx
	push	%rdx
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	.endm

	.macro	restore
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rdx
	pop	%rcx
	pop	%rax
	.endm

	.text

/* On the stack: return address, the field; the value takes the field's place. */
	.globl hv_any_read
hv_any_read:
	save
	mov	80(%rsp), %edi
	call	hv_read
	mov	%rax, 80(%rsp)
	restore
	ret

/* On the stack: return address, the field, the value. */
	.globl hv_any_write
hv_any_write:
	save
	mov	80(%rsp), %edi
	mov	88(%rsp), %rsi
	call	hv_write
	restore
	ret

	.globl hv_current_changed
hv_current_changed:
	save
	call	hv_use
	restore
	ret

/* RDI: address of VMCLEAR's operand. */
	.globl hv_vmclear
hv_vmclear:
	save
	call	hv_clear
	restore
	ret

	.section .note.GNU-stack, "", @progbits
