/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder for the integer instructions that programs use on device memory: what the instruction is, its
 * operands and its length, from nothing but bytes. Instructions without a memory operand, and those that L0
 * does not carry out (SSE, x87, far transfers), are INSN_UNKNOWN. Pure.
 */
#ifndef NIDUS_HV_INSN_DECODE_H
#define NIDUS_HV_INSN_DECODE_H

#include "hv/types.h"

#define INSN_LENGTH_MAX 15

/* The first eight in the order of opcode bits 5:3, the bit tests in that of opcode bits 4:3. */
enum insn_op {
	INSN_ADD,
	INSN_OR,
	INSN_ADC,
	INSN_SBB,
	INSN_AND,
	INSN_SUB,
	INSN_XOR,
	INSN_CMP,
	INSN_BT,
	INSN_BTS,
	INSN_BTR,
	INSN_BTC,
	INSN_TEST,
	INSN_NOT,
	INSN_NEG,
	INSN_INC,
	INSN_DEC,
	INSN_MOV,
	INSN_MOVZX,
	INSN_MOVSX,
	INSN_MOVBE,
	INSN_XCHG,
	INSN_XADD,
	INSN_CMPXCHG,
	INSN_MOVS,
	INSN_CMPS,
	INSN_STOS,
	INSN_LODS,
	INSN_SCAS,
};

enum insn_form {
	INSN_REG_MEM, /* register <- memory */
	INSN_MEM_REG, /* memory <- register (also BT, CMPXCHG, XADD, XCHG, TEST) */
	INSN_MEM_IMM, /* memory <- immediate, or memory alone (NOT, INC...) */
	INSN_STRING,  /* implicit rSI, rDI, rCX */
};

/* Numbers as in instruction encodings. */
enum insn_seg { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS };

#define INSN_NO_REG   0xff
#define INSN_BASE_RIP 0xfe
#define INSN_REPE     0xf3
#define INSN_REPNE    0xf2

struct insn {
	enum insn_op op;
	enum insn_form form;
	u8 length;
	u8 mem_size;   /* bytes of the memory operand: 1, 2, 4, 8 */
	u8 reg_size;   /* bytes of the register operand */
	u8 addr_size;  /* 2, 4, 8 */
	u8 reg;        /* register operand, 0-15 */
	bool reg_high; /* it is AH, CH, DH or BH: byte 1 of register `reg` */
	u64 imm;       /* sign-extended */
	enum insn_seg seg;
	u8 base, index; /* register, INSN_NO_REG, or INSN_BASE_RIP: the next instruction's address */
	u8 scale;       /* 1, 2, 4, 8 */
	u64 disp;       /* sign-extended */
	u8 rep;         /* INSN_REPE, INSN_REPNE or 0 */
	bool lock;
};

enum insn_result {
	INSN_OK,
	INSN_SHORT,    /* the bytes end inside the instruction: fetch more */
	INSN_TOO_LONG, /* more than 15 bytes: #GP(0) */
	INSN_UD,       /* #UD: LOCK where it is not allowed */
	INSN_UNKNOWN,
};

/* `bits`: default size of the code segment, 16, 32 or 64. Reads at most n bytes. */
enum insn_result insn_decode(const u8 *bytes, size_t n, unsigned bits, struct insn *out);

#endif
