/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulation against the CPU this runs on: the same bytes, registers, flags and memory go through both, and
 * must come out the same. What the SDM leaves undefined is masked. Then what a CPU cannot show: faults in the
 * middle, kinds of access, segments.
 */
/* SOURCES: hv/insn_emul.c hv/insn_decode.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "hv/insn_emul.h"
#include "hv/x86.h"
#include "tests/unit/host_cpu.h"

/* --- the emulator --- */

static enum insn_access accesses[8];
static enum insn_seg segments[8];
static u64 offsets[8];
static unsigned nr_accesses, fault_at; /* fault_at: that access faults, counted from 1; 0: none */

static u64 get_reg(void *ctx, unsigned reg)
{
	return ((struct cpu_state *)ctx)->reg[reg];
}

static void set_reg(void *ctx, unsigned reg, u64 value)
{
	((struct cpu_state *)ctx)->reg[reg] = value;
}

static bool mem_access(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a,
		       u64 *value)
{
	void *p = (void *)(uintptr_t)offset;

	(void)ctx;
	accesses[nr_accesses % 8] = a;
	segments[nr_accesses % 8] = seg;
	offsets[nr_accesses++ % 8] = offset;
	if (nr_accesses == fault_at)
		return false;
	assert_in_range(offset, (u64)(uintptr_t)data, (u64)(uintptr_t)data + DATA_SIZE - size);
	if (a == INSN_WRITE) {
		assert_int_equal(size == 8 ? 0 : *value >> (8 * size), 0);
		memcpy(p, value, size);
	} else {
		*value = 0;
		memcpy(value, p, size);
	}
	return true;
}

static enum emul_result emulate(struct cpu_state *s, const void *bytes, size_t n, unsigned bits)
{
	struct insn_env env = {
		.ctx = s, .reg = get_reg, .set_reg = set_reg, .access = mem_access, .rflags = s->rflags};
	enum emul_result r;
	struct insn insn;

	assert_int_equal(insn_decode(bytes, n, bits, &insn), INSN_OK);
	assert_int_equal(insn.length, n);
	nr_accesses = 0;
	do {
		r = insn_emulate(&insn, &env);
	} while (r == EMUL_REPEAT);
	s->rflags = env.rflags;
	return r;
}

/* --- both --- */

static u64 seed = 88172645463325252ull;

static u64 random_u64(void)
{
	static const u64 special[] = {0,       1,      0x7f,       0x80,       0xff,       0x7fff,
				      0x8000,  0xffff, 0x7fffffff, 0x80000000, 0xffffffff, ~0ull >> 1,
				      BIT(63), ~0ull,  0x0f,       0x10};

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 60 < 6 ? special[seed & 15] : seed;
}

/* How the registers are prepared. */
enum prepare { PLAIN, BIT_OFFSET, STRING, ADDR32 };

struct row {
	const char *bytes;
	u8 n;
	u8 prepare;
	u16 undefined; /* flags */
};

#define B(s)  s, sizeof(s) - 1
#define LOGIC ((u16)RFLAGS_AF)
#define BITS  ((u16)(RFLAGS_PF | RFLAGS_AF | RFLAGS_SF | RFLAGS_OF | RFLAGS_ZF))

