/* SPDX-License-Identifier: Apache-2.0 */
/* XSETBV: each bad value faults and changes nothing; without CR4.OSXSAVE it does not exist. SDM "XSETBV". */
#include "l1.h"

const char test_title[] = "XSETBV rules";

static u64 xgetbv(u64 index)
{
	u32 lo, hi;

	asm volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(index));
	return (u64)hi << 32 | lo;
}

struct rule {
	const char *name;
	u64 index, value;
};

static const struct rule bad[] = {
	{"x87-off", 0, 0},        {"sse-without-x87", 0, 2},    {"avx-without-sse", 0, 5},
	{"avx-alone", 0, 4},      {"bndregs-alone", 0, 0xb},    {"avx512-without-avx", 0, 0xe3},
	{"avx512-half", 0, 0x27}, {"bit-63", 0, BIT(63) | 3},   {"reserved-bit", 0, BIT(40) | 3},
	{"index-1", 1, 3},        {"index-far", 0x80000000, 3},
};

static void in_ring3(void)
{
	try_xsetbv(0, 3);
}

void test_main(void)
{
	u64 supported;

	if (!(cpuid(1, 0).ecx & BIT(26))) {
		skip("xsetbv", "no XSAVE");
		return;
	}
	write_cr4(read_cr4() & ~CR4_OSXSAVE);
	expect_eq("without-osxsave", try_xsetbv(0, 1), UD);
	write_cr4(read_cr4() | CR4_OSXSAVE);
	supported = cpuid(0xd, 0).eax | (u64)cpuid(0xd, 0).edx << 32;

	expect_eq("x87-only", try_xsetbv(0, 1), 0);
	expect_eq("x87-sse", try_xsetbv(0, 3), 0);
	expect_eq("all-supported", try_xsetbv(0, supported), 0);
	expect_eq("reads-back", xgetbv(0), supported);
	expect_eq("junk-above-ecx", try_xsetbv(0x5a5a5a5a00000000, 3), 0);
	expect_eq("junk-value", xgetbv(0x5a5a5a5a00000000), 3);
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		char name[40];

		expect_eq(bad[i].name, try_xsetbv(bad[i].index, bad[i].value), GP);
		format_text(name, sizeof(name), "%s-unchanged", bad[i].name);
		expect_eq(name, xgetbv(0), 3);
	}
	user_run(in_ring3);
	expect_eq("ring3", trap_last(), GP);
}
