/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction decoding by two opcode tables. SDM volume 2, "Instruction Format" and "Opcode Map". Must not
 * know registers' values or memory.
 */
#include "hv/insn_decode.h"
#include "hv/types.h"

/* What stands behind an opcode. */
enum form {
	F_NONE,
	F_MR,     /* ModRM, memory <- register */
	F_RM,     /* ModRM, register <- memory */
	F_MI,     /* ModRM, memory and immediate */
	F_GROUP,  /* ModRM, its reg field says which instruction of group `op` */
	F_LOAD,   /* accumulator <- address in the instruction */
	F_STORE,  /* address in the instruction <- accumulator */
	F_STRING, /* no ModRM */
};

/* Operand flags. */
#define BYTE   BIT32(0) /* operands of one byte */
#define IMM8   BIT32(1) /* immediate byte, sign-extended */
#define IMMZ   BIT32(2) /* immediate of the operand size, at most 4 bytes, sign-extended */
#define MEM8   BIT32(3) /* memory operand of 1, 2, 4 bytes whatever the register's size */
#define MEM16  BIT32(4)
#define MEM32  BIT32(5)
#define ONLY64 BIT32(6) /* exists in 64-bit mode only */
#define NOT64  BIT32(7) /* does not exist in 64-bit mode */
#define NO_REP BIT32(8) /* with F2/F3 it is another instruction */
#define NO_66  BIT32(9) /* with 66 it is another instruction or none */

struct opcode {
	u8 form; /* enum form */
	u8 op;   /* enum insn_op, or enum group with F_GROUP */
	u16 flags;
};

enum group { GROUP1, GROUP3, GROUP4, GROUP8, GROUP11 };
#define GROUP_NONE 0xff

/* SDM "Opcode Extensions For One- And Two-byte Opcodes": by the reg field of ModRM. */
static const u8 group_table[][8] = {
	[GROUP1] = {INSN_ADD, INSN_OR, INSN_ADC, INSN_SBB, INSN_AND, INSN_SUB, INSN_XOR, INSN_CMP},
	[GROUP3] = {INSN_TEST, INSN_TEST, INSN_NOT, INSN_NEG, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE},
	[GROUP4] = {INSN_INC, INSN_DEC, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE,
		    GROUP_NONE},
	[GROUP8] = {GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE, INSN_BT, INSN_BTS, INSN_BTR, INSN_BTC},
	[GROUP11] = {INSN_MOV, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE, GROUP_NONE,
		     GROUP_NONE},
};

/* clang-format off */
#define ALU(base, op)                                                                   \
	[(base) + 0] = {F_MR, op, BYTE}, [(base) + 1] = {F_MR, op, 0},                  \
	[(base) + 2] = {F_RM, op, BYTE}, [(base) + 3] = {F_RM, op, 0}
#define PAIR(base, form, op, flags)                                                     \
	[base] = {form, op, (flags) | BYTE}, [(base) + 1] = {form, op, flags}

static const struct opcode one_byte[256] = {
	ALU(0x00, INSN_ADD),
	ALU(0x08, INSN_OR),
	ALU(0x10, INSN_ADC),
	ALU(0x18, INSN_SBB),
	ALU(0x20, INSN_AND),
	ALU(0x28, INSN_SUB),
	ALU(0x30, INSN_XOR),
	ALU(0x38, INSN_CMP),
	[0x63] = {F_RM, INSN_MOVSX, MEM32 | ONLY64},
	[0x80] = {F_GROUP, GROUP1, BYTE | IMM8},
	[0x81] = {F_GROUP, GROUP1, IMMZ},
	[0x82] = {F_GROUP, GROUP1, BYTE | IMM8 | NOT64},
	[0x83] = {F_GROUP, GROUP1, IMM8},
	PAIR(0x84, F_MR, INSN_TEST, 0),
	PAIR(0x86, F_MR, INSN_XCHG, 0),
	PAIR(0x88, F_MR, INSN_MOV, 0),
	PAIR(0x8a, F_RM, INSN_MOV, 0),
	PAIR(0xa0, F_LOAD, INSN_MOV, 0),
	PAIR(0xa2, F_STORE, INSN_MOV, 0),
	PAIR(0xa4, F_STRING, INSN_MOVS, 0),
	PAIR(0xa6, F_STRING, INSN_CMPS, 0),
	PAIR(0xaa, F_STRING, INSN_STOS, 0),
	PAIR(0xac, F_STRING, INSN_LODS, 0),
	PAIR(0xae, F_STRING, INSN_SCAS, 0),
	[0xc6] = {F_GROUP, GROUP11, BYTE | IMM8},
	[0xc7] = {F_GROUP, GROUP11, IMMZ},
	[0xf6] = {F_GROUP, GROUP3, BYTE | IMM8}, /* the immediate only with TEST */
	[0xf7] = {F_GROUP, GROUP3, IMMZ},
	[0xfe] = {F_GROUP, GROUP4, BYTE},
	[0xff] = {F_GROUP, GROUP4, 0},
};

