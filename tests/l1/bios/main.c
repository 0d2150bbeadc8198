/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A BIOS as a kernel finds it that goes back to real mode: interrupt vectors lead into the ROM area, an
 * unknown service comes back with the carry flag set and nothing else touched, an interrupt that is no
 * service leaves the flags alone. The second CPU asks, which a start-up IPI puts into real mode. Must not ask
 * for anything that a BIOS answers in its own way.
 */
#include "l1.h"

const char test_title[] = "BIOS interrupts in real mode";

#define PAGE          0x9000u
#define SERVICE_FIRST 0x10u
#define SERVICE_LAST  0x1au
#define ROM_START     0xc0000u
#define ROM_END       0x100000u
#define BDA_MEMORY    0x413u /* KiB of conventional memory */

/* What the code in PAGE leaves behind itself. */
struct answers {
	u16 done;
	u16 system_flags, system_bx, system_bp, system_sp;
	u16 disc_flags;
	u16 tick_flags_set, tick_flags_clear;
	u16 memory_kib, memory_ds;
};

extern const u8 real_code[], real_answers[], real_end[];

/* SDM "IA-32 Architecture Compatibility", "Real-address mode": INT through the vectors at address 0. */
asm("	.code16\n"
    "real_code:\n"
    "	cli\n"
    "	mov %cs, %ax\n"
    "	mov %ax, %ds\n"
    "	mov %ax, %ss\n"
    "	mov $0xff0, %sp\n"
    "	mov $0x1234, %bx\n"
    "	mov $0x5678, %bp\n"
    "	mov $0xee00, %ax\n" /* no such system service */
    "	clc\n"
    "	int $0x15\n"
    "	pushf\n"
    "	popw real_answers - real_code + 2\n"
    "	mov %bx, real_answers - real_code + 4\n"
    "	mov %bp, real_answers - real_code + 6\n"
    "	mov %sp, real_answers - real_code + 8\n"
    "	mov $0x0201, %ax\n" /* read from a disc that is not there */
    "	mov $0x0001, %cx\n"
    "	mov $0x0077, %dx\n"
    "	clc\n"
    "	int $0x13\n"
    "	pushf\n"
    "	popw real_answers - real_code + 10\n"
    "	stc\n" /* the tick's hook */
    "	int $0x1c\n"
    "	pushf\n"
    "	popw real_answers - real_code + 12\n"
    "	clc\n"
    "	int $0x1c\n"
    "	pushf\n"
    "	popw real_answers - real_code + 14\n"
    "	int $0x12\n"
    "	mov %ax, real_answers - real_code + 16\n"
    "	mov %ds, real_answers - real_code + 18\n"
    "	movw $1, real_answers - real_code\n"
    "1:	cli\n"
    "	hlt\n"
    "	jmp 1b\n"
    "	.balign 2\n"
    "real_answers:\n"
    "	.skip 20\n"
    "real_end:\n"
    "	.code64\n");

static volatile struct answers *ask(void)
{
	volatile struct answers *a = ptr_to(PAGE + (u32)(real_answers - real_code));
	u64 end;

	memcpy(ptr_to(PAGE), real_code, (size_t)(real_end - real_code));
	lapic_enable();
	lapic_ipi(cpus[1].apic_id, ICR_INIT | ICR_ASSERT);
	delay_us(10000);
	lapic_ipi(cpus[1].apic_id, ICR_STARTUP | ICR_ASSERT | PAGE >> 12);
	for (end = rdtsc() + us_to_tsc(500000); !a->done && rdtsc() < end;)
		cpu_pause();
	return a;
}

static void vectors(void)
{
	u32 bad = 0;

	for (u32 i = SERVICE_FIRST; i <= SERVICE_LAST; i++) {
		const volatile u16 *v = ptr_to(4 * i);
		u32 at = v[1] * 16u + v[0];

		bad += at < ROM_START || at >= ROM_END;
	}
	expect_eq("vectors-lead-into-rom", bad, 0);
}

void test_main(void)
{
	volatile struct answers *a;

	vectors();
	a = ask();
	expect_true("returned", a->done);
	expect_true("unknown-system-service", a->system_flags & 1);
	expect_eq("keeps-bx", a->system_bx, 0x1234);
	expect_eq("keeps-bp", a->system_bp, 0x5678);
	expect_eq("keeps-sp", a->system_sp, 0xff0);
	expect_true("no-such-disc", a->disc_flags & 1);
	expect_eq("tick-keeps-carry", a->tick_flags_set & 1, 1);
	expect_eq("tick-keeps-no-carry", a->tick_flags_clear & 1, 0);
	expect_true("memory-size-as-in-data-area",
		    a->memory_kib && a->memory_kib == *(const volatile u16 *)ptr_to(BDA_MEMORY));
	expect_eq("memory-size-keeps-ds", a->memory_ds, PAGE >> 4);
}
