/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MSRs of an L1: one table, in numeric order, that names each MSR and who answers. What is not here does
 * not exist (#GP). The MSR bitmap that lets a few through to hardware comes from the same table, so that both
 * cannot disagree.
 */
#include "hv/cpu.h"
#include "hv/cpuid.h"
#include "hv/exit.h"
#include "hv/lib.h"
#include "hv/msr.h"
#include "hv/personality.h"
#include "hv/pmu.h"

u8 l1_msr_bitmap[4096] __attribute__((aligned(4096)));
u8 l1_io_bitmap[8192] __attribute__((aligned(4096)));

struct msr_rule {
	u32 first, last;
	bool (*read)(struct vcpu *v, u32 msr, u64 *value); /* false: #GP */
	bool (*write)(struct vcpu *v, u32 msr, u64 value);
	u8 pass; /* accesses that need no exit */
};
#define PASS_READ  1u
#define PASS_WRITE 2u
#define PASS_BOTH  3u

static bool read_zero(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = 0;
	return true;
}

static bool write_nothing(struct vcpu *v, u32 msr, u64 value)
{
	(void)v, (void)msr, (void)value;
	return true;
}

static bool canonical(u64 a)
{
	return (u64)((s64)(a << 16) >> 16) == a;
}

/* --- time --- */

static bool read_tsc(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = rdtsc() + v->tsc_offset;
	return true;
}

static void set_tsc_offset(struct vcpu *v, u64 offset)
{
	v->tsc_offset = offset;
	vmcs_write64(VMCS_TSC_OFFSET, offset);
	vlapic_tsc_changed(v);
	if (v->guest->personality)
		v->guest->personality->tsc_moved(v);
}

/* SDM "IA32_TSC_ADJUST MSR": a write to the TSC moves TSC_ADJUST by the same amount, and the other way round.
 */
static bool write_tsc(struct vcpu *v, u32 msr, u64 value)
{
	u64 offset = value - rdtsc();

	(void)msr;
	v->tsc_adjust += offset - v->tsc_offset;
	set_tsc_offset(v, offset);
	return true;
}

static bool read_tsc_adjust(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = v->tsc_adjust;
	return true;
}

static bool write_tsc_adjust(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	set_tsc_offset(v, v->tsc_offset + value - v->tsc_adjust);
	v->tsc_adjust = value;
	return true;
}

static bool read_tsc_aux(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v;
	if (!cpuid_offers(0x80000001, 3, 27))
		return false;
	*value = rdmsr(msr);
	return true;
}

static bool write_tsc_aux(struct vcpu *v, u32 msr, u64 value)
{
	(void)v;
	if (!cpuid_offers(0x80000001, 3, 27) || value >> 32)
		return false;
	wrmsr(msr, value);
	return true;
}

/* --- VMX --- */

/* SDM "IA32_FEATURE_CONTROL": lock, and VMX outside SMX; SMX and SGX bits do not exist here. */
static bool read_feature_control(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = v->feature_control;
	return v->nested != NULL;
}

static bool write_feature_control(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (!v->nested || v->feature_control & 1 || value & ~5ull)
		return false;
	v->feature_control = value;
	return true;
}

static bool read_vmx(struct vcpu *v, u32 msr, u64 *value)
{
	return v->nested && nested_msr_read(v, msr, value);
}

/* --- identification and miscellanea --- */

static bool read_misc_enable(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	/* No branch trace storage, no PEBS: SDM "IA32_MISC_ENABLE" bits 11 and 12. */
	*value = v->misc_enable | BIT(11) | BIT(12) | (v->pmu ? BIT(7) : 0);
	return true;
}

static bool write_misc_enable(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	v->misc_enable = value & BIT(0);
	return true;
}

/* A write of zero precedes CPUID and a read: "Microcode Update Resources". The revision read stays the same.
 */
static bool read_ucode(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = 0xffffffffull << 32;
	return true;
}

/* DEBUGCTL: BTF; LBR too, which every processor has, but no MSR of a guest holds what it records. Trace
 * facilities are not offered. */
static bool read_debugctl(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = vmcs_read64(VMCS_GUEST_DEBUGCTL);
	return true;
}

static bool write_debugctl(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	if (value & ~(BIT(0) | BIT(1)))
		return false;
	v->kept_written = true;
	vmcs_write64(VMCS_GUEST_DEBUGCTL, value);
	return true;
}

static bool write_xss(struct vcpu *v, u32 msr, u64 value)
{
	(void)v, (void)msr;
	return value == 0 && cpuid_offers(0xd, 0, 0);
}

/* --- page attributes --- */

static bool read_pat(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = vmcs_read64(VMCS_GUEST_PAT);
	return true;
}

static bool write_pat(struct vcpu *v, u32 msr, u64 value)
{
	(void)msr;
	for (unsigned i = 0; i < 8; i++) {
		u8 t = (u8)(value >> (8 * i));

		if (t != 7 && !mtrr_type_valid(t))
			return false;
	}
	v->kept_written = true;
	vmcs_write64(VMCS_GUEST_PAT, value);
	return true;
}

/* --- system calls and segment bases: in the VMCS or in the CPU itself --- */

static u32 sysenter_field(u32 msr)
{
	return msr == MSR_SYSENTER_CS    ? (u32)VMCS_GUEST_SYSENTER_CS
	       : msr == MSR_SYSENTER_ESP ? (u32)VMCS_GUEST_SYSENTER_ESP
					 : (u32)VMCS_GUEST_SYSENTER_EIP;
}

static bool read_sysenter(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v;
	*value = vmcs_read_raw(sysenter_field(msr));
	return true;
}

static bool write_sysenter(struct vcpu *v, u32 msr, u64 value)
{
	if (msr != MSR_SYSENTER_CS && !canonical(value))
		return false;
	v->kept_written = true;
	vmcs_write_raw(sysenter_field(msr), msr == MSR_SYSENTER_CS ? (u32)value : value);
	return true;
}

static bool read_efer(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr;
	*value = vmcs_read64(VMCS_GUEST_EFER);
	return true;
}

/* SDM "IA32_EFER": LMA is the processor's; LME may not change while paging is on. */
static bool write_efer(struct vcpu *v, u32 msr, u64 value)
{
	u64 old = vmcs_read64(VMCS_GUEST_EFER);

	(void)msr;
	if (value & ~(u64)(EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE))
		return false;
	if ((value ^ old) & EFER_LME && vcpu_cr0() & CR0_PG)
		return false;
	vcpu_load_efer(v, (value & ~EFER_LMA) | (old & EFER_LMA));
	return true;
}

static bool read_cpu(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v;
	*value = rdmsr(msr);
	return true;
}

static bool write_cpu(struct vcpu *v, u32 msr, u64 value)
{
	(void)v;
	if (msr == MSR_FMASK)
		value = (u32)value;
	else if (msr != MSR_STAR && !canonical(value))
		return false;
	wrmsr(msr, value);
	return true;
}

static bool read_base(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v;
	*value = msr == MSR_FS_BASE ? vmcs_read_nw(VMCS_GUEST_FS_BASE) : vmcs_read_nw(VMCS_GUEST_GS_BASE);
	return true;
}

static bool write_base(struct vcpu *v, u32 msr, u64 value)
{
	(void)v;
	if (!canonical(value))
		return false;
	if (msr == MSR_FS_BASE)
		vmcs_write_nw(VMCS_GUEST_FS_BASE, value);
	else
		vmcs_write_nw(VMCS_GUEST_GS_BASE, value);
	return true;
}

static bool read_personality(struct vcpu *v, u32 msr, u64 *value)
{
	return v->guest->personality && v->guest->personality->msr_read(v, msr, value);
}

static bool write_personality(struct vcpu *v, u32 msr, u64 value)
{
	return v->guest->personality && v->guest->personality->msr_write(v, msr, value);
}

static bool no_read(struct vcpu *v, u32 msr, u64 *value)
{
	(void)v, (void)msr, (void)value;
	return false;
}

static bool no_write(struct vcpu *v, u32 msr, u64 value)
{
	(void)v, (void)msr, (void)value;
	return false;
}

static const struct msr_rule msr_table[] = {
	/* clang-format off */
	{ 1, 0, read_personality, write_personality, 0 },	/* whatever no other row names */
	{ MSR_TSC, MSR_TSC, read_tsc, write_tsc, PASS_READ },
	{ 0x17, 0x17, read_zero, no_write, 0 },			/* IA32_PLATFORM_ID */
	{ MSR_APIC_BASE, MSR_APIC_BASE, vlapic_msr_read, vlapic_msr_write, 0 },
	{ MSR_FEATURE_CONTROL, MSR_FEATURE_CONTROL, read_feature_control, write_feature_control, 0 },
	{ MSR_TSC_ADJUST, MSR_TSC_ADJUST, read_tsc_adjust, write_tsc_adjust, 0 },
	{ MSR_UCODE_WRITE, MSR_UCODE_WRITE, no_read, write_nothing, 0 },
	{ MSR_UCODE_REV, MSR_UCODE_REV, read_ucode, write_nothing, 0 },
	{ MSR_PMC0, MSR_PMC0 + PMU_COUNTERS - 1, pmu_read, pmu_write, 0 },
	{ MSR_PLATFORM_INFO, MSR_PLATFORM_INFO, read_zero, no_write, 0 }, /* no CPUID faulting, no ratios */
	{ MSR_MTRRCAP, MSR_MTRRCAP, mtrr_read_cap, no_write, 0 },
	{ MSR_MISC_FEATURES, MSR_MISC_FEATURES, no_read, no_write, 0 },
	{ MSR_SYSENTER_CS, MSR_SYSENTER_EIP, read_sysenter, write_sysenter, PASS_READ },
	{ MSR_MCG_CAP, MSR_MCG_CAP, read_zero, no_write, 0 },	/* machine-check architecture with no banks */
	{ MSR_MCG_STATUS, MSR_MCG_STATUS, read_zero, write_nothing, 0 },
	{ MSR_PERFEVTSEL0, MSR_PERFEVTSEL0 + PMU_COUNTERS - 1, pmu_read, pmu_write, 0 },
	{ MSR_MISC_ENABLE, MSR_MISC_ENABLE, read_misc_enable, write_misc_enable, 0 },
	{ MSR_DEBUGCTL, MSR_DEBUGCTL, read_debugctl, write_debugctl, PASS_READ },
	{ MSR_MTRR_PHYSBASE0, MSR_MTRR_PHYSBASE0 + 2 * MTRR_VAR_COUNT - 1, mtrr_read_var, mtrr_write_var, 0 },
	{ MSR_MTRR_FIX64K, MSR_MTRR_FIX64K, mtrr_read_fixed, mtrr_write_fixed, 0 },
	{ MSR_MTRR_FIX16K, MSR_MTRR_FIX16K + 1, mtrr_read_fixed, mtrr_write_fixed, 0 },
	{ MSR_MTRR_FIX4K, MSR_MTRR_FIX4K + 7, mtrr_read_fixed, mtrr_write_fixed, 0 },
	{ MSR_PAT, MSR_PAT, read_pat, write_pat, PASS_READ },
	{ MSR_MTRR_DEF_TYPE, MSR_MTRR_DEF_TYPE, mtrr_read_def, mtrr_write_def, 0 },
	{ MSR_FIXED_CTR0, MSR_FIXED_CTR0 + PMU_FIXED - 1, pmu_read, pmu_write, 0 },
	{ MSR_FIXED_CTR_CTRL, MSR_PERF_GLOBAL_OVF, pmu_read, pmu_write, 0 },
	{ MSR_VMX_BASIC, MSR_VMX_VMFUNC, read_vmx, no_write, 0 },
	{ MSR_TSC_DEADLINE, MSR_TSC_DEADLINE, vlapic_msr_read, vlapic_msr_write, 0 },
	{ MSR_X2APIC_BASE, MSR_X2APIC_BASE + 0xff, vlapic_msr_read, vlapic_x2apic_write, 0 },
	{ MSR_XSS, MSR_XSS, read_zero, write_xss, 0 },
	{ MSR_EFER, MSR_EFER, read_efer, write_efer, PASS_READ },
	{ MSR_STAR, MSR_FMASK, read_cpu, write_cpu, PASS_BOTH },
	{ MSR_FS_BASE, MSR_GS_BASE, read_base, write_base, PASS_BOTH },
	{ MSR_KERNEL_GS_BASE, MSR_KERNEL_GS_BASE, read_cpu, write_cpu, PASS_BOTH },
	{ MSR_TSC_AUX, MSR_TSC_AUX, read_tsc_aux, write_tsc_aux, PASS_BOTH },
	/* clang-format on */
};

_Static_assert(ARRAY_SIZE(msr_table) < 255, "an index fits a byte");

/* Row by number for the two ranges that matter. The others are searched. */
#define INDEX_LOW  0xb00u
#define INDEX_HIGH 0x200u
#define HIGH_FIRST 0xc0000000u
static u8 index_low[INDEX_LOW], index_high[INDEX_HIGH];

static void index_init(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(msr_table); i++)
		for (u32 m = msr_table[i].first; m <= msr_table[i].last; m++) {
			if (m < INDEX_LOW)
				index_low[m] = (u8)i;
			else if (m - HIGH_FIRST < INDEX_HIGH)
				index_high[m - HIGH_FIRST] = (u8)i;
		}
}

