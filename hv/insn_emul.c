/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instruction emulation with the CPU's flags. SDM volume 2 for each instruction, volume 1 "EFLAGS Register".
 * All memory accesses of an instruction come before the first change of a register, so a fault leaves no
 * trace.
 */
#include "hv/insn_emul.h"
#include "hv/x86.h"

enum { R_AX = 0, R_CX = 1, R_SI = 6, R_DI = 7 };

static u64 size_mask(unsigned size)
{
	return size == 8 ? ~0ull : MASK(8 * size);
}

static u64 sign_bit(unsigned size)
{
	return BIT(8 * size - 1);
}

static u64 sign_extend(u64 v, unsigned size)
{
	return ((v & size_mask(size)) ^ sign_bit(size)) - sign_bit(size);
}

/* A register's new value when its low `size` bytes are written: 4 bytes clear the rest, 1 and 2 keep it. */
static u64 merge_register(u64 old, u64 value, unsigned size)
{
	if (size >= 4)
		return value & size_mask(size);
	return (old & ~size_mask(size)) | (value & size_mask(size));
}

static void set_low(struct insn_env *env, unsigned reg, u64 value, unsigned size)
{
	env->set_reg(env->ctx, reg, merge_register(env->reg(env->ctx, reg), value, size));
}

static u64 get_operand(const struct insn *i, const struct insn_env *env)
{
	u64 v = env->reg(env->ctx, i->reg);

	return (i->reg_high ? v >> 8 : v) & size_mask(i->reg_size);
}

static void set_operand(const struct insn *i, struct insn_env *env, u64 value)
{
	u64 old = env->reg(env->ctx, i->reg);

	if (i->reg_high)
		env->set_reg(env->ctx, i->reg, (old & ~0xff00ull) | (value & 0xff) << 8);
	else
		set_low(env, i->reg, value, i->reg_size);
}

u64 insn_offset(const struct insn *i, const struct insn_env *env)
{
	u64 offset = i->disp;

	if (i->base == INSN_BASE_RIP)
		offset += env->rip + i->length;
	else if (i->base != INSN_NO_REG)
		offset += env->reg(env->ctx, i->base);
	if (i->index != INSN_NO_REG)
		offset += env->reg(env->ctx, i->index) * i->scale;
	return offset & size_mask(i->addr_size);
}

static bool mem_access(const struct insn *i, const struct insn_env *env, enum insn_access a, u64 *value)
{
	return env->access(env->ctx, i->seg, insn_offset(i, env), i->mem_size, a, value);
}

/* --- flags --- */

static void set_flags(struct insn_env *env, u64 mask, u64 flags)
{
	env->rflags = (env->rflags & ~mask) | (flags & mask);
}

static u64 flags_of_result(u64 r, unsigned size)
{
	u64 flags = 0;

	if (!__builtin_parity((unsigned)r & 0xff))
		flags |= RFLAGS_PF;
	if (!(r & size_mask(size)))
		flags |= RFLAGS_ZF;
	if (r & sign_bit(size))
		flags |= RFLAGS_SF;
	return flags;
}

/* `carries`: bit n is the carry (or borrow) out of bit n. `overflow`: its sign bit counts. */
static u64 flags_of_sum(u64 r, u64 carries, u64 overflow, unsigned size)
{
	u64 flags = flags_of_result(r, size);

	if (carries & sign_bit(size))
		flags |= RFLAGS_CF;
	if (carries & 8)
		flags |= RFLAGS_AF;
	if (overflow & sign_bit(size))
		flags |= RFLAGS_OF;
	return flags;
}

static u64 add(u64 a, u64 b, u64 carry, unsigned size, u64 *flags)
{
	u64 r = a + b + carry;

	*flags = flags_of_sum(r, (a & b) | ((a | b) & ~r), (a ^ r) & (b ^ r), size);
	return r;
}

static u64 subtract(u64 a, u64 b, u64 borrow, unsigned size, u64 *flags)
{
	u64 r = a - b - borrow;

	*flags = flags_of_sum(r, (~a & b) | ((~a | b) & r), (a ^ b) & (a ^ r), size);
	return r;
}

/* SDM: AND, OR, XOR, TEST clear CF and OF; AF is undefined, and 0 on all known CPUs. */
static u64 logic(u64 r, unsigned size, u64 *flags)
{
	*flags = flags_of_result(r, size);
	return r;
}

/* a op b with the flags it sets; the caller decides what is stored. */
static u64 compute(enum insn_op op, u64 a, u64 b, unsigned size, u64 rflags, u64 *flags)
{
	u64 carry = rflags & RFLAGS_CF ? 1 : 0;

	switch (op) {
	case INSN_ADD:
	case INSN_XADD:
		return add(a, b, 0, size, flags);
	case INSN_ADC:
		return add(a, b, carry, size, flags);
	case INSN_SBB:
		return subtract(a, b, carry, size, flags);
	case INSN_OR:
		return logic(a | b, size, flags);
	case INSN_AND:
	case INSN_TEST:
		return logic(a & b, size, flags);
	case INSN_XOR:
		return logic(a ^ b, size, flags);
	default: /* SUB, CMP, CMPXCHG, CMPS, SCAS */
		return subtract(a, b, 0, size, flags);
	}
}

