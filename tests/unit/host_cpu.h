/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one instruction on the CPU of the host with all registers and flags given, as a reference for the
 * emulator. */
#ifndef NIDUS_TESTS_UNIT_HOST_CPU_H
#define NIDUS_TESTS_UNIT_HOST_CPU_H

#include <string.h>
#include <sys/mman.h>
#include "hv/types.h"

enum { AX, CX, DX, BX, SP, BP, SI, DI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct cpu_state {
	u64 reg[16]; /* RSP and R15 belong to the harness */
	u64 rflags;
};

#define DATA_SIZE 512
static u8 *code; /* writable and executable, below 4 GiB so that 32-bit addresses reach the data, too */
static u8 *data; /* the page behind */

static inline size_t emit(size_t at, const char *bytes, size_t n)
{
	memcpy(code + at, bytes, n);
	return at + n;
}

/* mov reg, [r15 + 8 * reg] (0x8b) or the other way round (0x89). */
static inline size_t emit_move(size_t at, u8 opcode, unsigned reg)
{
	const u8 bytes[4] = {(u8)(reg < 8 ? 0x49 : 0x4d), opcode, (u8)(0x47 | (reg & 7) << 3), (u8)(8 * reg)};

	return emit(at, (const char *)bytes, 4);
}

#define E(s) s, sizeof(s) - 1

static inline void run_on_cpu(struct cpu_state *s, const void *bytes, size_t n)
{
	size_t at = emit(
		0, E("\x53\x55\x41\x54\x41\x55\x41\x56\x41\x57\x49\x89\xff")); /* push..., mov r15, rdi */

	for (unsigned r = 0; r < 15; r++)
		if (r != SP)
			at = emit_move(at, 0x8b, r);
	at = emit(at, E("\x41\xff\xb7\x80\x00\x00\x00\x9d")); /* push [r15 + 128]; popf */
	at = emit(at, bytes, n);
	at = emit(at, E("\x9c\x41\x8f\x87\x80\x00\x00\x00")); /* pushf; pop [r15 + 128] */
	for (unsigned r = 0; r < 15; r++)
		if (r != SP)
			at = emit_move(at, 0x89, r);
	emit(at, E("\xfc\x41\x5f\x41\x5e\x41\x5d\x41\x5c\x5d\x5b\xc3"));
	((void (*)(struct cpu_state *))(uintptr_t)code)(s);
}

static inline int host_cpu_setup(void **state)
{
	(void)state;
	code = mmap(NULL, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	data = code + PAGE_SIZE;
	return code == MAP_FAILED;
}

#endif