/* Memory operand: mostly [rbx]; register operand: mostly rdx / dl / dh. */
static const struct row rows[] = {
	{B("\x00\x13"), PLAIN, 0}, /* add */
	{B("\x01\x13"), PLAIN, 0},
	{B("\x66\x01\x13"), PLAIN, 0},
	{B("\x48\x01\x13"), PLAIN, 0},
	{B("\x02\x33"), PLAIN, 0}, /* add dh, [rbx] */
	{B("\x03\x13"), PLAIN, 0},
	{B("\x66\x03\x13"), PLAIN, 0},
	{B("\x48\x03\x13"), PLAIN, 0},
	{B("\x08\x13"), PLAIN, LOGIC}, /* or */
	{B("\x09\x13"), PLAIN, LOGIC},
	{B("\x48\x0b\x13"), PLAIN, LOGIC},
	{B("\x10\x13"), PLAIN, 0}, /* adc */
	{B("\x11\x13"), PLAIN, 0},
	{B("\x66\x11\x13"), PLAIN, 0},
	{B("\x48\x11\x13"), PLAIN, 0},
	{B("\x48\x13\x13"), PLAIN, 0},
	{B("\x18\x13"), PLAIN, 0}, /* sbb */
	{B("\x19\x13"), PLAIN, 0},
	{B("\x66\x1b\x13"), PLAIN, 0},
	{B("\x48\x19\x13"), PLAIN, 0},
	{B("\x20\x13"), PLAIN, LOGIC}, /* and */
	{B("\x23\x13"), PLAIN, LOGIC},
	{B("\x28\x33"), PLAIN, 0}, /* sub [rbx], dh */
	{B("\x29\x13"), PLAIN, 0},
	{B("\x66\x2b\x13"), PLAIN, 0},
	{B("\x48\x2b\x13"), PLAIN, 0},
	{B("\x31\x13"), PLAIN, LOGIC}, /* xor */
	{B("\x48\x33\x13"), PLAIN, LOGIC},
	{B("\x38\x13"), PLAIN, 0}, /* cmp */
	{B("\x39\x13"), PLAIN, 0},
	{B("\x66\x3b\x13"), PLAIN, 0},
	{B("\x48\x3b\x13"), PLAIN, 0},
	{B("\x80\x03\x81"), PLAIN, 0}, /* groups 1 */
	{B("\x81\x13\x78\x56\x34\x92"), PLAIN, 0},
	{B("\x66\x81\x1b\x00\x80"), PLAIN, 0},
	{B("\x48\x81\x2b\x78\x56\x34\x92"), PLAIN, 0},
	{B("\x83\x23\xf0"), PLAIN, LOGIC},
	{B("\x48\x83\x3b\x80"), PLAIN, 0},
	{B("\x66\x83\x0b\x80"), PLAIN, LOGIC},
	{B("\x84\x13"), PLAIN, LOGIC}, /* test */
	{B("\x48\x85\x13"), PLAIN, LOGIC},
	{B("\xf6\x03\x81"), PLAIN, LOGIC},
	{B("\xf7\x03\x01\x00\x00\x80"), PLAIN, LOGIC},
	{B("\x48\xf7\x03\x01\x00\x00\x80"), PLAIN, LOGIC},
	{B("\xf6\x13"), PLAIN, 0}, /* not, neg */
	{B("\x48\xf7\x13"), PLAIN, 0},
	{B("\xf6\x1b"), PLAIN, 0},
	{B("\x66\xf7\x1b"), PLAIN, 0},
	{B("\x48\xf7\x1b"), PLAIN, 0},
	{B("\xfe\x03"), PLAIN, 0}, /* inc, dec */
	{B("\xff\x03"), PLAIN, 0},
	{B("\xfe\x0b"), PLAIN, 0},
	{B("\x66\xff\x0b"), PLAIN, 0},
	{B("\xf0\x48\xff\x0b"), PLAIN, 0},
	{B("\x88\x33"), PLAIN, 0},     /* mov */
	{B("\x40\x88\x33"), PLAIN, 0}, /* sil */
	{B("\x89\x13"), PLAIN, 0},
	{B("\x66\x89\x13"), PLAIN, 0},
	{B("\x48\x89\x13"), PLAIN, 0},
	{B("\x8a\x33"), PLAIN, 0},
	{B("\x40\x8a\x33"), PLAIN, 0},
	{B("\x8b\x13"), PLAIN, 0},
	{B("\x66\x8b\x13"), PLAIN, 0},
	{B("\x48\x8b\x13"), PLAIN, 0},
	{B("\x8b\x54\x4b\xfe"), PLAIN, 0}, /* [rbx + rcx * 2 - 2] */
	{B("\x44\x8b\xb3\xf0\xff\xff\xff"), PLAIN, 0},
	{B("\xc6\x03\x91"), PLAIN, 0},
	{B("\xc7\x03\x78\x56\x34\x92"), PLAIN, 0},
	{B("\x48\xc7\x03\x78\x56\x34\x92"), PLAIN, 0},
	{B("\x66\xc7\x03\x34\x92"), PLAIN, 0},
	{B("\x0f\xb6\x13"), PLAIN, 0}, /* movzx, movsx */
	{B("\x66\x0f\xb6\x13"), PLAIN, 0},
	{B("\x48\x0f\xb7\x13"), PLAIN, 0},
	{B("\x0f\xbe\x13"), PLAIN, 0},
	{B("\x66\x0f\xbe\x13"), PLAIN, 0},
	{B("\x48\x0f\xbe\x13"), PLAIN, 0},
	{B("\x48\x0f\xbf\x13"), PLAIN, 0},
	{B("\x48\x63\x13"), PLAIN, 0},
	{B("\x63\x13"), PLAIN, 0},
	{B("\x66\x63\x13"), PLAIN, 0},
	{B("\x0f\xc3\x13"), PLAIN, 0}, /* movnti */
	{B("\x86\x33"), PLAIN, 0},     /* xchg */
	{B("\x87\x13"), PLAIN, 0},
	{B("\x48\x87\x13"), PLAIN, 0},
	{B("\x0f\xc0\x33"), PLAIN, 0}, /* xadd */
	{B("\x0f\xc1\x13"), PLAIN, 0},
	{B("\xf0\x48\x0f\xc1\x13"), PLAIN, 0},
	{B("\x0f\xb0\x33"), PLAIN, 0}, /* cmpxchg */
	{B("\x0f\xb1\x13"), PLAIN, 0},
	{B("\x66\x0f\xb1\x13"), PLAIN, 0},
	{B("\xf0\x48\x0f\xb1\x13"), PLAIN, 0},
	{B("\x0f\xba\x23\x25"), PLAIN, BITS}, /* bt, bts, btr, btc */
	{B("\x0f\xba\x2b\x25"), PLAIN, BITS},
	{B("\x48\x0f\xba\x33\xff"), PLAIN, BITS},
	{B("\x66\x0f\xba\x3b\x19"), PLAIN, BITS},
	{B("\x0f\xa3\x13"), BIT_OFFSET, BITS},
	{B("\x66\x0f\xab\x13"), BIT_OFFSET, BITS},
	{B("\x0f\xb3\x13"), BIT_OFFSET, BITS},
	{B("\x48\x0f\xbb\x13"), BIT_OFFSET, BITS},
	{B("\x67\x8b\x13"), ADDR32, 0}, /* 32-bit addresses: the upper half of rbx does not count */
	{B("\x67\x01\x53\x04"), ADDR32, 0},
	{B("\xa4"), STRING, 0},
	{B("\x48\xa5"), STRING, 0},
	{B("\xf3\xa4"), STRING, 0},
	{B("\xf3\x66\xa5"), STRING, 0},
	{B("\xf2\xa5"), STRING, 0},
	{B("\xaa"), STRING, 0},
	{B("\xf3\xab"), STRING, 0},
	{B("\xf3\x48\xab"), STRING, 0},
	{B("\xac"), STRING, 0},
	{B("\x66\xad"), STRING, 0},
	{B("\xf3\xad"), STRING, 0},
	{B("\xa6"), STRING, 0},
	{B("\xf3\xa6"), STRING, 0},
	{B("\xf2\xa6"), STRING, 0},
	{B("\x48\xa7"), STRING, 0},
	{B("\xae"), STRING, 0},
	{B("\xf3\xae"), STRING, 0},
	{B("\xf2\xae"), STRING, 0},
	{B("\xf2\x66\xaf"), STRING, 0},
	{B("\x67\xf3\xa5"), STRING, 0},
};

