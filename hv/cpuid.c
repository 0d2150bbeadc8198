/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPUID of an L1: host leaves read once at boot and cut down by an explicit table; nothing passes that no
 * rule names. SDM "CPUID—CPU Identification".
 */
#include "hv/cpuid.h"
#include "hv/exit.h"
#include "hv/personality.h"
#include "hv/pmu.h"
#include "hv/timer.h"
#include "hv/vcpu.h"
#include "hv/vcpu_switch.h"
#include "hv/vmcs_init.h"

#define LEAF_MAX     0x16u /* at most; the host's own if lower, see cpuid_init */
#define LEAF_EXT_MAX 0x80000008u

/* Leaf 1. */
#define ECX1_VMX     BIT32(5)
#define ECX1_X2APIC  BIT32(21)
#define ECX1_TSC_DL  BIT32(24)
#define ECX1_OSXSAVE BIT32(27)
#define ECX1_HYPERV  BIT32(31) /* a hypervisor is present */
#define EDX1_APIC    BIT32(9)
#define EDX1_HTT     BIT32(28)
#define ECX7_OSPKE   BIT32(4)

/* What is passed of the host's bits, leaf by leaf; a bit that is not here reads 0. */
static const struct rule {
	u32 leaf, sub;
	u32 eax, ebx, ecx, edx;
} rules[] = {
	/* clang-format off */
	/* family, CLFLUSH size; SSE3 PCLMUL SSSE3 FMA CX16 PCID SSE4 MOVBE POPCNT AES XSAVE AVX F16C RDRAND; no MONITOR, PDCM, SMX, hypervisor bit */
	{ 0x1, 0, ~0u, 0x0000ff00, 0x76da3203, 0x0789fbff },
	{ 0x2, 0, ~0u, ~0u, ~0u, ~0u },		/* cache descriptors */
	{ 0x4, 0, ~0u, ~0u, ~0u, ~0u },		/* caches; the sharing fields are replaced */
	{ 0x4, 1, ~0u, ~0u, ~0u, ~0u },
	{ 0x4, 2, ~0u, ~0u, ~0u, ~0u },
	{ 0x4, 3, ~0u, ~0u, ~0u, ~0u },
	{ 0x6, 0, BIT32(2), 0, 0, 0 },		/* ARAT: the virtual APIC timer never stops */
	/* FSGSBASE TSC_ADJUST BMI1 HLE AVX2 SMEP BMI2 ERMS INVPCID RTM AVX512* RDSEED ADX SMAP CLFLUSHOPT CLWB SHA; VBMI UMIP PKU GFNI.. RDPID; FSRM MD_CLEAR */
	{ 0x7, 0, 0, 0xf1bf0fbb & ~BIT32(6), 0x00405f4e & ~BIT32(5), 0x00000410 },
	{ 0xd, 0, ~0u, ~0u, ~0u, ~0u },		/* asked live: sizes depend on XCR0 */
	{ 0x80000001, 0, ~0u, 0, 0x00000121, 0x2c100800 },	/* LAHF LZCNT PREFETCHW; SYSCALL NX 1G RDTSCP LM */
	{ 0x80000002, 0, ~0u, ~0u, ~0u, ~0u },	/* brand string */
	{ 0x80000003, 0, ~0u, ~0u, ~0u, ~0u },
	{ 0x80000004, 0, ~0u, ~0u, ~0u, ~0u },
	{ 0x80000006, 0, 0, 0, ~0u, 0 },	/* L2 cache */
	{ 0x80000007, 0, 0, 0, 0, BIT32(8) },	/* invariant TSC */
	{ 0x80000008, 0, 0xffff, 0, 0, 0 },	/* address widths */
	/* clang-format on */
};

static struct cpuid basic[LEAF_MAX + 1], cache[4], extended[9];
static struct cpuid xsave1; /* leaf 0xD subleaf 1 */
static u32 leaf_max;

static struct cpuid *slot(u32 leaf, u32 sub)
{
	if (leaf == 4)
		return &cache[sub & 3];
	return leaf >> 31 ? &extended[leaf & 15] : &basic[leaf];
}

/* Controls L0 does not have take their feature away: the instruction would #UD. */
static void withhold_unsupported(void)
{
	if (!(l0_controls.sec & SEC_INVPCID))
		basic[7].ebx &= ~BIT32(10);
	if (!(l0_controls.sec & SEC_RDTSCP)) {
		extended[1].edx &= ~BIT32(27);
		basic[7].ecx &= ~BIT32(22);
	}
	if (!(read_cr4() & CR4_OSXSAVE)) { /* no XSAVE: nothing that needs it */
		basic[1].ecx &= ~(BIT32(26) | BIT32(28) | BIT32(29) | BIT32(12));
		basic[7].ebx &= ~(BIT32(5) | 0xf0230000u);
	}
}

/* SDM "Time Stamp Counter and Nominal Core Crystal Clock Information Leaf": the APIC timer of an L1 counts at
 * the crystal's rate, which is the TSC's. */