/* Behind 0F, from BT on. */
#define TWO(byte) ((byte)-0xa3)
static const struct opcode two_byte[] = {
	[TWO(0xa3)] = {F_MR, INSN_BT, 0},
	[TWO(0xab)] = {F_MR, INSN_BTS, 0},
	PAIR(TWO(0xb0), F_MR, INSN_CMPXCHG, 0),
	[TWO(0xb3)] = {F_MR, INSN_BTR, 0},
	[TWO(0xb6)] = {F_RM, INSN_MOVZX, MEM8},
	[TWO(0xb7)] = {F_RM, INSN_MOVZX, MEM16},
	[TWO(0xba)] = {F_GROUP, GROUP8, IMM8},
	[TWO(0xbb)] = {F_MR, INSN_BTC, 0},
	[TWO(0xbe)] = {F_RM, INSN_MOVSX, MEM8},
	[TWO(0xbf)] = {F_RM, INSN_MOVSX, MEM16},
	PAIR(TWO(0xc0), F_MR, INSN_XADD, 0),
	[TWO(0xc3)] = {F_MR, INSN_MOV, NO_REP | NO_66}, /* MOVNTI */
};
/* clang-format on */

/* Behind 0F 38: only MOVBE. */
static const struct opcode movbe_load = {F_RM, INSN_MOVBE, NO_REP}, movbe_store = {F_MR, INSN_MOVBE, NO_REP};
static const struct opcode no_opcode;

struct decoder {
	const u8 *bytes;
	size_t n, at;
	unsigned bits;
	enum insn_result error; /* INSN_OK while all went well */
	bool size_prefix, addr_prefix, has_rex;
	u8 rex, rep;
	bool lock;
	int seg; /* override, or -1 */
};

#define REX_W 8
#define REX_R 4
#define REX_X 2
#define REX_B 1

static u8 fetch(struct decoder *d)
{
	if (d->at >= INSN_LENGTH_MAX)
		d->error = INSN_TOO_LONG;
	else if (d->at >= d->n && d->error == INSN_OK)
		d->error = INSN_SHORT;
	return d->error == INSN_OK ? d->bytes[d->at++] : 0;
}

/* A little-endian number of `size` bytes, sign-extended. */
static u64 fetch_signed(struct decoder *d, unsigned size)
{
	u64 v = 0, sign;

	for (unsigned i = 0; i < size; i++)
		v |= (u64)fetch(d) << (8 * i);
	if (!size || size == 8)
		return v;
	sign = BIT(8 * size - 1);
	return (v ^ sign) - sign;
}

/* One legacy prefix. False: `byte` is none. */
static bool take_prefix(struct decoder *d, u8 byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
		/* 64-bit mode ignores these four: neither do they undo an earlier FS or GS. */
		if (d->bits != 64)
			d->seg = byte >> 3 & 3;
		return true;
	case 0x64:
	case 0x65:
		d->seg = byte == 0x64 ? SEG_FS : SEG_GS;
		return true;
	case 0x66:
		d->size_prefix = true;
		return true;
	case 0x67:
		d->addr_prefix = true;
		return true;
	case 0xf0:
		d->lock = true;
		return true;
	case INSN_REPNE:
	case INSN_REPE:
		d->rep = byte;
		return true;
	default:
		return false;
	}
}