static void prepare(struct cpu_state *s, const struct row *r)
{
	u64 middle = (u64)(uintptr_t)data + DATA_SIZE / 2;

	for (unsigned i = 0; i < 16; i++)
		s->reg[i] = random_u64();
	s->rflags = BIT(1) | (random_u64() & RFLAGS_ALU);
	for (unsigned i = 0; i < DATA_SIZE; i++)
		data[i] = (u8)(r->prepare == STRING && random_u64() % 4 ? 0x55 : random_u64());
	s->reg[BX] = middle;
	s->reg[CX] = random_u64() % 8;
	if (r->prepare == BIT_OFFSET)
		s->reg[DX] = random_u64() % 1024 - 512;
	if (r->prepare == ADDR32)
		s->reg[BX] |= random_u64() << 32;
	if (r->prepare == STRING) {
		s->reg[SI] = middle - 64 + random_u64() % 8;
		s->reg[DI] = middle + 64 + random_u64() % 8;
		s->rflags |= random_u64() & RFLAGS_DF;
		s->reg[AX] = random_u64() % 2 ? 0x5555555555555555 : random_u64();
	}
	if (random_u64() % 2 && r->prepare == PLAIN) /* so that CMPXCHG sometimes succeeds */
		memcpy(&s->reg[AX], data + DATA_SIZE / 2, 8);
}

static void expect_same(const struct row *r, const struct cpu_state *cpu, const struct cpu_state *emul,
			const u8 *cpu_data)
{
	u64 flags = (RFLAGS_ALU | RFLAGS_DF) & ~(u64)r->undefined;
	bool same = (cpu->rflags & flags) == (emul->rflags & flags) && !memcmp(cpu_data, data, DATA_SIZE);

	for (unsigned i = 0; i < 15; i++)
		same &= i == SP || cpu->reg[i] == emul->reg[i];
	if (same)
		return;
	for (unsigned i = 0; i < 15; i++)
		print_message("reg %2u cpu %016lx emulated %016lx\n", i, cpu->reg[i], emul->reg[i]);
	fail_msg("row %ld: flags %lx, emulated %lx", (long)(r - rows), cpu->rflags, emul->rflags);
}