static void fill_frequencies(void)
{
	u32 mhz = (u32)(tsc_hz / 1000000);

	basic[0x15] = (struct cpuid){.eax = 1, .ebx = 1, .ecx = tsc_hz >> 32 ? 0 : (u32)tsc_hz};
	basic[0x16] = (struct cpuid){.eax = mhz, .ebx = mhz, .ecx = 100};
}

/* SDM "Compacted Format of an XSAVE Area" for what XCR0 holds now; computed, since an emulator gives the
 * standard format's size. */
static u32 compacted_size(u64 components)
{
	u32 size = 576; /* legacy region and header */

	for (u32 i = 2; i < 63; i++) {
		struct cpuid c;

		if (!(components >> i & 1))
			continue;
		c = cpuid(0xd, i);
		size = (c.ecx & 2 ? ALIGN_UP(size, 64u) : size) + c.eax;
	}
	return size;
}

/*
 * XSAVEC, XSAVES: only from a processor whose own size of the compacted format is the manual's. Debian's
 * Bochs says another, and loses AVX-512 registers of a guest that saves by XSAVES; its bare Linux never does,
 * because it finds the size wrong.
 */
static u32 compaction_offered(u32 eax)
{
	u64 all = xcr0_supported(), before;
	bool sound;

	if (!(eax & 0xa) || !(read_cr4() & CR4_OSXSAVE))
		return eax & ~0xau;
	before = xgetbv0();
	xsetbv0(all);
	sound = cpuid(0xd, 1).ebx == compacted_size(all);
	xsetbv0(before);
	return sound ? eax : eax & ~0xau;
}

void cpuid_init(void)
{
	u32 host_max = cpuid(0, 0).eax, host_ext = cpuid(0x80000000, 0).eax;
	struct cpuid x = cpuid(0xd, 1);

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		const struct rule *r = &rules[i];
		struct cpuid h = cpuid(r->leaf, r->sub);

		if (r->leaf > (r->leaf >> 31 ? host_ext : host_max))
			continue;
		*slot(r->leaf, r->sub) =
			(struct cpuid){h.eax & r->eax, h.ebx & r->ebx, h.ecx & r->ecx, h.edx & r->edx};
	}
	basic[0] = cpuid(0, 0);
	leaf_max = basic[0].eax = LEAF_MAX;
	extended[0].eax = LEAF_EXT_MAX;
	basic[1].ecx |= ECX1_X2APIC | ECX1_TSC_DL; /* both are emulated */
	/* XSAVEOPT, XSAVEC, XGETBV(1), XSAVES; no supervisor state is offered (IA32_XSS stays 0). */
	xsave1 = (struct cpuid){.eax = host_max >= 0xd ? x.eax & (l0_controls.sec & SEC_XSAVES ? 0xf : 0x7)
						       : 0};
	xsave1.eax = compaction_offered(xsave1.eax);
	withhold_unsupported();
	fill_frequencies();
}

bool cpuid_offers(u32 leaf, unsigned reg, unsigned bit)
{
	const u32 *r = (const u32 *)slot(leaf, 0);

	return r[reg] >> bit & 1;
}

u8 cpuid_phys_bits(void)
{
	return (u8)extended[8].eax;
}

/* SDM "Control Registers": each bit with the feature that brings it; those without a condition every 64-bit
 * processor has. */
u64 cpuid_cr4_offered(void)
{
	static u64 offered;
	static const struct {
		u64 cr4;
		u32 leaf;
		u8 reg, bit;
	} by_feature[] = {
		{CR4_UMIP, 7, 2, 2}, {CR4_FSGSBASE, 7, 1, 0}, {CR4_PCIDE, 1, 2, 17}, {CR4_OSXSAVE, 1, 2, 26},
		{CR4_SMEP, 7, 1, 7}, {CR4_SMAP, 7, 1, 20},    {CR4_PKE, 7, 2, 3},
	};

	if (likely(offered))
		return offered;
	offered = 0x7ff; /* VME PVI TSD DE PSE PAE MCE PGE PCE OSFXSR OSXMMEXCPT */
	for (size_t i = 0; i < ARRAY_SIZE(by_feature); i++)
		if (cpuid_offers(by_feature[i].leaf, by_feature[i].reg, by_feature[i].bit))
			offered |= by_feature[i].cr4;
	return offered;
}

static unsigned log2_up(u32 n)
{
	return n > 1 ? 32u - (unsigned)__builtin_clz(n - 1) : 0;
}

u32 cpuid_own_ecx(const struct vcpu *v)
{
	return (v->nested ? ECX1_VMX : 0) | (v->guest->personality ? ECX1_HYPERV : 0);
}

static struct cpuid leaf_1(const struct vcpu *v)
{
	struct cpuid r = basic[1];
	u32 n = v->guest->nr_vcpus;

	r.ebx |= v->index << 24;
	if (!(v->apic_base & APIC_BASE_ENABLE))
		r.edx &= ~EDX1_APIC;
	if (n > 1) {
		r.edx |= EDX1_HTT;
		r.ebx |= 1u << log2_up(n) << 16;
	}
	r.ecx |= v->cpuid1_ecx;
	if (r.ecx & BIT32(26) && vmcs_read_nw(VMCS_GUEST_CR4) & CR4_OSXSAVE)
		r.ecx |= ECX1_OSXSAVE;
	return r;
}

