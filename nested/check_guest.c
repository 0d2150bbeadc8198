/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "Checks on the Guest State Area": all but segments (nested/check_seg). Pure; reason 33 with its
 * qualification. */
#include "nested/check_rule.h"

#define DEBUGCTL_BTF       BIT(1)
#define DBG_BS             BIT(14)
#define DBG_RTM            BIT(16)
#define DBG_ENABLED        BIT(12)
#define DBG_RESERVED       (~(BIT(16) | BIT(14) | BIT(12) | 0xf))
#define BND_RESERVED       0xffcu
#define AR_L               BIT32(13)
#define AR_DPL(ar)         ((ar) >> 5 & 3u)
#define NO_LINK            (~0ull)
#define SHADOW_VMCS        BIT32(31)
#define PDPTE_PRESENT      BIT(0)
#define PDPTE_ZERO         0x1e6u
#define INTR_STATE_ENCLAVE BIT32(4)
#define RFLAGS_ZERO        (~MASK(22) | BIT(15) | BIT(5) | BIT(3))

/* SDM "Checks on Guest Control Registers, Debug Registers, and MSRs". */
static struct fail check_guest_registers(const struct vmcs12 *v, const struct check_facts *f)
{
	const struct vmx_caps *caps = f->caps;
	bool ia32e = v->entry_ctl & ENTRY_IA32E;
	u64 exempt = vmcs12_sec(v) & SEC_UNRESTRICTED ? CR0_PE | CR0_PG : 0;

	RULE(fixed_ok(v->guest_cr0, caps->cr0_fixed0 & ~exempt, caps->cr0_fixed1), FAIL_GUEST); /* G1 */
	RULE(implies(v->guest_cr0 & CR0_PG, v->guest_cr0 & CR0_PE), FAIL_GUEST);                /* G2 */
	RULE(fixed_ok(v->guest_cr4, caps->cr4_fixed0, caps->cr4_fixed1), FAIL_GUEST);           /* G3 */
	RULE(implies(v->guest_cr4 & CR4_CET, v->guest_cr0 & CR0_WP), FAIL_GUEST);               /* G4 */
	RULE(implies(v->entry_ctl & ENTRY_LOAD_DEBUG, !(v->guest_debugctl & ~f->debugctl_bits)),
	     FAIL_GUEST);                                                                      /* G5 */
	RULE(implies(ia32e, (v->guest_cr0 & CR0_PG) && (v->guest_cr4 & CR4_PAE)), FAIL_GUEST); /* G6 */
	RULE(ia32e || !(v->guest_cr4 & CR4_PCIDE), FAIL_GUEST);                                /* G7 */
	RULE(in_width(v->guest_cr3, f), FAIL_GUEST);                                           /* G8 */
	RULE(implies(v->entry_ctl & ENTRY_LOAD_DEBUG, !(v->guest_dr7 >> 32)), FAIL_GUEST);     /* G9 */
	RULE(canonical(v->guest_sysenter_esp, f) && canonical(v->guest_sysenter_eip, f),
	     FAIL_GUEST); /* G10 */
	return PASS;
}

/* The MSRs that entry controls load. */
static struct fail check_guest_msrs(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 entry = v->entry_ctl;
	bool lma = v->guest_efer & EFER_LMA, lme = v->guest_efer & EFER_LME;

	RULE(implies(entry & ENTRY_LOAD_PERF, !(v->guest_perf_global_ctrl & ~f->perf_global_bits)),
	     FAIL_GUEST);                                                        /* G11 */
	RULE(implies(entry & ENTRY_LOAD_PAT, pat_ok(v->guest_pat)), FAIL_GUEST); /* G12 */
	if (entry & ENTRY_LOAD_EFER) {
		RULE(!(v->guest_efer & ~f->efer_bits), FAIL_GUEST); /* G13 */
		RULE(lma == !!(entry & ENTRY_IA32E), FAIL_GUEST);
		RULE(implies(v->guest_cr0 & CR0_PG, lma == lme), FAIL_GUEST);
	}
	if (entry & ENTRY_LOAD_BNDCFGS)
		RULE(!(v->guest_bndcfgs & BND_RESERVED) && canonical(v->guest_bndcfgs & PAGE_MASK, f),
		     FAIL_GUEST); /* G14 */
	/* G15: no processor-trace controls */
	RULE(implies(entry & ENTRY_LOAD_CET, cet_ok(v->guest_s_cet, v->guest_ssp, v->guest_ssp_table, f)),
	     FAIL_GUEST); /* G16 */
	/* G17: protection keys for supervisor pages have no field */
	return PASS;
}

