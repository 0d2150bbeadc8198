/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding: operands, sizes and lengths in 16-, 32- and 64-bit code, and bytes that end early. SDM volume 2.
 */
/* SOURCES: hv/insn_decode.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "hv/insn_decode.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10, R11, R12, R13, R14, R15 };
#define NONE INSN_NO_REG
#define RIP  INSN_BASE_RIP

static struct insn insn;

/* Decode from a heap block of exactly n bytes, so that ASan sees a read behind the end. */
static enum insn_result decode(const void *bytes, size_t n, unsigned bits)
{
	u8 *copy = malloc(n ? n : 1);
	enum insn_result r;

	memcpy(copy, bytes, n);
	r = insn_decode(copy, n, bits, &insn);
	free(copy);
	return r;
}

struct row {
	unsigned bits;
	const char *bytes;
	u8 n;
	u8 op, form, mem_size, reg_size, reg; /* reg: 0 when it does not matter */
	u8 seg, base, index, scale;
	s64 disp, imm;
};

#define MR   INSN_MEM_REG
#define RM   INSN_REG_MEM
#define MI   INSN_MEM_IMM
#define B(s) s, sizeof(s) - 1

/* clang-format off */
static const struct row rows[] = {
	/* 64-bit: what compilers make of device accesses */
	{64, B("\x8b\x07"),                         INSN_MOV, RM, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x89\x70\x20"),                     INSN_MOV, MR, 4, 4, SI, SEG_DS, AX, NONE, 1, 0x20, 0},
	{64, B("\x48\x8b\x80\x00\x01\x00\xff"),     INSN_MOV, RM, 8, 8, AX, SEG_DS, AX, NONE, 1, -0xffff00, 0},
	{64, B("\x66\x45\x89\x3c\xcc"),             INSN_MOV, MR, 2, 2, R15, SEG_DS, R12, CX, 8, 0, 0},
	{64, B("\x8b\x04\x25\x20\x00\xe0\xfe"),     INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, NONE, 1, -0x11fffe0, 0},
	{64, B("\x8b\x0d\xf8\xff\xff\xff"),         INSN_MOV, RM, 4, 4, CX, SEG_DS, RIP, NONE, 1, -8, 0},
	{64, B("\xc7\x05\x04\x00\x00\x00\x78\x56\x34\x12"), INSN_MOV, MI, 4, 4, 0, SEG_DS, RIP, NONE, 1, 4, 0x12345678},
	{64, B("\x48\xc7\x00\xff\xff\xff\xff"),     INSN_MOV, MI, 8, 8, 0, SEG_DS, AX, NONE, 1, 0, -1},
	{64, B("\x66\xc7\x00\x00\x80"),             INSN_MOV, MI, 2, 2, 0, SEG_DS, AX, NONE, 1, 0, -0x8000},
	{64, B("\xc6\x45\xff\x80"),                 INSN_MOV, MI, 1, 1, 0, SEG_SS, BP, NONE, 1, -1, -128},
	{64, B("\x8b\x04\x24"),                     INSN_MOV, RM, 4, 4, AX, SEG_SS, SP, NONE, 1, 0, 0},
	{64, B("\x42\x8b\x04\x25\x10\x00\x00\x00"), INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, R12, 1, 0x10, 0},
	{64, B("\x41\x8b\x45\x00"),                 INSN_MOV, RM, 4, 4, AX, SEG_DS, R13, NONE, 1, 0, 0},
	{64, B("\x41\x8b\x44\x24\x08"),             INSN_MOV, RM, 4, 4, AX, SEG_DS, R12, NONE, 1, 8, 0},
	{64, B("\x43\x8b\x04\x2d\x01\x00\x00\x00"), INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, R13, 1, 1, 0},
	{64, B("\xa1\x88\x77\x66\x55\x44\x33\x22\x11"), INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, NONE, 1, 0x1122334455667788, 0},
	{64, B("\x67\xa3\x20\x00\xe0\xfe"),         INSN_MOV, MR, 4, 4, AX, SEG_DS, NONE, NONE, 1, 0xfee00020, 0},
	{64, B("\x0f\xb6\x07"),                     INSN_MOVZX, RM, 1, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x4c\x0f\xbf\x07"),                 INSN_MOVSX, RM, 2, 8, R8, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x48\x63\x07"),                     INSN_MOVSX, RM, 4, 8, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x65\x48\x8b\x07"),                 INSN_MOV, RM, 8, 8, AX, SEG_GS, DI, NONE, 1, 0, 0},
	{64, B("\x2e\x8b\x07"),                     INSN_MOV, RM, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x64\x36\x8b\x45\x00"),             INSN_MOV, RM, 4, 4, AX, SEG_FS, BP, NONE, 1, 0, 0},
	{64, B("\x48\x66\x8b\x07"),                 INSN_MOV, RM, 2, 2, AX, SEG_DS, DI, NONE, 1, 0, 0}, /* the REX is lost */
	{64, B("\x66\x48\x8b\x07"),                 INSN_MOV, RM, 8, 8, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x81\x0f\x00\x01\x00\x00"),         INSN_OR, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, 0x100},
	{64, B("\x83\x27\xfe"),                     INSN_AND, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, -2},
	{64, B("\xf7\x07\x00\x10\x00\x00"),         INSN_TEST, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, 0x1000},
	{64, B("\xf6\x07\x80"),                     INSN_TEST, MI, 1, 1, 0, SEG_DS, DI, NONE, 1, 0, -128},
	{64, B("\xf6\x17"),                         INSN_NOT, MI, 1, 1, 0, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x48\xf7\x1f"),                     INSN_NEG, MI, 8, 8, 0, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\xfe\x07"),                         INSN_INC, MI, 1, 1, 0, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\xff\x0f"),                         INSN_DEC, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x0f\xba\x2f\x08"),                 INSN_BTS, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, 8},
	{64, B("\xf0\x0f\xb3\x07"),                 INSN_BTR, MR, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\xf0\x48\x0f\xb1\x0f"),             INSN_CMPXCHG, MR, 8, 8, CX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x0f\xc0\x0f"),                     INSN_XADD, MR, 1, 1, CX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x87\x0f"),                         INSN_XCHG, MR, 4, 4, CX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x3b\x07"),                         INSN_CMP, RM, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x38\x07"),                         INSN_CMP, MR, 1, 1, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x0f\xc3\x07"),                     INSN_MOV, MR, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\x0f\x38\xf1\x07"),                 INSN_MOVBE, MR, 4, 4, AX, SEG_DS, DI, NONE, 1, 0, 0},
	{64, B("\xf3\x48\xa5"),                     INSN_MOVS, INSN_STRING, 8, 8, 0, SEG_DS, NONE, NONE, 1, 0, 0},
	/* 32-bit */
	{32, B("\xa1\x20\x00\xe0\xfe"),             INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, NONE, 1, 0xfee00020, 0},
	{32, B("\x8b\x05\x20\x00\xe0\xfe"),         INSN_MOV, RM, 4, 4, AX, SEG_DS, NONE, NONE, 1, -0x11fffe0, 0},
	{32, B("\x66\x26\x89\x1c\x8d\x00\x00\x00\x01"), INSN_MOV, MR, 2, 2, BX, SEG_ES, NONE, CX, 4, 0x1000000, 0},
	{32, B("\x67\x8a\x42\x05"),                 INSN_MOV, RM, 1, 1, AX, SEG_SS, BP, SI, 1, 5, 0},
	{32, B("\x82\x07\x01"),                     INSN_ADD, MI, 1, 1, 0, SEG_DS, DI, NONE, 1, 0, 1},
	/* 16-bit */
	{16, B("\x8b\x07"),                         INSN_MOV, RM, 2, 2, AX, SEG_DS, BX, NONE, 1, 0, 0},
	{16, B("\x8b\x00"),                         INSN_MOV, RM, 2, 2, AX, SEG_DS, BX, SI, 1, 0, 0},
	{16, B("\x8b\x03"),                         INSN_MOV, RM, 2, 2, AX, SEG_SS, BP, DI, 1, 0, 0},
	{16, B("\x8b\x06\x34\x92"),                 INSN_MOV, RM, 2, 2, AX, SEG_DS, NONE, NONE, 1, -0x6dcc, 0},
	{16, B("\x8b\x46\xfe"),                     INSN_MOV, RM, 2, 2, AX, SEG_SS, BP, NONE, 1, -2, 0},
	{16, B("\x8b\xb5\x00\x10"),                 INSN_MOV, RM, 2, 2, SI, SEG_DS, DI, NONE, 1, 0x1000, 0},
	{16, B("\x67\x66\x8b\x04\x24"),             INSN_MOV, RM, 4, 4, AX, SEG_SS, SP, NONE, 1, 0, 0},
	{16, B("\x66\xc7\x05\x01\x00\x00\x80"),     INSN_MOV, MI, 4, 4, 0, SEG_DS, DI, NONE, 1, 0, -0x7fffffff},
	{16, B("\xa3\xfe\xff"),                     INSN_MOV, MR, 2, 2, AX, SEG_DS, NONE, NONE, 1, 0xfffe, 0},
};
/* clang-format on */

