/* SPDX-License-Identifier: Apache-2.0 */
/* What takes the place of VMREAD and VMWRITE, byte by byte, as an assembler would write it. */
/* SOURCES: hyperv/patch.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/types.h"
#include "hyperv/patch.h"

#define JBE 0x0f, 0x86, 0x10, 0x20, 0x00, 0x00
#define DS6 0x3e, 0x3e, 0x3e, 0x3e, 0x3e, 0x3e
#define DS2 0x3e, 0x3e

static u8 code[32];

static void assert_code(const u8 *want, size_t n)
{
	assert_memory_equal(code, want, n);
	assert_int_equal(code[n], 0xcc); /* what follows the site is untouched */
}

static struct patch_site site(const u8 *bytes, size_t n)
{
	struct patch_site s;

	memset(code, 0xcc, sizeof(code));
	memcpy(code, bytes, n);
	assert_true(patch_decode(code, &s));
	assert_int_equal(s.size, n);
	return s;
}

#define SITE(...)                                                                                            \
	({                                                                                                   \
		static const u8 b_[] = {__VA_ARGS__};                                                        \
		site(b_, sizeof(b_));                                                                        \
	})
#define ASSERT_CODE(...)                                                                                     \
	do {                                                                                                 \
		static const u8 b_[] = {__VA_ARGS__};                                                        \
		assert_code(b_, sizeof(b_));                                                                 \
	} while (0)

static void decodes(void **state)
{
	struct patch_site s;

	(void)state;
	s = SITE(0x0f, 0x78, 0xc2, JBE); /* vmread %rax, %rdx */
	assert_true(s.kind == SITE_READ && s.value == 2 && s.field == 0);
	s = SITE(0x45, 0x0f, 0x79, 0xf9, JBE); /* vmwrite %r9, %r15 */
	assert_true(s.kind == SITE_WRITE && s.value == 9 && s.field == 15);
	s = SITE(DS6, 0x41, 0x0f, 0x78, 0xc4); /* ds; ... vmread %rax, %r12 */
	assert_true(s.kind == SITE_READ && s.value == 12 && s.field == 0);
	s = SITE(DS6, 0x0f, 0x79, 0xcb); /* vmwrite %rbx, %rcx */
	assert_true(s.kind == SITE_WRITE && s.value == 3 && s.field == 1 && !s.memory);
	s = SITE(DS2, 0x0f, 0x78, 0x07); /* vmread %rax, (%rdi) */
	assert_true(s.kind == SITE_READ && s.memory && s.memory_len == 1);
	s = SITE(DS2, 0x41, 0x0f, 0x79, 0x4c, 0x24, 0x10); /* vmwrite 0x10(%r12), %rcx */
	assert_true(s.kind == SITE_WRITE && s.field == 1 && s.memory_len == 3);
	s = SITE(DS2, 0x0f, 0x78, 0x84, 0xd1, 0, 1, 0, 0); /* vmread %rax, 0x100(%rcx,%rdx,8) */
	assert_int_equal(s.memory_len, 6);
}

static void refuses(void **state)
{
	static const u8 memory[] = {0x0f, 0x78, 0x07, JBE};          /* vmread %rax, (%rdi) */
	static const u8 other[] = {0x0f, 0xc7, 0x37, JBE};           /* vmptrld (%rdi) */
	static const u8 stack[] = {DS2, 0x0f, 0x78, 0x44, 0x24, 8};  /* vmread %rax, 8(%rsp) */
	static const u8 rip[] = {DS2, 0x0f, 0x78, 0x05, 0, 0, 0, 0}; /* vmread %rax, 0(%rip) */
	struct patch_site s;

	(void)state;
	assert_false(patch_decode(memory, &s));
	assert_false(patch_decode(other, &s));
	assert_false(patch_decode(stack, &s));
	assert_false(patch_decode(rip, &s));
}

static const struct patch_field f16 = {.disp = 0x1008, .bytes = 2, .clean_disp = 0x1339, .clean_mask = 0x40};
static const struct patch_field f32 = {.disp = 0x12b4, .bytes = 4};
static const struct patch_field f64 = {.disp = 0x1330, .bytes = 8};

static void loads(void **state)
{
	struct patch_site s;

	(void)state;
	s = SITE(0x0f, 0x78, 0xc2, JBE);
	patch_move(code, &s, &f64); /* mov %gs:0x1330, %rdx */
	ASSERT_CODE(0x65, 0x48, 0x8b, 0x14, 0x25, 0x30, 0x13, 0, 0);
	s = SITE(0x0f, 0x78, 0xc2, JBE);
	patch_move(code, &s, &f32); /* mov %gs:0x12b4, %edx; nop */
	ASSERT_CODE(0x65, 0x8b, 0x14, 0x25, 0xb4, 0x12, 0, 0, 0x90);
	s = SITE(0x0f, 0x78, 0xc2, JBE);
	patch_move(code, &s, &f16); /* movzwl %gs:0x1008, %edx */
	ASSERT_CODE(0x65, 0x0f, 0xb7, 0x14, 0x25, 0x08, 0x10, 0, 0);
	s = SITE(DS6, 0x41, 0x0f, 0x78, 0xc4);
	patch_move(code, &s, &f16); /* movzwl %gs:0x1008, %r12d */
	ASSERT_CODE(0x65, 0x44, 0x0f, 0xb7, 0x24, 0x25, 0x08, 0x10, 0, 0);
	s = SITE(0x44, 0x0f, 0x78, 0xc2, JBE);
	patch_move(code, &s,
		   &f32); /* only the field's register has a REX: mov %gs:0x12b4, %edx; jmp over the rest */
	assert_memory_equal(code, ((u8[]){0x65, 0x8b, 0x14, 0x25, 0xb4, 0x12, 0, 0, 0xeb, 0x00}), 10);
}