static bool injects(const struct vmcs12 *v, u32 type)
{
	return (v->entry_intr_info & INTR_VALID) && INTR_TYPE(v->entry_intr_info) == type;
}

/* SDM "Checks on Guest RIP, RFLAGS, and SSP". */
static struct fail check_guest_rip(const struct vmcs12 *v, const struct check_facts *f)
{
	bool ia32e = v->entry_ctl & ENTRY_IA32E;
	bool code64 = ia32e && (v->guest_cs_ar & AR_L);
	u64 flags = v->guest_rflags;

	RULE(code64 || !(v->guest_rip >> 32), FAIL_GUEST); /* P1 */
	/* P2: bits 63:N are equal, which is one bit less than canonical */
	RULE(implies(code64, canonical_in(v->guest_rip, f->linear_bits + 1u)), FAIL_GUEST);
	RULE(!(flags & RFLAGS_ZERO) && (flags & RFLAGS_FIXED), FAIL_GUEST);                 /* P3 */
	RULE(implies(ia32e || !(v->guest_cr0 & CR0_PE), !(flags & RFLAGS_VM)), FAIL_GUEST); /* P4 */
	RULE(implies(injects(v, INTR_TYPE_EXT), flags & RFLAGS_IF), FAIL_GUEST);            /* P5 */
	return PASS;
}

/* A1: which inactive states L1 was offered. */
static bool activity_ok(u32 state, const struct vmx_caps *caps)
{
	switch (state) {
	case ACTIVITY_ACTIVE:
		return true;
	case ACTIVITY_HLT:
		return caps->misc & VMX_MISC_HLT;
	case ACTIVITY_SHUTDOWN:
		return caps->misc & VMX_MISC_SHUTDOWN;
	case ACTIVITY_WAIT_SIPI:
		return caps->misc & VMX_MISC_WAIT_SIPI;
	default:
		return false;
	}
}

/* A4: an event is injected only into a state that it wakes. */
static bool event_wakes(const struct vmcs12 *v)
{
	u8 vec = INTR_VECTOR(v->entry_intr_info);
	bool mc = injects(v, INTR_TYPE_HW_EXC) && vec == VEC_MC;
	bool db = injects(v, INTR_TYPE_HW_EXC) && vec == VEC_DB;

	if (!(v->entry_intr_info & INTR_VALID))
		return true;
	switch (v->guest_activity) {
	case ACTIVITY_HLT:
		return injects(v, INTR_TYPE_EXT) || injects(v, INTR_TYPE_NMI) ||
		       injects(v, INTR_TYPE_OTHER) || mc || db;
	case ACTIVITY_SHUTDOWN:
		return injects(v, INTR_TYPE_NMI) || mc;
	case ACTIVITY_WAIT_SIPI:
		return false;
	default:
		return true;
	}
}

/* SDM "Checks on Guest Non-Register State": activity and interruptibility. */
static struct fail check_guest_activity(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 blocking = v->guest_intr_state;
	bool sti = blocking & INTR_STATE_STI, mov_ss = blocking & INTR_STATE_MOV_SS;
	bool nmi = injects(v, INTR_TYPE_NMI), ext = injects(v, INTR_TYPE_EXT);

	RULE(activity_ok(v->guest_activity, f->caps), FAIL_GUEST);                            /* A1 */
	RULE(implies(AR_DPL(v->guest_ss_ar), v->guest_activity != ACTIVITY_HLT), FAIL_GUEST); /* A2 */
	RULE(implies(sti || mov_ss, v->guest_activity == ACTIVITY_ACTIVE), FAIL_GUEST);       /* A3 */
	RULE(event_wakes(v), FAIL_GUEST);                                                     /* A4 */
	/* A5, A12: entry to SMM is not offered */
	RULE(!(blocking & ~MASK(5)), FAIL_GUEST);                                                /* A6 */
	RULE(!(sti && mov_ss), FAIL_GUEST);                                                      /* A7 */
	RULE(implies(sti, v->guest_rflags & RFLAGS_IF), FAIL_GUEST);                             /* A8 */
	RULE(implies(ext, !sti && !mov_ss), FAIL_GUEST);                                         /* A9 */
	RULE(implies(nmi, !mov_ss), FAIL_GUEST);                                                 /* A10 */
	RULE(!(blocking & INTR_STATE_SMI), FAIL_GUEST);                                          /* A11 */
	RULE(implies(nmi && (v->pin_ctl & PIN_VNMI), !(blocking & INTR_STATE_NMI)), FAIL_GUEST); /* A13 */
	RULE(!(blocking & INTR_STATE_ENCLAVE), FAIL_GUEST); /* A14: SGX is not offered */
	return PASS;
}

