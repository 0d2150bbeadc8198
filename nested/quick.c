/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which VM entries need no check and no merge. After an exit VMCS02 holds L2's state, saved by hardware and
 * therefore valid; an L1 that changed only RIP, flags, or the event to inject can be let in on a look at
 * these. Anything else, and any doubt, takes the full way. Pre: VMCS01 is current.
 */
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* Groups whose change is looked at here; exit information and its writes mean nothing to an entry. */
#define QUICK_GROUPS                                                                                         \
	(BIT32(GROUP_LIVE) | BIT32(GROUP_GUEST_BASIC) | BIT32(GROUP_CONTROL_EVENT) | BIT32(GROUP_INFO))

#define RFLAGS_RESERVED (~(u64)0x3f7fd5) /* all but the defined flags, bit 1 included: see flags_ok */
#define BLOCKED_STI_SS  (INTR_STATE_STI | INTR_STATE_MOV_SS)
#define INFO_RESERVED   (~(INTR_VALID | 0xffu))

/* The upper half is what the rules about RIP look at, and it is that of the last exit. */
static bool rip_ok(const struct vmcs02 *e)
{
	return !((e->v12.guest_rip ^ e->exit_rip) >> 32);
}

/* RFLAGS and interruptibility state without anything that another field must agree with. */
static bool flags_ok(const struct vmcs12 *c)
{
	u32 state = c->guest_intr_state;

	if ((c->guest_rflags & RFLAGS_RESERVED) != RFLAGS_FIXED || c->guest_rflags & (RFLAGS_VM | RFLAGS_TF))
		return false;
	if (state & ~(INTR_STATE_STI | INTR_STATE_MOV_SS | INTR_STATE_NMI))
		return false;
	if (!(state & BLOCKED_STI_SS))
		return true;
	return (state & BLOCKED_STI_SS) != BLOCKED_STI_SS && c->guest_rflags & RFLAGS_IF &&
	       c->guest_activity == ACTIVITY_ACTIVE;
}

/* An external interrupt that L2 can take. */
static bool event_ok(const struct vmcs12 *c)
{
	return !(c->entry_intr_info & INFO_RESERVED) && c->guest_rflags & RFLAGS_IF &&
	       !(c->guest_intr_state & BLOCKED_STI_SS) && c->guest_activity <= ACTIVITY_HLT;
}

/* SDM "VM-Execution Control Fields": the threshold against the virtual TPR, which changes without a VMWRITE.
 */
static __attribute__((noinline)) bool threshold_ok(struct vcpu *v, const struct vmcs02 *e)
{
	u8 vtpr;

	if (v12_sec(e, SEC_VID))
		return true;
	if (e->v12.tpr_threshold >> 4)
		return false;
	if (v12_sec(e, SEC_APIC_ACCESSES))
		return true;
	return guest_read(&v->guest->mem, GPA(e->v12.virtual_apic + APIC_TPR), &vtpr, 1) &&
	       e->v12.tpr_threshold <= vtpr >> 4;
}

/* L1's registers, without a look at VMCS01 when they are as the last exit left them. */
static inline u64 l1_efer(const struct vcpu *v)
{
	return likely(!v->kept_written) ? v->nested->kept.efer : vmcs_read64(VMCS_GUEST_EFER);
}

static inline u64 l1_pat(const struct vcpu *v)
{
	return likely(!v->kept_written) ? v->nested->kept.pat : vmcs_read64(VMCS_GUEST_PAT);
}

/* What VMCS12 does not load L2 inherits from L1: it must be what was merged. */
static inline bool inherited_ok(const struct vcpu *v, const struct vmcs02 *e, u64 efer)
{
	u32 loaded = e->v12.entry_ctl;

	if (!(loaded & ENTRY_LOAD_EFER) && efer != e->seen.efer)
		return false;
	if (!(loaded & ENTRY_LOAD_PAT) && l1_pat(v) != e->seen.pat)
		return false;
	return loaded & ENTRY_LOAD_DEBUG || (vmcs_read64(VMCS_GUEST_DEBUGCTL) == e->seen.debugctl &&
					     vmcs_read_nw(VMCS_GUEST_DR7) == e->seen.dr7);
}

bool entry_is_quick(struct vcpu *v, const struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;
	u64 efer = l1_efer(v);

	/* SDM "VM-Entry Checks": error 26 is for the full way. */
	if (e->dirty & ~QUICK_GROUPS || !e->checked || e->checked_ia32e != !!(efer & EFER_LMA) ||
	    vmcs_read_sure(VMCS_GUEST_INTR_STATE) & INTR_STATE_MOV_SS)
		return false;
	if (c->entry_msr_load_count || !v12_sec(e, SEC_EPT) || v->tsc_offset != e->seen.tsc_offset)
		return false;
	if (e->dirty & BIT32(GROUP_GUEST_BASIC) && !flags_ok(c))
		return false;
	if (c->entry_intr_info & INTR_VALID && !event_ok(c))
		return false;
	if (v12_proc(e, PROC_TPR_SHADOW) && !threshold_ok(v, e))
		return false;
	return rip_ok(e) && inherited_ok(v, e, efer);
}
