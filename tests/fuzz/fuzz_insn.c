/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as an instruction: the decoder never reads behind them, its length is exact, and what it accepts
 * can be carried out with memory accesses of sane sizes.
 */
/* SOURCES: hv/insn_decode.c hv/insn_emul.c */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "hv/insn_emul.h"

static u64 regs[16];
static unsigned accesses;

static u64 get_reg(void *ctx, unsigned reg)
{
	(void)ctx;
	assert(reg < 16);
	return regs[reg];
}

static void set_reg(void *ctx, unsigned reg, u64 value)
{
	(void)ctx;
	assert(reg < 16);
	regs[reg] = value;
}

static bool mem_access(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a,
		       u64 *value)
{
	(void)ctx;
	assert(seg <= SEG_GS && (size == 1 || size == 2 || size == 4 || size == 8));
	assert(++accesses <= 2);
	if (a == INSN_WRITE)
		assert(size == 8 || !(*value >> (8 * size)));
	else
		*value = offset * 0x9e3779b97f4a7c15 >> (64 - 8 * size);
	return true;
}

/* From a heap block of its own, so that ASan sees every byte too many. */
static enum insn_result decode(const u8 *bytes, size_t n, unsigned bits, struct insn *out)
{
	u8 *copy = malloc(n ? n : 1);
	enum insn_result r;

	memcpy(copy, bytes, n);
	r = insn_decode(copy, n, bits, out);
	free(copy);
	return r;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const unsigned modes[] = {16, 32, 64, 64};
	struct insn_env env = {.reg = get_reg, .set_reg = set_reg, .access = mem_access};
	struct insn i, again;
	unsigned bits;

	if (size < 8)
		return 0;
	bits = modes[data[0] & 3];
	for (unsigned r = 0; r < 16; r++)
		regs[r] = (u64)data[1 + r % 7] * 0x0101010101010101u * (r + 1);
	env.rflags = data[0] << 4;
	data += 8;
	size -= 8;
	if (decode(data, size, bits, &i) != INSN_OK)
		return 0;
	assert(i.length && i.length <= INSN_LENGTH_MAX && i.length <= size);
	assert(decode(data, i.length, bits, &again) == INSN_OK && !memcmp(&i, &again, sizeof(i)));
	assert(decode(data, i.length - 1u, bits, &again) == INSN_SHORT);
	accesses = 0;
	insn_emulate(&i, &env);
	return 0;
}