/* SDM "Checks on Guest Non-Register State": pending debug exceptions. */
static struct fail check_guest_debug(const struct vmcs12 *v, const struct check_facts *f)
{
	u64 pending = v->guest_pending_dbg;
	bool held = (v->guest_intr_state & (INTR_STATE_STI | INTR_STATE_MOV_SS)) ||
		    v->guest_activity == ACTIVITY_HLT;
	bool step = (v->guest_rflags & RFLAGS_TF) && !(v->guest_debugctl & DEBUGCTL_BTF);

	RULE(!(pending & DBG_RESERVED), FAIL_GUEST);                   /* A15 */
	RULE(implies(held, !!(pending & DBG_BS) == step), FAIL_GUEST); /* A16 */
	if (pending & DBG_RTM) {                                       /* A17 */
		RULE(f->rtm && (pending & DBG_ENABLED) && !(pending & DBG_BS), FAIL_GUEST);
		RULE(!(pending & 0xf) && !(v->guest_intr_state & INTR_STATE_MOV_SS), FAIL_GUEST);
	}
	return PASS;
}

/* SDM "Checks on Guest Non-Register State": VMCS link pointer. */
static struct fail check_guest_link(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 shadow = vmcs12_sec(v) & SEC_SHADOW_VMCS ? SHADOW_VMCS : 0;
	u32 revision = (u32)f->caps->basic & ~SHADOW_VMCS;

	if (v->link_pointer == NO_LINK)
		return PASS;
	RULE_QUAL(page_ok(v->link_pointer, f), FAIL_GUEST, QUAL_LINK);                             /* L1 */
	RULE_QUAL(f->link_readable && f->link_word == (revision | shadow), FAIL_GUEST, QUAL_LINK); /* L2 */
	RULE_QUAL(v->link_pointer != f->vmcs.v, FAIL_GUEST, QUAL_LINK);                            /* L3 */
	return PASS;
}

static bool pae_paging(const struct vmcs12 *v)
{
	return (v->guest_cr0 & CR0_PG) && (v->guest_cr4 & CR4_PAE) && !(v->entry_ctl & ENTRY_IA32E);
}

bool check_needs_pdptes(const struct vmcs12 *v12)
{
	return pae_paging(v12) && !(vmcs12_sec(v12) & SEC_EPT);
}

static bool pdpte_ok(u64 pdpte, const struct check_facts *f)
{
	return !(pdpte & PDPTE_PRESENT) || (!(pdpte & PDPTE_ZERO) && in_width(pdpte, f));
}

/* SDM "Checks on Guest Page-Directory-Pointer-Table Entries". */
static struct fail check_guest_pdptes(const struct vmcs12 *v, const struct check_facts *f)
{
	const u64 field[4] = {v->guest_pdpte0, v->guest_pdpte1, v->guest_pdpte2, v->guest_pdpte3};
	bool memory = check_needs_pdptes(v);

	if (!pae_paging(v))
		return PASS;
	RULE_QUAL(implies(memory, f->pdptes_readable), FAIL_GUEST, QUAL_PDPTE);
	for (unsigned i = 0; i < 4; i++) /* Q1, Q2 */
		RULE_QUAL(pdpte_ok(memory ? f->pdpte[i] : field[i], f), FAIL_GUEST, QUAL_PDPTE);
	return PASS;
}

struct fail check_guest(const struct vmcs12 *v12, const struct check_facts *f)
{
	RULES(check_guest_registers(v12, f));
	RULES(check_guest_msrs(v12, f));
	RULES(check_segments(v12, f));
	RULES(check_guest_rip(v12, f));
	RULES(check_guest_activity(v12, f));
	RULES(check_guest_debug(v12, f));
	RULES(check_guest_link(v12, f));
	RULES(check_guest_pdptes(v12, f));
	return PASS;
}
