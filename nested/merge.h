/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What VMCS02 holds in the fields that neither L1 nor L0 decides alone. Pure. Built from scratch each time
 * and only tightening: an intercept that either wants is there, a feature only when L1 asked for it and its
 * capability MSRs offered it.
 */
#ifndef NIDUS_NESTED_MERGE_H
#define NIDUS_NESTED_MERGE_H

#include "hv/types.h"
#include "nested/vmcs12.h"

/* What L0 wants while L2 runs, and what L2 inherits from L1 where VMCS12 does not load it. */
struct l0_needs {
	u32 pin, proc, sec;       /* intercepts (features in here, such as the APIC ones, are left out) */
	u32 exit, entry;          /* as in VMCS01: they load and save L0's state */
	u32 exceptions;           /* #DB and #AC are added always */
	u64 cr0_mask, cr4_mask;   /* bits L0 holds to itself */
	u64 cr0_value, cr4_value; /* their values in the register */
	u64 tsc_offset;           /* VMCS01's */
	u64 tsc_multiplier;       /* VMCS01's; 0: L1 is not scaled */
	u64 xss_exiting, encls_exiting;
	u64 l1_efer, l1_pat, l1_debugctl, l1_dr7;
};

struct merged {
	u32 pin, proc, sec, exit, entry;
	u32 exceptions, pf_mask, pf_match;
	u32 cr3_target_count;
	u64 cr0, cr0_mask, cr0_shadow; /* guest CR0 for the register, mask, read shadow */
	u64 cr4, cr4_mask, cr4_shadow;
	u64 tsc_offset, tsc_multiplier; /* multiplier is meaningful with SEC_TSC_SCALING in sec */
	u64 xss_exiting, encls_exiting;
	u64 efer, pat, debugctl, dr7;
};

void merge_controls(struct merged *out, const struct vmcs12 *v12, const struct l0_needs *l0);

/* What VMCS12's guest CR holds after an exit: `hw` and `shadow` are VMCS02's register and read shadow at the
 * exit. */
u64 merge_saved_cr0(const struct vmcs12 *v12, const struct l0_needs *l0, u64 hw, u64 shadow);
u64 merge_saved_cr4(const struct vmcs12 *v12, const struct l0_needs *l0, u64 hw, u64 shadow);

/* L2's TSC from L1's: SDM "TSC scaling and offsetting", with VMCS12's controls. */
u64 merge_l2_tsc(const struct vmcs12 *v12, u64 l1_tsc);

#endif