static void expect_row(const struct row *r)
{
	assert_int_equal(insn.op, r->op);
	assert_int_equal(insn.form, r->form);
	assert_int_equal(insn.mem_size, r->mem_size);
	assert_int_equal(insn.reg_size, r->reg_size);
	if (r->form == MR || r->form == RM)
		assert_int_equal(insn.reg, r->reg);
	assert_int_equal(insn.seg, r->seg);
	assert_int_equal(insn.base, r->base);
	assert_int_equal(insn.index, r->index);
	assert_int_equal(insn.scale, r->scale);
	assert_int_equal((s64)insn.disp, r->disp);
	assert_int_equal((s64)insn.imm, r->imm);
}

static void instructions_decode_to_their_operands(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		u8 longer[32];

		assert_int_equal(decode(r->bytes, r->n, r->bits), INSN_OK);
		expect_row(r);
		assert_int_equal(insn.length, r->n);
		/* The same with anything behind it. */
		memset(longer, 0x24, sizeof(longer));
		memcpy(longer, r->bytes, r->n);
		assert_int_equal(decode(longer, sizeof(longer), r->bits), INSN_OK);
		assert_int_equal(insn.length, r->n);
	}
}

static void every_shorter_prefix_asks_for_more(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		for (u8 n = 0; n < rows[i].n; n++)
			assert_int_equal(decode(rows[i].bytes, n, rows[i].bits), INSN_SHORT);
}