/* Take all prefixes. Returns the first opcode byte. A REX counts only directly in front of the opcode. */
static u8 take_prefixes(struct decoder *d)
{
	for (;;) {
		u8 byte = fetch(d);

		if (d->error != INSN_OK)
			return 0;
		if (d->bits == 64 && (byte & 0xf0) == 0x40) {
			d->has_rex = true;
			d->rex = byte;
		} else if (take_prefix(d, byte)) {
			d->has_rex = false;
			d->rex = 0;
		} else {
			return byte;
		}
	}
}

static const struct opcode *take_opcode(struct decoder *d)
{
	u8 byte = take_prefixes(d);

	if (byte != 0x0f)
		return &one_byte[byte];
	byte = fetch(d);
	if ((unsigned)TWO(byte) < ARRAY_SIZE(two_byte))
		return &two_byte[TWO(byte)];
	if (byte != 0x38)
		return &no_opcode;
	byte = fetch(d);
	return byte == 0xf0 ? &movbe_load : byte == 0xf1 ? &movbe_store : &no_opcode;
}

static u8 operand_size(const struct decoder *d)
{
	if (d->rex & REX_W)
		return 8;
	return (d->bits == 16) == d->size_prefix ? 4 : 2;
}

static u8 address_size(const struct decoder *d)
{
	if (d->bits == 64)
		return d->addr_prefix ? 4 : 8;
	return (d->bits == 16) == d->addr_prefix ? 4 : 2;
}

/* SDM "16-Bit Addressing Forms with the ModR/M Byte". */
static void address_16(struct decoder *d, struct insn *out, u8 mod, u8 rm)
{
	enum { BX = 3, BP = 5, SI = 6, DI = 7 };
	static const u8 base[8] = {BX, BX, BP, BP, SI, DI, BP, BX};
	static const u8 index[8] = {SI, DI, SI, DI, INSN_NO_REG, INSN_NO_REG, INSN_NO_REG, INSN_NO_REG};

	out->base = base[rm];
	out->index = index[rm];
	if (mod == 0 && rm == 6)
		out->base = INSN_NO_REG;
	out->disp = fetch_signed(d, mod == 1 ? 1 : mod == 2 || out->base == INSN_NO_REG ? 2 : 0);
	if (out->base == BP)
		out->seg = SEG_SS;
}

/* SDM "32-Bit Addressing Forms with the SIB Byte". */
static void address_sib(struct decoder *d, struct insn *out, u8 mod)
{
	u8 sib = fetch(d);
	u8 index = (u8)((sib >> 3 & 7) | (d->rex & REX_X ? 8 : 0));

	out->scale = (u8)(1u << (sib >> 6));
	if (index != 4)
		out->index = index;
	out->base = (u8)((sib & 7) | (d->rex & REX_B ? 8 : 0));
	if (mod == 0 && (sib & 7) == 5)
		out->base = INSN_NO_REG;
}

/* SDM "32-Bit Addressing Forms with the ModR/M Byte", and the 64-bit ones. */
static void address_32(struct decoder *d, struct insn *out, u8 mod, u8 rm)
{
	unsigned disp = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	if (rm == 4) {
		address_sib(d, out, mod);
		if (out->base == INSN_NO_REG)
			disp = 4;
	} else if (mod == 0 && rm == 5) {
		out->base = d->bits == 64 ? INSN_BASE_RIP : INSN_NO_REG;
		disp = 4;
	} else {
		out->base = (u8)(rm | (d->rex & REX_B ? 8 : 0));
	}
	out->disp = fetch_signed(d, disp);
	if (out->base == 4 || out->base == 5)
		out->seg = SEG_SS;
}

/* Memory operand of ModRM. False: it is a register. */
static bool take_memory(struct decoder *d, struct insn *out, u8 modrm)
{
	u8 mod = modrm >> 6, rm = modrm & 7;

	if (mod == 3)
		return false;
	if (out->addr_size == 2)
		address_16(d, out, mod, rm);
	else
		address_32(d, out, mod, rm);
	return true;
}

static void set_register(const struct decoder *d, struct insn *out, u8 modrm)
{
	u8 reg = modrm >> 3 & 7;

	out->reg_high = out->reg_size == 1 && !d->has_rex && reg >= 4;
	out->reg = out->reg_high ? (u8)(reg - 4) : (u8)(reg | (d->rex & REX_R ? 8 : 0));
}

