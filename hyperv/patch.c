/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code for the sites of VMREAD and VMWRITE. Must not know which sites there are. */
#include "hyperv/patch.h"
#include "hv/lib.h"
#include "hv/vmcs.h"

#define CALL_SIZE 5
#define REX       0x40u
#define REX_W     0x08u
#define REX_R     0x04u
#define REX_X     0x02u
#define REX_B     0x01u

/* Bytes of ModRM, SIB and displacement; 0: relative to RIP or RSP. SDM "ModR/M and SIB Bytes". */
static unsigned operand_length(const u8 *modrm, u8 rex)
{
	unsigned mod = *modrm >> 6, rm = *modrm & 7u, n = 1;

	if (mod == 3)
		return 1;
	if (rm == 4) {
		n++;
		rm = modrm[1] & 7u; /* the base */
		if (rm == 4 && !(rex & REX_B))
			return 0;
	}
	if (mod == 0 && rm == 5)
		return 0;
	return n + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

/* [rex] 0F 78 or 79, ModRM: the field is in `reg`, the value in `rm`. */
bool patch_decode(const u8 *code, struct patch_site *s)
{
	const u8 *branch = vmcs_site_branch(code), *op = code;
	u8 rex;
	unsigned length;
	const u8 *end;

	while (*op == VMCS_SURE_PREFIX)
		op++;
	rex = (*op & 0xf0) == REX ? *op++ : 0;
	length = operand_length(op + 2, rex);
	end = branch ? branch + VMCS_BRANCH : op + 2 + length;
	*s = (struct patch_site){.kind = op[1] == 0x79 ? SITE_WRITE : SITE_READ,
				 .size = (unsigned)(end - code),
				 .value = (op[2] & 7u) | (rex & REX_B ? 8u : 0u),
				 .field = (op[2] >> 3 & 7u) | (rex & REX_R ? 8u : 0u),
				 .rex = rex,
				 .memory = op[2] >> 6 == 3 ? NULL : op + 2,
				 .memory_len = length};
	return op[0] == 0x0f && (op[1] == 0x78 || op[1] == 0x79) && length && !(branch && s->memory);
}

static u8 *put(u8 *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

/* To the end of the site in at most one instruction. */
static void skip(u8 *p, const u8 *end)
{
	if (end - p == 1)
		*p = 0x90; /* nop */
	if (end - p > 1) {
		p[0] = 0xeb; /* jmp rel8 */
		p[1] = (u8)(end - p - 2);
	}
}

/* ModRM and SIB of an operand [disp32]. */
static u8 *absolute(u8 *p, unsigned reg, u32 disp)
{
	*p++ = (u8)(4u | (reg & 7u) << 3);
	*p++ = 0x25;
	return put(p, &disp, sizeof(disp));
}

/* mov %gs:disp, reg (of two bytes: movzwl), or the other way round. */
static u8 *move(u8 *p, const struct patch_site *s, const struct patch_field *f)
{
	u8 rex = (u8)(REX | (f->bytes == 8 ? REX_W : 0) | (s->value & 8 ? REX_R : 0));

	if (f->bytes == 2 && s->kind == SITE_WRITE)
		*p++ = 0x66;
	*p++ = 0x65; /* GS */
	if (rex != REX)
		*p++ = rex;
	if (s->kind == SITE_WRITE) {
		*p++ = 0x89;
	} else if (f->bytes == 2) {
		*p++ = 0x0f;
		*p++ = 0xb7;
	} else {
		*p++ = 0x8b;
	}
	return absolute(p, s->value, f->disp);
}

/* Never longer than the site: it has a REX prefix whenever this needs one for the register. */
void patch_move(u8 *code, const struct patch_site *s, const struct patch_field *f)
{
	skip(move(code, s, f), code + s->size);
}

static u8 *call(u8 *p, const void *target)
{
	s32 rel = (s32)((const u8 *)target - (p + CALL_SIZE));

	*p++ = 0xe8;
	return put(p, &rel, sizeof(rel));
}

void patch_call(u8 *code, unsigned size, const void *target)
{
	skip(call(code, target), code + size);
}

void patch_jump(u8 *code, const void *target)
{
	call(code, target);
	*code = 0xe9;
}

/* push or pop: 0x50 or 0x58. */
static u8 *stack(u8 *p, u8 op, unsigned reg)
{
	if (reg & 8)
		*p++ = REX | REX_B;
	*p++ = (u8)(op | (reg & 7u));
	return p;
}

/* mov reg, the site's memory (0x89) or the other way round (0x8b); all 8 bytes. */
static u8 *move_memory(u8 *p, u8 op, const struct patch_site *s, unsigned reg)
{
	*p++ = (u8)(REX | REX_W | (s->rex & (REX_B | REX_X)));
	*p++ = op;
	*p = (u8)((s->memory[0] & ~0x38u) | reg << 3);
	put(p + 1, s->memory + 1, s->memory_len - 1);
	return p + s->memory_len;
}

/* RAX, RCX or RDX: one that the memory's address is not made of. */
static unsigned spare_register(const struct patch_site *s)
{
	unsigned base = *s->memory & 7u, index = base, reg = 0;

	if (base == 4) {
		base = s->memory[1] & 7u;
		index = s->memory[1] >> 3 & 7u;
	}
	while (reg == base || reg == index)
		reg++;
	return reg;
}

static u8 *clear_bit(u8 *out, const struct patch_field *f)
{
	static const u8 and_byte_gs[] = {0x65, 0x80};

	out = put(out, and_byte_gs, sizeof(and_byte_gs));
	out = absolute(out, 4, f->clean_disp); /* /4: AND */
	*out++ = (u8)~f->clean_mask;
	return out;
}

u8 *patch_routine(u8 *out, const struct patch_site *s, const struct patch_field *f)
{
	struct patch_site moved = *s;

	if (s->memory) {
		moved.value = spare_register(s);
		out = stack(out, 0x50, moved.value);
		if (s->kind == SITE_WRITE)
			out = move_memory(out, 0x8b, s, moved.value);
	}
	out = move(out, &moved, f);
	if (s->kind == SITE_WRITE && f->clean_mask)
		out = clear_bit(out, f);
	if (s->memory) {
		if (s->kind == SITE_READ)
			out = move_memory(out, 0x89, s, moved.value);
		out = stack(out, 0x58, moved.value);
	}
	*out++ = 0xc3; /* ret */
	return out;
}

u8 *patch_any_routine(u8 *out, const struct patch_site *s, const void *access)
{
	static const u8 drop_two[] = {0x48, 0x8d, 0x64, 0x24, 0x10}; /* lea 16(%rsp), %rsp */

	if (s->kind == SITE_WRITE)
		out = stack(out, 0x50, s->value);
	out = stack(out, 0x50, s->field);
	out = call(out, access);
	out = s->kind == SITE_WRITE ? put(out, drop_two, sizeof(drop_two)) : stack(out, 0x58, s->value);
	*out++ = 0xc3;
	return out;
}