static void address_sizes(void **state)
{
	(void)state;
	assert_int_equal(decode("\x8b\x07", 2, 64), INSN_OK);
	assert_int_equal(insn.addr_size, 8);
	assert_int_equal(decode("\x67\x8b\x07", 3, 64), INSN_OK);
	assert_int_equal(insn.addr_size, 4);
	assert_int_equal(decode("\x8b\x07", 2, 32), INSN_OK);
	assert_int_equal(insn.addr_size, 4);
	assert_int_equal(decode("\x67\x8b\x07", 3, 32), INSN_OK);
	assert_int_equal(insn.addr_size, 2);
	assert_int_equal(decode("\x8b\x07", 2, 16), INSN_OK);
	assert_int_equal(insn.addr_size, 2);
	assert_int_equal(decode("\x67\x8b\x07", 3, 16), INSN_OK);
	assert_int_equal(insn.addr_size, 4);
}

/* AH..BH without REX; SPL..DIL with any REX. */
static void byte_registers(void **state)
{
	(void)state;
	assert_int_equal(decode("\x88\x27", 2, 64), INSN_OK);
	assert_int_equal(insn.reg, AX);
	assert_true(insn.reg_high);
	assert_int_equal(decode("\x40\x88\x27", 3, 64), INSN_OK);
	assert_int_equal(insn.reg, SP);
	assert_false(insn.reg_high);
	assert_int_equal(decode("\x40\x66\x88\x27", 4, 64), INSN_OK); /* a REX that does not count */
	assert_int_equal(insn.reg, AX);
	assert_true(insn.reg_high);
	assert_int_equal(decode("\x44\x88\x3f", 3, 64), INSN_OK);
	assert_int_equal(insn.reg, R15);
	assert_int_equal(decode("\x8a\x3f", 2, 32), INSN_OK);
	assert_int_equal(insn.reg, BX);
	assert_true(insn.reg_high);
	/* MOVZX's register is never a byte register. */
	assert_int_equal(decode("\x0f\xb6\x27", 3, 32), INSN_OK);
	assert_int_equal(insn.reg, SP);
	assert_false(insn.reg_high);
}