/* --- one function for each kind of instruction --- */

typedef enum emul_result emul_fn(const struct insn *i, struct insn_env *env);

static enum emul_result emul_alu(const struct insn *i, struct insn_env *env)
{
	bool stores = i->op != INSN_CMP && i->op != INSN_TEST;
	bool to_memory = i->form != INSN_REG_MEM;
	u64 mem, other, r, flags;

	if (!mem_access(i, env, to_memory && stores ? INSN_MODIFY : INSN_READ, &mem))
		return EMUL_FAULT;
	other = i->form == INSN_MEM_IMM ? i->imm & size_mask(i->mem_size) : get_operand(i, env);
	r = to_memory ? compute(i->op, mem, other, i->mem_size, env->rflags, &flags)
		      : compute(i->op, other, mem, i->mem_size, env->rflags, &flags);
	r &= size_mask(i->mem_size);
	if (stores && to_memory && !mem_access(i, env, INSN_WRITE, &r))
		return EMUL_FAULT;
	if (stores && !to_memory)
		set_operand(i, env, r);
	set_flags(env, RFLAGS_ALU, flags);
	return EMUL_DONE;
}

static enum emul_result emul_unary(const struct insn *i, struct insn_env *env)
{
	u64 mem, r, flags = 0, mask = RFLAGS_ALU;

	if (!mem_access(i, env, INSN_MODIFY, &mem))
		return EMUL_FAULT;
	if (i->op == INSN_NOT) {
		r = ~mem;
		mask = 0;
	} else if (i->op == INSN_NEG) {
		r = subtract(0, mem, 0, i->mem_size, &flags);
	} else {
		r = i->op == INSN_INC ? add(mem, 1, 0, i->mem_size, &flags)
				      : subtract(mem, 1, 0, i->mem_size, &flags);
		mask &= ~RFLAGS_CF;
	}
	r &= size_mask(i->mem_size);
	if (!mem_access(i, env, INSN_WRITE, &r))
		return EMUL_FAULT;
	set_flags(env, mask, flags);
	return EMUL_DONE;
}

/* The value in its new width or order. */
static u64 convert(const struct insn *i, u64 v)
{
	if (i->op == INSN_MOVSX)
		return sign_extend(v, i->mem_size);
	if (i->op == INSN_MOVBE)
		return __builtin_bswap64(v) >> (64 - 8 * i->mem_size);
	return v;
}

static enum emul_result emul_mov(const struct insn *i, struct insn_env *env)
{
	u64 v;

	if (i->form == INSN_REG_MEM) {
		if (!mem_access(i, env, INSN_READ, &v))
			return EMUL_FAULT;
		set_operand(i, env, convert(i, v & size_mask(i->mem_size)));
		return EMUL_DONE;
	}
	v = i->form == INSN_MEM_IMM ? i->imm : convert(i, get_operand(i, env));
	v &= size_mask(i->mem_size);
	return mem_access(i, env, INSN_WRITE, &v) ? EMUL_DONE : EMUL_FAULT;
}

static enum emul_result emul_xchg(const struct insn *i, struct insn_env *env)
{
	u64 reg = get_operand(i, env), mem, to_mem = reg, flags = 0;

	if (!mem_access(i, env, INSN_MODIFY, &mem))
		return EMUL_FAULT;
	if (i->op == INSN_XADD)
		to_mem = compute(i->op, mem, reg, i->mem_size, env->rflags, &flags) & size_mask(i->mem_size);
	if (!mem_access(i, env, INSN_WRITE, &to_mem))
		return EMUL_FAULT;
	set_operand(i, env, mem);
	if (i->op == INSN_XADD)
		set_flags(env, RFLAGS_ALU, flags);
	return EMUL_DONE;
}

/* The CPU writes the old value back when the comparison fails, so the write comes in any case. */
static enum emul_result emul_cmpxchg(const struct insn *i, struct insn_env *env)
{
	u64 acc = env->reg(env->ctx, R_AX) & size_mask(i->mem_size), mem, to_mem, flags;

	if (!mem_access(i, env, INSN_MODIFY, &mem))
		return EMUL_FAULT;
	compute(i->op, acc, mem, i->mem_size, env->rflags, &flags);
	to_mem = acc == mem ? get_operand(i, env) : mem;
	if (!mem_access(i, env, INSN_WRITE, &to_mem))
		return EMUL_FAULT;
	if (acc != mem)
		set_low(env, R_AX, mem, i->mem_size);
	set_flags(env, RFLAGS_ALU, flags);
	return EMUL_DONE;
}

/* With a register, the bit offset is a signed number and reaches beyond the operand. SDM "Bit Strings". */
static enum emul_result emul_bit(const struct insn *i, struct insn_env *env)
{
	unsigned bits = 8u * i->mem_size;
	u64 bit =
		i->form == INSN_MEM_IMM ? i->imm & (bits - 1) : sign_extend(get_operand(i, env), i->reg_size);
	u64 unit = (u64)((s64)bit >> __builtin_ctz(bits));
	u64 offset = (insn_offset(i, env) + unit * i->mem_size) & size_mask(i->addr_size);
	u64 mask = BIT(bit & (bits - 1)), mem, r;