/* One package, one thread a core, each core with caches of its own but the last level. */
static struct cpuid leaf_4(const struct vcpu *v, u32 sub)
{
	struct cpuid r = sub < ARRAY_SIZE(cache) ? cache[sub] : (struct cpuid){0};
	u32 level = r.eax >> 5 & 7, n = 1u << log2_up(v->guest->nr_vcpus);

	if (!(r.eax & 31))
		return (struct cpuid){0};
	r.eax &= 0x3fff;
	r.eax |= (n - 1) << 26 | (level >= 3 ? (n - 1) << 14 : 0);
	return r;
}

static struct cpuid leaf_7(const struct vcpu *v, u32 sub)
{
	struct cpuid r = sub ? (struct cpuid){0} : basic[7];

	(void)v;
	if (r.ecx & BIT32(3) && vmcs_read_nw(VMCS_GUEST_CR4) & CR4_PKE)
		r.ecx |= ECX7_OSPKE;
	return r;
}

/* SDM "Extended Topology Enumeration Leaf". */
static struct cpuid leaf_b(const struct vcpu *v, u32 sub)
{
	u32 n = v->guest->nr_vcpus;

	if (sub == 0)
		return (struct cpuid){.ebx = 1, .ecx = 0x100, .edx = v->index};
	if (sub == 1)
		return (struct cpuid){.eax = log2_up(n), .ebx = n, .ecx = 0x201, .edx = v->index};
	return (struct cpuid){.ecx = sub & 0xff, .edx = v->index};
}

/* Sizes follow XCR0, which is the guest's own in this CPU; components L0 does not offer vanish. */
static struct cpuid leaf_d(u32 sub)
{
	u64 offered = xcr0_supported();
	struct cpuid r;

	if (!(basic[1].ecx & BIT32(26)))
		return (struct cpuid){0};
	r = cpuid(0xd, sub);
	if (sub == 0)
		return (struct cpuid){
			.eax = (u32)offered, .ebx = r.ebx, .ecx = r.ecx, .edx = (u32)(offered >> 32)};
	if (sub == 1)
		return (struct cpuid){.eax = xsave1.eax,
				      .ebx = xsave1.eax & 0xa ? compacted_size(xgetbv0()) : 0};
	return sub < 64 && offered >> sub & 1 ? r : (struct cpuid){0};
}

/* Stands for all leaves from 0x40000000 on: a hypervisor's. */
#define LEAF_PERSONALITY 0x1fu

/* SDM: above the highest leaf of either range comes the data of the highest basic leaf. */
static u32 clamp(u32 leaf)
{
	if (likely(leaf <= leaf_max) || (leaf >> 31 && leaf <= LEAF_EXT_MAX))
		return leaf;
	return leaf >> 16 == 0x4000 ? LEAF_PERSONALITY : leaf_max;
}

#define DYNAMIC_LEAVES                                                                                       \
	(BIT32(0x1) | BIT32(0x4) | BIT32(0x7) | BIT32(0xa) | BIT32(0xb) | BIT32(0xd) |                       \
	 BIT32(LEAF_PERSONALITY))

/* Leaves that follow the vCPU's state or the subleaf. `leaf` is clamped, `raw` is what was asked for. */
static struct cpuid dynamic(struct vcpu *v, u32 leaf, u32 raw, u32 sub)
{
	switch (leaf) {
	case 0x1:
		return leaf_1(v);
	case 0x4:
		return leaf_4(v, sub);
	case 0x7:
		return leaf_7(v, sub);
	case 0xa:
		return pmu_cpuid(v);
	case 0xb:
		return leaf_b(v, sub);
	case LEAF_PERSONALITY:
		return v->guest->personality ? v->guest->personality->cpuid(v, raw) : basic[leaf_max];
	default:
		return leaf_d(sub);
	}
}

struct cpuid vcpu_cpuid(struct vcpu *v, u32 raw, u32 sub)
{
	u32 leaf = clamp(raw);

	if (leaf >> 31)
		return extended[leaf & 15];
	return DYNAMIC_LEAVES >> leaf & 1 ? dynamic(v, leaf, raw, sub) : basic[leaf];
}

static enum exit_action give(struct vcpu *v, const struct cpuid *r)
{
	v->regs[RAX] = r->eax;
	v->regs[RBX] = r->ebx;
	v->regs[RCX] = r->ecx;
	v->regs[RDX] = r->edx;
	return RESUME_NEXT;
}

enum exit_action exit_cpuid(struct vcpu *v)
{
	u32 leaf = clamp((u32)v->regs[RAX]);
	struct cpuid r;

	if (leaf >> 31)
		return give(v, &extended[leaf & 15]);
	if (likely(!(DYNAMIC_LEAVES >> leaf & 1)))
		return give(v, &basic[leaf]);
	r = dynamic(v, leaf, (u32)v->regs[RAX], (u32)v->regs[RCX]);
	return give(v, &r);
}
