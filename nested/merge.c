/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS02's fields from VMCS12 and what L0 needs. Pure; no bit is ever taken away from what L0 needs. */
#include "nested/merge.h"
#include "hv/x86.h"
#include "nested/checks.h"

#define TSC_RATIO_SHIFT 48
#define TSC_RATIO_ONE   BIT(TSC_RATIO_SHIFT)

/* What L0 may ask for on its own: intercepts. Its features (such as a TPR shadow for L1) must not leak into
 * L2. */
#define PROC_OF_L0                                                                                           \
	(PROC_INTR_WINDOW | PROC_HLT | PROC_INVLPG | PROC_MWAIT | PROC_RDPMC | PROC_RDTSC | PROC_CR3_LOAD |  \
	 PROC_CR3_STORE | PROC_CR8_LOAD | PROC_CR8_STORE | PROC_NMI_WINDOW | PROC_MOV_DR | PROC_MONITOR |    \
	 PROC_PAUSE)
#define SEC_OF_L0 (SEC_DESC_TABLE | SEC_WBINVD | SEC_RDRAND | SEC_ENCLS | SEC_RDSEED | SEC_CONCEAL_VMX)
#define PIN_OF_L0 (PIN_EXT_INTR | PIN_NMI | PIN_VNMI | PIN_TIMER)

/* In VMCS02 whatever L1 says: merged bitmaps, the sum of TSC offsets, an EPT and a tag of L0's. */
#define PROC_ALWAYS (PROC_IO_BITMAPS | PROC_MSR_BITMAPS | PROC_TSC_OFFSET | PROC_SECONDARY)
#define SEC_ALWAYS  (SEC_EPT | SEC_VPID)

/* L1's own that hardware carries out for L2. The merged I/O bitmaps stand for unconditional exiting too, and
 * VM functions exit: none is enabled. */
#define PROC_NOT_L1 (PROC_UNCOND_IO | PROC_TERTIARY)
#define SEC_OF_L1                                                                                            \
	(SEC_APIC_ACCESSES | SEC_DESC_TABLE | SEC_RDTSCP | SEC_X2APIC | SEC_WBINVD | SEC_UNRESTRICTED |      \
	 SEC_APIC_REGS | SEC_VID | SEC_PLE | SEC_RDRAND | SEC_INVPCID | SEC_VMFUNC | SEC_ENCLS |             \
	 SEC_RDSEED | SEC_XSAVES | SEC_MBE)

static u64 tsc_scale(u64 tsc, u64 ratio)
{
	return (u64)((unsigned __int128)tsc * ratio >> TSC_RATIO_SHIFT);
}

/* An offset is signed. */
static u64 tsc_scale_offset(u64 offset, u64 ratio)
{
	return (u64)((__int128)(s64)offset * (__int128)ratio >> TSC_RATIO_SHIFT);
}

/* SDM "Use TSC scaling": the multiplier counts only together with TSC offsetting. */
static u64 ratio12(const struct vmcs12 *v12)
{
	bool used = (v12->proc_ctl & PROC_TSC_OFFSET) && (vmcs12_sec(v12) & SEC_TSC_SCALING);

	return used ? v12->tsc_multiplier : TSC_RATIO_ONE;
}

static u64 offset12(const struct vmcs12 *v12)
{
	return v12->proc_ctl & PROC_TSC_OFFSET ? v12->tsc_offset : 0;
}

u64 merge_l2_tsc(const struct vmcs12 *v12, u64 l1_tsc)
{
	return tsc_scale(l1_tsc, ratio12(v12)) + offset12(v12);
}

static void merge_tsc(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	u64 ratio01 = l0->tsc_multiplier ? l0->tsc_multiplier : TSC_RATIO_ONE;

	out->tsc_multiplier = tsc_scale(ratio01, ratio12(v12));
	out->tsc_offset = tsc_scale_offset(l0->tsc_offset, ratio12(v12)) + offset12(v12);
	if (out->tsc_multiplier == 0) /* too slow to express; hardware refuses 0 */
		out->tsc_multiplier = 1;
	if (out->tsc_multiplier != TSC_RATIO_ONE)
		out->sec |= SEC_TSC_SCALING;
}

static void merge_exec(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	u32 sec12 = vmcs12_sec(v12);

	out->pin = (v12->pin_ctl & ~PIN_POSTED) | (l0->pin & PIN_OF_L0) | PIN_EXT_INTR | PIN_NMI;
	out->proc = (v12->proc_ctl & ~PROC_NOT_L1) | (l0->proc & PROC_OF_L0) | PROC_ALWAYS;
	out->sec = (sec12 & SEC_OF_L1) | (l0->sec & SEC_OF_L0) | SEC_ALWAYS;
	/* Without a TPR shadow CR8 is L1's own virtual TPR, which hardware does not hold. */
	if (!(v12->proc_ctl & PROC_TPR_SHADOW))
		out->proc |= PROC_CR8_LOAD | PROC_CR8_STORE;
	out->cr3_target_count = l0->proc & PROC_CR3_LOAD ? 0 : v12->cr3_target_count;
	out->xss_exiting = l0->xss_exiting | (sec12 & SEC_XSAVES ? v12->xss_exiting_bitmap : 0);
	out->encls_exiting = (l0->sec & SEC_ENCLS ? l0->encls_exiting : 0) |
			     (sec12 & SEC_ENCLS ? v12->encls_exiting_bitmap : 0);
}