static void stores(void **state)
{
	u8 out[PATCH_ROUTINE + 8];
	struct patch_site s;
	u8 *end;

	(void)state;
	s = SITE(0x45, 0x0f, 0x79, 0xf9, JBE);
	patch_move(code, &s, &f64); /* mov %r9, %gs:0x1330; nop */
	ASSERT_CODE(0x65, 0x4c, 0x89, 0x0c, 0x25, 0x30, 0x13, 0, 0, 0x90);
	end = patch_routine(out, &s, &f16); /* mov %r9w, %gs:0x1008; andb $0xbf, %gs:0x1339; ret */
	assert_int_equal(end - out, 20);
	assert_true(end - out <= PATCH_ROUTINE);
	assert_memory_equal(out, ((u8[]){0x66, 0x65, 0x44, 0x89, 0x0c, 0x25, 0x08, 0x10, 0,    0,
					 0x65, 0x80, 0x24, 0x25, 0x39, 0x13, 0,    0,    0xbf, 0xc3}),
			    20);
}

/* Memory on the other side: by a register that its address is not made of. */
static void memory(void **state)
{
	u8 out[PATCH_ROUTINE + 8];
	struct patch_site s;
	u8 *end;

	(void)state;
	s = SITE(DS2, 0x0f, 0x78, 0x40, 0x10); /* vmread %rax, 0x10(%rax) */
	end = patch_routine(out, &s, &f16);
	/* push %rcx; movzwl %gs:0x1008, %ecx; mov %rcx, 0x10(%rax); pop %rcx; ret */
	assert_memory_equal(out,
			    ((u8[]){0x51, 0x65, 0x0f, 0xb7, 0x0c, 0x25, 0x08, 0x10, 0, 0, 0x48, 0x89, 0x48,
				    0x10, 0x59, 0xc3}),
			    16);
	assert_int_equal(end - out, 16);
	s = SITE(DS2, 0x42, 0x0f, 0x79, 0x8c, 0x01, 0, 1, 0, 0); /* vmwrite 0x100(%rcx,%r8,1), %rcx */
	end = patch_routine(out, &s, &f64);
	/* push %rdx; mov 0x100(%rcx,%r8,1), %rdx; mov %rdx, %gs:0x1330; pop %rdx; ret */
	assert_memory_equal(out + 1,
			    ((u8[]){0x4a, 0x8b, 0x94, 0x01, 0, 1, 0, 0, 0x65, 0x48, 0x89, 0x14, 0x25, 0x30,
				    0x13, 0, 0, 0x5a, 0xc3}),
			    19);
	assert_int_equal(end - out, 20);
	s = SITE(DS2, 0x41, 0x0f, 0x79, 0x8c, 0x24, 0, 1, 0, 0); /* vmwrite 0x100(%r12), %rcx */
	end = patch_routine(out, &s, &f16);
	assert_true(end - out <= PATCH_ROUTINE);
	/* push %rax; mov 0x100(%r12), %rax; mov %ax, %gs:0x1008; andb; pop %rax; ret */
	assert_memory_equal(out, ((u8[]){0x50, 0x49, 0x8b, 0x84, 0x24, 0,    1,    0,    0,    0x66,
					 0x65, 0x89, 0x04, 0x25, 0x08, 0x10, 0,    0,    0x65, 0x80,
					 0x24, 0x25, 0x39, 0x13, 0,    0,    0xbf, 0x58, 0xc3}),
			    29);
}

static void calls(void **state)
{
	(void)state;
	SITE(0x0f, 0x79, 0xcb, JBE);
	patch_call(code, 9, code + 5 + 0x100); /* call .+0x105; jmp over the rest */
	assert_memory_equal(code, ((u8[]){0xe8, 0x00, 0x01, 0, 0, 0xeb, 0x02}), 7);
	assert_int_equal(code[9], 0xcc);
	patch_jump(code, code + 5 - 0x10); /* jmp .-0xb */
	assert_memory_equal(code, ((u8[]){0xe9, 0xf0, 0xff, 0xff, 0xff}), 5);
}

static void unknown_fields(void **state)
{
	u8 out[PATCH_ROUTINE + 8];
	struct patch_site s;
	u8 *end;

	(void)state;
	s = SITE(0x44, 0x0f, 0x78, 0xc2, JBE); /* vmread %r8, %rdx */
	end = patch_any_routine(out, &s, out + 7);
	assert_int_equal(end - out, 9); /* push %r8; call; pop %rdx; ret */
	assert_memory_equal(out, ((u8[]){0x41, 0x50, 0xe8, 0, 0, 0, 0, 0x5a, 0xc3}), 9);
	s = SITE(0x45, 0x0f, 0x79, 0xf9, JBE); /* vmwrite %r9, %r15 */
	end = patch_any_routine(out, &s, out + 9);
	assert_int_equal(end - out, 15); /* push %r9; push %r15; call; lea 16(%rsp), %rsp; ret */
	assert_memory_equal(
		out, ((u8[]){0x41, 0x51, 0x41, 0x57, 0xe8, 0, 0, 0, 0, 0x48, 0x8d, 0x64, 0x24, 0x10, 0xc3}),
		15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes),        cmocka_unit_test(refuses), cmocka_unit_test(loads),
		cmocka_unit_test(stores),         cmocka_unit_test(memory),  cmocka_unit_test(calls),
		cmocka_unit_test(unknown_fields),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