static void the_cpu_does_the_same(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];

		for (unsigned n = 0; n < 2000; n++) {
			struct cpu_state cpu, emul;
			u8 before[DATA_SIZE], after[DATA_SIZE];

			prepare(&emul, r);
			cpu = emul;
			memcpy(before, data, DATA_SIZE);
			run_on_cpu(&cpu, r->bytes, r->n);
			memcpy(after, data, DATA_SIZE);
			memcpy(data, before, DATA_SIZE);
			assert_int_equal(emulate(&emul, r->bytes, r->n, 64), EMUL_DONE);
			expect_same(r, &cpu, &emul, after);
		}
	}
}

/* MOVBE is not on every CPU: checked against what the SDM says. */
static void movbe_swaps_bytes(void **state)
{
	struct cpu_state s = {.reg[BX] = (u64)(uintptr_t)data, .reg[DX] = 0x1122334455667788};

	(void)state;
	memcpy(data, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_int_equal(emulate(&s, E("\x0f\x38\xf0\x13"), 64), EMUL_DONE);
	assert_int_equal(s.reg[DX], 0x01020304);
	assert_int_equal(emulate(&s, E("\x66\x0f\x38\xf0\x13"), 64), EMUL_DONE);
	assert_int_equal(s.reg[DX], 0x01020102);
	assert_int_equal(emulate(&s, E("\x48\x0f\x38\xf0\x13"), 64), EMUL_DONE);
	assert_int_equal(s.reg[DX], 0x0102030405060708);
	s.reg[DX] = 0xaabbccdd;
	assert_int_equal(emulate(&s, E("\x0f\x38\xf1\x13"), 64), EMUL_DONE);
	assert_memory_equal(data, "\xaa\xbb\xcc\xdd\x05", 5);
}

/* Every instruction, with each of its accesses faulting in turn: registers and flags stay as they were. */
static void a_fault_leaves_no_trace(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		for (fault_at = 1; fault_at <= 2; fault_at++) {
			struct cpu_state before, s;
			enum emul_result r;

			prepare(&before, &rows[i]);
			before.reg[CX] = 1;
			s = before;
			r = emulate(&s, rows[i].bytes, rows[i].n, 64);
			assert_int_equal(r, nr_accesses < fault_at ? EMUL_DONE : EMUL_FAULT);
			if (r == EMUL_FAULT)
				assert_memory_equal(&s, &before, sizeof(s));
		}
	}
	fault_at = 0;
}

static void expect_accesses(const char *bytes, size_t n, unsigned count, enum insn_access first)
{
	struct cpu_state s = {.reg[BX] = (u64)(uintptr_t)data};

	assert_int_equal(emulate(&s, bytes, n, 64), EMUL_DONE);
	assert_int_equal(nr_accesses, count);
	assert_int_equal(accesses[0], first);
	if (count == 2)
		assert_int_equal(accesses[1], INSN_WRITE);
}

/* A device must see exactly the accesses that the CPU makes. */
static void devices_see_the_right_accesses(void **state)
{
	(void)state;
	expect_accesses(E("\x8b\x13"), 1, INSN_READ);
	expect_accesses(E("\x89\x13"), 1, INSN_WRITE);
	expect_accesses(E("\x3b\x13"), 1, INSN_READ);
	expect_accesses(E("\x39\x13"), 1, INSN_READ);
	expect_accesses(E("\x85\x13"), 1, INSN_READ);
	expect_accesses(E("\x03\x13"), 1, INSN_READ);
	expect_accesses(E("\x01\x13"), 2, INSN_MODIFY);
	expect_accesses(E("\xff\x03"), 2, INSN_MODIFY);
	expect_accesses(E("\x87\x13"), 2, INSN_MODIFY);
	expect_accesses(E("\x0f\xa3\x13"), 1, INSN_READ);
	expect_accesses(E("\x0f\xab\x13"), 2, INSN_MODIFY);
	expect_accesses(E("\x0f\xb1\x13"), 2, INSN_MODIFY); /* equal */
	data[0] = 1;
	expect_accesses(E("\x0f\xb1\x13"), 2, INSN_MODIFY); /* not equal: written back */
}

