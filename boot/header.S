/* SPDX-License-Identifier: Apache-2.0 */
/* The multiboot1 and multiboot2 headers, nothing else. linker.ld puts them into the first page of the image. */

	.section .headers, "a"

#define MB1_MAGIC 0x1badb002
#define MB1_FLAGS 0x00000003 /* modules page aligned, memory map wanted */

	.balign 8
mb1_header:
	.long	MB1_MAGIC
	.long	MB1_FLAGS
	.long	-(MB1_MAGIC + MB1_FLAGS)

#define MB2_MAGIC 0xe85250d6
#define MB2_ARCH  0 /* 32-bit protected mode of i386 */
#define MB2_LEN	  (mb2_end - mb2_header)
#define TAG_OPTIONAL 1

	.balign 8
mb2_header:
	.long	MB2_MAGIC
	.long	MB2_ARCH
	.long	MB2_LEN
	.long	-(MB2_MAGIC + MB2_ARCH + MB2_LEN)

	/* Console: EGA text understood, no console needed. */
	.balign 8
	.short	4, TAG_OPTIONAL
	.long	12
	.long	2

	/* Framebuffer: any size and depth (UEFI offers nothing but pixels). */
	.balign 8
	.short	5, TAG_OPTIONAL
	.long	20
	.long	0, 0, 0

	/* Modules page aligned. */
	.balign 8
	.short	6, TAG_OPTIONAL
	.long	8

	.balign 8
	.short	0, 0
	.long	8
mb2_end:

	.section .note.GNU-stack, "", @progbits