/*
 * The exit loads L0's state as any exit does. Only the entry's mode is L1's. The timer's rest is saved when
 * either asks for it and the timer runs: SDM "VM-Exit Control Fields" forbids the one without the other.
 */
static void merge_exit_entry(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	out->exit = l0->exit | (v12->exit_ctl & EXIT_SAVE_TIMER);
	if (!(out->pin & PIN_TIMER))
		out->exit &= ~EXIT_SAVE_TIMER;
	out->entry = (l0->entry & ~ENTRY_IA32E) | (v12->entry_ctl & ENTRY_IA32E);
}

/*
 * #DB and #AC always: their delivery may repeat for ever without an exit. When L0 wants #PF it must see all
 * of them, else L1's filter stands. SDM "Exception Bitmap".
 */
static void merge_exceptions(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	out->exceptions = v12->exception_bitmap | l0->exceptions | BIT32(VEC_DB) | BIT32(VEC_AC);
	if (!(l0->exceptions & BIT32(VEC_PF))) {
		out->pf_mask = v12->pf_mask;
		out->pf_match = v12->pf_match;
	}
}

/* A guest register: L0 forces its bits, and L2 reads L1's shadow or what it wrote itself. */
static void merge_cr(u64 *value, u64 *mask, u64 *shadow, u64 mask12, u64 shadow12, u64 guest12, u64 l0_mask,
		     u64 l0_value)
{
	*mask = mask12 | l0_mask;
	*value = (guest12 & ~l0_mask) | (l0_value & l0_mask);
	*shadow = (shadow12 & mask12) | (guest12 & ~mask12);
}

/* Bits that L2 could write are in the register; bits only L0 holds are in the shadow; the rest never changed.
 */
static u64 saved_cr(u64 mask12, u64 guest12, u64 l0_mask, u64 hw, u64 shadow)
{
	return (hw & ~l0_mask) | (shadow & l0_mask & ~mask12) | (guest12 & l0_mask & mask12);
}

u64 merge_saved_cr0(const struct vmcs12 *v12, const struct l0_needs *l0, u64 hw, u64 shadow)
{
	return saved_cr(v12->cr0_mask, v12->guest_cr0, l0->cr0_mask, hw, shadow);
}

u64 merge_saved_cr4(const struct vmcs12 *v12, const struct l0_needs *l0, u64 hw, u64 shadow)
{
	return saved_cr(v12->cr4_mask, v12->guest_cr4, l0->cr4_mask, hw, shadow);
}

/* SDM "Loading Guest Control Registers, Debug Registers, and MSRs": EFER without its load control follows the
 * mode. */
static u64 merge_efer(const struct vmcs12 *v12, u64 l1_efer)
{
	u64 mode = v12->entry_ctl & ENTRY_IA32E ? EFER_LMA | EFER_LME : 0;
	u64 follows = v12->guest_cr0 & CR0_PG ? EFER_LMA | EFER_LME : EFER_LMA;

	if (v12->entry_ctl & ENTRY_LOAD_EFER)
		return v12->guest_efer;
	return (l1_efer & ~follows) | (mode & follows);
}

/* What VMCS12 does not load L2 inherits from L1. */
static void merge_inherited(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	bool debug = v12->entry_ctl & ENTRY_LOAD_DEBUG;

	out->efer = merge_efer(v12, l0->l1_efer);
	out->pat = v12->entry_ctl & ENTRY_LOAD_PAT ? v12->guest_pat : l0->l1_pat;
	out->debugctl = debug ? v12->guest_debugctl : l0->l1_debugctl;
	out->dr7 = debug ? v12->guest_dr7 : l0->l1_dr7;
}

void merge_controls(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0)
{
	*out = (struct merged){0};
	merge_exec(out, v12, l0);
	merge_tsc(out, v12, l0);
	merge_exit_entry(out, v12, l0);
	merge_exceptions(out, v12, l0);
	merge_cr(&out->cr0, &out->cr0_mask, &out->cr0_shadow, v12->cr0_mask, v12->cr0_shadow, v12->guest_cr0,
		 l0->cr0_mask, l0->cr0_value);
	merge_cr(&out->cr4, &out->cr4_mask, &out->cr4_shadow, v12->cr4_mask, v12->cr4_shadow, v12->guest_cr4,
		 l0->cr4_mask, l0->cr4_value);
	merge_inherited(out, v12, l0);
}