static void set_sizes(const struct decoder *d, struct insn *out, const struct opcode *o)
{
	out->reg_size = o->flags & BYTE ? 1 : operand_size(d);
	out->mem_size = out->reg_size;
	if (o->flags & MEM8)
		out->mem_size = 1;
	if (o->flags & MEM16)
		out->mem_size = 2;
	if (o->flags & MEM32)
		out->mem_size = MIN(out->reg_size, (u8)4); /* MOVSXD with 66 reads 16 bits */
	out->addr_size = address_size(d);
}

/* ModRM operands and the immediate. False: no memory operand, or no such instruction. */
static bool take_modrm(struct decoder *d, struct insn *out, const struct opcode *o)
{
	u8 modrm = fetch(d), op = o->op;
	u16 flags = o->flags;

	if (o->form == F_GROUP) {
		op = group_table[o->op][modrm >> 3 & 7];
		if (op == GROUP_NONE)
			return false;
		if (o->op == GROUP3 && op != INSN_TEST)
			flags &= (u16) ~(IMM8 | IMMZ);
	}
	out->op = op;
	out->form = o->form == F_MR ? INSN_MEM_REG : o->form == F_RM ? INSN_REG_MEM : INSN_MEM_IMM;
	set_register(d, out, modrm);
	if (!take_memory(d, out, modrm))
		return false;
	if (flags & IMM8)
		out->imm = fetch_signed(d, 1);
	if (flags & IMMZ)
		out->imm = fetch_signed(d, MIN(out->reg_size, (u8)4));
	return true;
}

/* Forms without ModRM. */
static void take_implicit(struct decoder *d, struct insn *out, const struct opcode *o)
{
	out->op = o->op;
	if (o->form == F_STRING) {
		out->form = INSN_STRING;
		return;
	}
	out->form = o->form == F_LOAD ? INSN_REG_MEM : INSN_MEM_REG;
	out->disp = fetch_signed(d, out->addr_size);
	if (out->addr_size == 4)
		out->disp = (u32)out->disp;
	if (out->addr_size == 2)
		out->disp = (u16)out->disp;
}

/* SDM "LOCK—Assert LOCK# Signal Prefix": read-modify-write with a memory destination. */
static bool lock_allowed(const struct insn *i)
{
	switch (i->op) {
	case INSN_ADD:
	case INSN_OR:
	case INSN_ADC:
	case INSN_SBB:
	case INSN_AND:
	case INSN_SUB:
	case INSN_XOR:
	case INSN_BTS:
	case INSN_BTR:
	case INSN_BTC:
	case INSN_NOT:
	case INSN_NEG:
	case INSN_INC:
	case INSN_DEC:
	case INSN_XCHG:
	case INSN_XADD:
	case INSN_CMPXCHG:
		return i->form != INSN_REG_MEM;
	default:
		return false;
	}
}

static bool opcode_exists(const struct decoder *d, const struct opcode *o)
{
	if (o->form == F_NONE || ((o->flags & ONLY64) && d->bits != 64) ||
	    ((o->flags & NOT64) && d->bits == 64))
		return false;
	return !((o->flags & NO_REP) && d->rep) && !((o->flags & NO_66) && d->size_prefix);
}

enum insn_result insn_decode(const u8 *bytes, size_t n, unsigned bits, struct insn *out)
{
	struct decoder d = {.bytes = bytes, .n = n, .bits = bits, .seg = -1};
	const struct opcode *o = take_opcode(&d);
	bool known = true;

	*out = (struct insn){.seg = SEG_DS, .base = INSN_NO_REG, .index = INSN_NO_REG, .scale = 1};
	if (d.error != INSN_OK)
		return d.error;
	if (!opcode_exists(&d, o))
		return INSN_UNKNOWN;
	out->rep = d.rep;
	out->lock = d.lock;
	set_sizes(&d, out, o);
	if (o->form >= F_LOAD)
		take_implicit(&d, out, o);
	else
		known = take_modrm(&d, out, o);
	if (d.seg >= 0)
		out->seg = (enum insn_seg)d.seg;
	out->length = (u8)d.at;
	if (d.error != INSN_OK)
		return d.error;
	if (!known)
		return INSN_UNKNOWN;
	return out->lock && !lock_allowed(out) ? INSN_UD : INSN_OK;
}