static void one_round_of_rep_at_a_time(void **state)
{
	struct cpu_state s = {.reg[DI] = (u64)(uintptr_t)data, .reg[CX] = 3, .reg[AX] = 0x77};
	struct insn_env env = {.ctx = &s, .reg = get_reg, .set_reg = set_reg, .access = mem_access};
	struct insn insn;

	(void)state;
	nr_accesses = 0;
	assert_int_equal(insn_decode((const u8 *)"\xf3\xaa", 2, 64, &insn), INSN_OK);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_REPEAT);
	assert_int_equal(s.reg[CX], 2);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_REPEAT);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_DONE);
	assert_int_equal(nr_accesses, 3);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_DONE); /* count 0: nothing */
	assert_int_equal(nr_accesses, 3);
	assert_int_equal(s.reg[DI], (u64)(uintptr_t)data + 3);
}

static void offsets_and_segments(void **state)
{
	struct cpu_state s = {.reg[BX] = 0x1fff0, .reg[SI] = 0x20, .reg[BP] = 0xfff0, .reg[DI] = 0x10008};

	(void)state;
	fault_at = 1;                                                     /* the addresses are not memory */
	assert_int_equal(emulate(&s, E("\x8b\x40\x04"), 16), EMUL_FAULT); /* [bx + si + 4]: wraps at 64 KiB */
	assert_int_equal(offsets[0], 0x14);
	assert_int_equal(segments[0], SEG_DS);
	assert_int_equal(emulate(&s, E("\x8b\x46\xf0"), 16), EMUL_FAULT);
	assert_int_equal(offsets[0], 0xffe0);
	assert_int_equal(segments[0], SEG_SS);
	assert_int_equal(emulate(&s, E("\x64\xa5"), 16), EMUL_FAULT); /* movs: fs:si first */
	assert_int_equal(segments[0], SEG_FS);
	assert_int_equal(emulate(&s, E("\x64\xaa"), 16), EMUL_FAULT); /* stos: es always */
	assert_int_equal(segments[0], SEG_ES);
	assert_int_equal(offsets[0], 8);
	s.reg[BX] = 0xfffffff0;
	assert_int_equal(emulate(&s, E("\x8b\x43\x20"), 32), EMUL_FAULT);
	assert_int_equal(offsets[0], 0x10);
	fault_at = 0;
}

static void rip_relative_counts_from_the_next_instruction(void **state)
{
	struct insn_env env = {.rip = 0xffffffff80001000};
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decode((const u8 *)"\xc7\x05\xf0\xff\xff\xff\1\1\1\1", 10, 64, &insn), INSN_OK);
	assert_int_equal(insn_offset(&insn, &env), 0xffffffff80000ffa);
	assert_int_equal(insn_decode((const u8 *)"\x67\x8b\x05\xf0\xff\xff\xff", 7, 64, &insn), INSN_OK);
	assert_int_equal(insn_offset(&insn, &env), 0x80000ff7);
}

static u64 swallowed;

static bool swallow(void *ctx, enum insn_seg seg, u64 offset, unsigned size, enum insn_access a, u64 *value)
{
	(void)ctx, (void)seg, (void)size, (void)a, (void)value;
	swallowed = swallowed << 16 | offset;
	return true;
}

/* 16-bit address size: DI wraps, and the upper parts of DI and CX stay. */
static void short_string_registers_wrap(void **state)
{
	struct cpu_state s = {.reg[DI] = 0xabcffff, .reg[CX] = 0x50002, .reg[AX] = 1};
	struct insn_env env = {.ctx = &s, .reg = get_reg, .set_reg = set_reg, .access = swallow};
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decode((const u8 *)"\xf3\xaa", 2, 16, &insn), INSN_OK);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_REPEAT);
	assert_int_equal(insn_emulate(&insn, &env), EMUL_DONE);
	assert_int_equal(swallowed, 0xffff0000);
	assert_int_equal(s.reg[DI], 0xabc0001);
	assert_int_equal(s.reg[CX], 0x50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cpu_does_the_same),
		cmocka_unit_test(movbe_swaps_bytes),
		cmocka_unit_test(a_fault_leaves_no_trace),
		cmocka_unit_test(devices_see_the_right_accesses),
		cmocka_unit_test(one_round_of_rep_at_a_time),
		cmocka_unit_test(offsets_and_segments),
		cmocka_unit_test(rip_relative_counts_from_the_next_instruction),
		cmocka_unit_test(short_string_registers_wrap),
	};

	return cmocka_run_group_tests_name("insn_emul", tests, host_cpu_setup, NULL);
}