static __attribute__((noinline, cold)) const struct msr_rule *search(u32 msr)
{
	for (size_t i = 1; i < ARRAY_SIZE(msr_table); i++)
		if (msr >= msr_table[i].first && msr <= msr_table[i].last)
			return &msr_table[i];
	return &msr_table[0];
}

static inline const struct msr_rule *find(u32 msr)
{
	if (likely(msr < INDEX_LOW))
		return &msr_table[index_low[msr]];
	if (msr - HIGH_FIRST < INDEX_HIGH)
		return &msr_table[index_high[msr - HIGH_FIRST]];
	return search(msr);
}

bool msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	return find(msr)->read(v, msr, value);
}

bool msr_write(struct vcpu *v, u32 msr, u64 value)
{
	return find(msr)->write(v, msr, value);
}

/* --- exits: only ECX selects; results are zero-extended --- */

enum exit_action exit_rdmsr(struct vcpu *v)
{
	u64 value;

	if (unlikely(!msr_read(v, (u32)v->regs[RCX], &value)))
		return fault_gp(cpu_running());
	v = cpu_running();
	v->regs[RAX] = (u32)value;
	v->regs[RDX] = value >> 32;
	return RESUME_NEXT;
}

enum exit_action exit_wrmsr(struct vcpu *v)
{
	if (unlikely(!msr_write(v, (u32)v->regs[RCX], v->regs[RDX] << 32 | (u32)v->regs[RAX])))
		return fault_gp(cpu_running());
	return RESUME_NEXT;
}