	if (!env->access(env->ctx, i->seg, offset, i->mem_size, i->op == INSN_BT ? INSN_READ : INSN_MODIFY,
			 &mem))
		return EMUL_FAULT;
	r = i->op == INSN_BTS ? mem | mask : i->op == INSN_BTR ? mem & ~mask : mem ^ mask;
	if (i->op != INSN_BT && !env->access(env->ctx, i->seg, offset, i->mem_size, INSN_WRITE, &r))
		return EMUL_FAULT;
	set_flags(env, RFLAGS_CF, mem & mask ? RFLAGS_CF : 0);
	return EMUL_DONE;
}

/* --- strings --- */

static u64 string_register(const struct insn *i, const struct insn_env *env, unsigned reg)
{
	return env->reg(env->ctx, reg) & size_mask(i->addr_size);
}

static void string_step(const struct insn *i, struct insn_env *env, unsigned reg)
{
	u64 step = env->rflags & RFLAGS_DF ? 0 - (u64)i->mem_size : i->mem_size;

	set_low(env, reg, env->reg(env->ctx, reg) + step, i->addr_size);
}

static bool source_access(const struct insn *i, struct insn_env *env, u64 *v)
{
	return env->access(env->ctx, i->seg, string_register(i, env, R_SI), i->mem_size, INSN_READ, v);
}

static bool dest_access(const struct insn *i, struct insn_env *env, enum insn_access a, u64 *v)
{
	return env->access(env->ctx, SEG_ES, string_register(i, env, R_DI), i->mem_size, a, v);
}

/* One round, count not looked at. */
static bool string_round(const struct insn *i, struct insn_env *env)
{
	bool source = i->op != INSN_STOS && i->op != INSN_SCAS;
	bool dest = i->op != INSN_LODS, compares = i->op == INSN_CMPS || i->op == INSN_SCAS;
	u64 a = env->reg(env->ctx, R_AX) & size_mask(i->mem_size), b = 0, flags;

	if (source && !source_access(i, env, &a))
		return false;
	if (dest && !compares)
		b = a;
	if (dest && !dest_access(i, env, compares ? INSN_READ : INSN_WRITE, &b))
		return false;
	if (compares) {
		compute(i->op, a, b, i->mem_size, env->rflags, &flags);
		set_flags(env, RFLAGS_ALU, flags);
	}
	if (i->op == INSN_LODS)
		set_low(env, R_AX, a, i->mem_size);
	if (source)
		string_step(i, env, R_SI);
	if (dest)
		string_step(i, env, R_DI);
	return true;
}

static enum emul_result emul_string(const struct insn *i, struct insn_env *env)
{
	bool compares = i->op == INSN_CMPS || i->op == INSN_SCAS;
	u64 count;

	if (!i->rep)
		return string_round(i, env) ? EMUL_DONE : EMUL_FAULT;
	count = string_register(i, env, R_CX);
	if (!count)
		return EMUL_DONE;
	if (!string_round(i, env))
		return EMUL_FAULT;
	set_low(env, R_CX, count - 1, i->addr_size);
	if (count == 1)
		return EMUL_DONE;
	if (compares && !!(env->rflags & RFLAGS_ZF) != (i->rep == INSN_REPE))
		return EMUL_DONE;
	return EMUL_REPEAT;
}

static emul_fn *const emul_table[] = {
	[INSN_ADD] = emul_alu,     [INSN_OR] = emul_alu,      [INSN_ADC] = emul_alu,
	[INSN_SBB] = emul_alu,     [INSN_AND] = emul_alu,     [INSN_SUB] = emul_alu,
	[INSN_XOR] = emul_alu,     [INSN_CMP] = emul_alu,     [INSN_BT] = emul_bit,
	[INSN_BTS] = emul_bit,     [INSN_BTR] = emul_bit,     [INSN_BTC] = emul_bit,
	[INSN_TEST] = emul_alu,    [INSN_NOT] = emul_unary,   [INSN_NEG] = emul_unary,
	[INSN_INC] = emul_unary,   [INSN_DEC] = emul_unary,   [INSN_MOV] = emul_mov,
	[INSN_MOVZX] = emul_mov,   [INSN_MOVSX] = emul_mov,   [INSN_MOVBE] = emul_mov,
	[INSN_XCHG] = emul_xchg,   [INSN_XADD] = emul_xchg,   [INSN_CMPXCHG] = emul_cmpxchg,
	[INSN_MOVS] = emul_string, [INSN_CMPS] = emul_string, [INSN_STOS] = emul_string,
	[INSN_LODS] = emul_string, [INSN_SCAS] = emul_string,
};

enum emul_result insn_emulate(const struct insn *i, struct insn_env *env)
{
	return emul_table[i->op](i, env);
}
