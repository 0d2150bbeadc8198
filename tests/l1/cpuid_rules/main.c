/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUID must look like a processor: upper register halves zero, only EAX and ECX select, out-of-range leaves
 * as the SDM says, and every feature bit that names a CR4 bit agrees with what CR4 really takes. SDM "CPUID -
 * CPU Identification".
 */
#include "l1.h"

const char test_title[] = "CPUID rules";

struct wide {
	u64 a, b, c, d;
};

static struct wide cpuid_wide(u64 a, u64 c)
{
	struct wide r = {a, 0xa5a5a5a500000000, c, 0xa5a5a5a500000000};

	asm volatile("cpuid" : "+a"(r.a), "+b"(r.b), "+c"(r.c), "+d"(r.d));
	return r;
}

static bool same(struct cpuid x, struct cpuid y)
{
	return !memcmp(&x, &y, sizeof(x));
}

static void register_widths(void)
{
	struct wide r = cpuid_wide(0, 0xa5a5a5a500000000);
	struct cpuid plain = cpuid(4, 1);

	expect_eq("upper-halves-zero", (r.a | r.b | r.c | r.d) >> 32, 0);
	r = cpuid_wide(0x1111111100000004, 0x2222222200000001);
	expect_true("junk-above-is-ignored",
		    r.a == plain.eax && r.b == plain.ebx && r.c == plain.ecx && r.d == plain.edx);
}

/* "If a value entered for CPUID.EAX is higher than the maximum input value ... the data for the highest basic
 * leaf is returned." */
static void out_of_range(void)
{
	u32 basic = cpuid(0, 0).eax, extended = cpuid(0x80000000, 0).eax;
	struct cpuid highest = cpuid(basic, 0);
	bool hypervisor = cpuid(1, 0).ecx & BIT(31);

	expect_true("has-basic-leaves", basic >= 0xd && basic < 0x100);
	expect_true("has-extended-leaves", extended >= 0x80000008 && extended < 0x80000100);
	expect_true("above-basic", same(cpuid(basic + 1, 0), highest));
	expect_true("above-extended", same(cpuid(extended + 1, 0), highest));
	expect_true("hypervisor-range-end", same(cpuid(0x4fffffff, 0), highest));
	if (hypervisor)
		expect_true("hypervisor-range", cpuid(0x40000000, 0).eax >= 0x40000000);
	else
		expect_true("hypervisor-range", same(cpuid(0x40000000, 0), highest));
}

static void identity(void)
{
	struct cpuid b;
	u32 id = cpuid(1, 0).ebx >> 24;

	expect_eq("apic-id", lapic_is_x2apic() ? lapic_read(APIC_ID) : lapic_read(APIC_ID) >> 24, id);
	if (cpuid(0, 0).eax < 0xb || !cpuid(0xb, 0).ebx) {
		skip("x2apic-id", "no leaf 0xb");
		return;
	}
	b = cpuid(0xb, 0);
	expect_eq("x2apic-id", b.edx, id);
	expect_eq("topology-echoes-subleaf", cpuid(0xb, 1).ecx & 0xff, 1);
}

static void osxsave_follows_cr4(void)
{
	if (!(cpuid(1, 0).ecx & BIT(26))) {
		skip("osxsave", "no XSAVE");
		return;
	}
	write_cr4(read_cr4() & ~CR4_OSXSAVE);
	expect_eq("osxsave-clear", cpuid(1, 0).ecx & BIT(27), 0);
	write_cr4(read_cr4() | CR4_OSXSAVE);
	expect_eq("osxsave-set", cpuid(1, 0).ecx & BIT(27), BIT(27));
	asm volatile("xsetbv" : : "c"(0), "a"(1), "d"(0));
	expect_eq("xsave-size-x87", cpuid(0xd, 0).ebx, 576);
	asm volatile("xsetbv" : : "c"(0), "a"(7 & cpuid(0xd, 0).eax), "d"(0));
	expect_true("xsave-size-grows", cpuid(0xd, 0).ebx >= 576 && cpuid(0xd, 0).ebx <= cpuid(0xd, 0).ecx);
	write_cr4(read_cr4() & ~CR4_OSXSAVE);
}

struct cr4_feature {
	const char *name;
	u64 bit;
	u32 leaf, reg, feature; /* reg: 1 EBX, 2 ECX, 3 EDX */
};

static const struct cr4_feature cr4_features[] = {
	{"cr4-vme", BIT(0), 1, 3, 1},       {"cr4-tsd", BIT(2), 1, 3, 4},
	{"cr4-de", BIT(3), 1, 3, 2},        {"cr4-pse", BIT(4), 1, 3, 3},
	{"cr4-mce", BIT(6), 1, 3, 7},       {"cr4-pge", BIT(7), 1, 3, 13},
	{"cr4-osfxsr", BIT(9), 1, 3, 24},   {"cr4-osxmmexcpt", BIT(10), 1, 3, 25},
	{"cr4-umip", BIT(11), 7, 2, 2},     {"cr4-la57", BIT(12), 7, 2, 16},
	{"cr4-vmxe", BIT(13), 1, 2, 5},     {"cr4-smxe", BIT(14), 1, 2, 6},
	{"cr4-fsgsbase", BIT(16), 7, 1, 0}, {"cr4-pcide", BIT(17), 1, 2, 17},
	{"cr4-osxsave", BIT(18), 1, 2, 26}, {"cr4-smep", BIT(20), 7, 1, 7},
	{"cr4-smap", BIT(21), 7, 1, 20},    {"cr4-pke", BIT(22), 7, 2, 3},
	{"cr4-cet", BIT(23), 7, 2, 7},
};

static bool feature_bit(const struct cr4_feature *f)
{
	struct cpuid r = cpuid(f->leaf, 0);

	return (f->reg == 1 ? r.ebx : f->reg == 2 ? r.ecx : r.edx) >> f->feature & 1;
}

/* SMEP, SMAP and PKE are left out of the real write: this code runs from user pages. LA57 cannot change in
 * 64-bit mode. */
static bool cr4_takes(u64 bit)
{
	u64 old = read_cr4();
	u32 result = try_write_cr4(old | bit);

	write_cr4(old);
	return result == 0;
}

static void cr4_agrees(void)
{
	u64 fixed1 = cpu_has_vmx() ? rdmsr(0x489) : 0;
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(cr4_features); i++) {
		const struct cr4_feature *f = &cr4_features[i];
		bool offered = feature_bit(f);

		if (!(f->bit & (CR4_SMEP | CR4_SMAP | CR4_LA57 | CR4_CET)))
			expect_eq(f->name, cr4_takes(f->bit), offered);
		if (!cpu_has_vmx())
			continue;
		format_text(name, sizeof(name), "fixed1-%s", f->name);
		expect_eq(name, !!(fixed1 & f->bit), offered);
	}
	expect_eq("cr4-reserved", try_write_cr4(read_cr4() | BIT(63)), GP);
	expect_eq("cr4-reserved-15", try_write_cr4(read_cr4() | BIT(15)), GP);
}

static struct cpuid ring3_result;

static void in_ring3(void)
{
	ring3_result = cpuid(0, 0);
}

void test_main(void)
{
	register_widths();
	out_of_range();
	identity();
	osxsave_follows_cr4();
	cr4_agrees();
	user_run(in_ring3);
	expect_true("ring3-sees-the-same", same(ring3_result, cpuid(0, 0)));
}