static void rep_and_lock(void **state)
{
	(void)state;
	assert_int_equal(decode("\xf2\xae", 2, 64), INSN_OK);
	assert_int_equal(insn.rep, INSN_REPNE);
	assert_int_equal(decode("\xf3\xf2\xf3\xa6", 4, 64), INSN_OK);
	assert_int_equal(insn.rep, INSN_REPE); /* the last one counts */
	assert_int_equal(decode("\xf0\xff\x07", 3, 64), INSN_OK);
	assert_true(insn.lock);
	assert_int_equal(decode("\xf0\x89\x07", 3, 64), INSN_UD);     /* MOV */
	assert_int_equal(decode("\xf0\x03\x07", 3, 64), INSN_UD);     /* the register is the destination */
	assert_int_equal(decode("\xf0\x39\x07", 3, 64), INSN_UD);     /* CMP */
	assert_int_equal(decode("\xf0\x0f\xa3\x07", 4, 64), INSN_UD); /* BT */
	assert_int_equal(decode("\xf0\xa5", 2, 64), INSN_UD);
}

static void more_than_15_bytes_are_too_long(void **state)
{
	u8 bytes[32];

	(void)state;
	memset(bytes, 0x66, sizeof(bytes));
	assert_int_equal(decode(bytes, 14, 64), INSN_SHORT);
	assert_int_equal(decode(bytes, 32, 64), INSN_TOO_LONG);
	memcpy(bytes + 13, "\x8b\x07", 2);
	assert_int_equal(decode(bytes, 15, 64), INSN_OK);
	assert_int_equal(insn.length, 15);
	memset(bytes, 0x66, sizeof(bytes));
	memcpy(bytes + 14, "\x8b\x07", 2);
	assert_int_equal(decode(bytes, 16, 64), INSN_TOO_LONG);
}

static void others_are_unknown(void **state)
{
	static const struct {
		unsigned bits;
		const char *bytes;
		u8 n;
	} row[] = {
		{64, B("\x8b\xc0")},         /* register only */
		{64, B("\x0f\x0b")},         /* UD2 */
		{64, B("\x82\x07\x01")},     /* not in 64-bit mode */
		{32, B("\x63\x07")},         /* ARPL */
		{64, B("\xf7\x27")},         /* MUL */
		{64, B("\xff\x17")},         /* CALL */
		{64, B("\xc7\x0f\1\1\1\1")}, /* no such member of the group */
		{64, B("\x0f\xba\x07\x01")}, {64, B("\xf2\x0f\x38\xf0\x07")}, /* CRC32 */
		{64, B("\xf3\x0f\xc3\x07")}, {64, B("\xc5\xf8\x10\x07")},     /* VEX */
		{64, B("\x0f\x10\x07")},                                      /* MOVUPS */
		{64, B("\xd8\x07")},                                          /* x87 */
		{64, B("\x0f\x38\x00\x07")},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(decode(row[i].bytes, row[i].n, row[i].bits), INSN_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_decode_to_their_operands),
		cmocka_unit_test(every_shorter_prefix_asks_for_more),
		cmocka_unit_test(address_sizes),
		cmocka_unit_test(byte_registers),
		cmocka_unit_test(rep_and_lock),
		cmocka_unit_test(more_than_15_bytes_are_too_long),
		cmocka_unit_test(others_are_unknown),
	};

	return cmocka_run_group_tests_name("insn_decode", tests, NULL, NULL);
}