/* SDM "MSR-Bitmap Address": 1 KiB each for reads low, reads high, writes low, writes high. */
static void pass(u32 msr, u8 what)
{
	u32 bit = (msr & 0x1fff) + (msr >> 31 ? 8192u : 0);

	if (what & PASS_READ)
		l1_msr_bitmap[bit / 8] &= (u8)~BIT32(bit % 8);
	bit += 16384;
	if (what & PASS_WRITE)
		l1_msr_bitmap[bit / 8] &= (u8)~BIT32(bit % 8);
}

void msr_init(void)
{
	index_init();
	memset(l1_msr_bitmap, 0xff, sizeof(l1_msr_bitmap));
	memset(l1_io_bitmap, 0xff, sizeof(l1_io_bitmap));
	for (size_t i = 0; i < ARRAY_SIZE(msr_table); i++)
		for (u32 m = msr_table[i].first; m <= msr_table[i].last; m++)
			pass(m, msr_table[i].pass);
	if (!cpuid_offers(0x80000001, 3, 27)) { /* no RDTSCP: IA32_TSC_AUX does not exist */
		l1_msr_bitmap[1024 + (MSR_TSC_AUX & 0x1fff) / 8] |= (u8)BIT32(MSR_TSC_AUX % 8);
		l1_msr_bitmap[3072 + (MSR_TSC_AUX & 0x1fff) / 8] |= (u8)BIT32(MSR_TSC_AUX % 8);
	}
}
