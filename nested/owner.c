/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose is an exit of L2? Only answers, never acts. Reasons that no table names, and those the manual will
 * invent, are L1's: nothing is ever done "as if L1 had executed it" by default. Pre: VMCS02 is current. SDM
 * "Changes to Instruction Behavior in VMX Non-Root Operation".
 */
#include "nested/internal.h"

typedef enum owner owner_fn(const struct vmcs02 *e, const struct vcpu *v);

static enum owner l1_if(bool wants)
{
	return wants ? OWNER_L1 : OWNER_L0;
}

/* SDM "Exception Bitmap": a page fault exits when the bitmap's bit equals the match of its error code. */
static bool wants_page_fault(const struct vmcs12 *c, u32 error)
{
	bool match = (error & c->pf_mask) == c->pf_match;

	return match == !!(c->exception_bitmap & BIT32(VEC_PF));
}

bool l1_wants_exception(const struct vmcs02 *e, u8 vector, u32 error)
{
	if (vector == VEC_PF)
		return wants_page_fault(&e->v12, error);
	return e->v12.exception_bitmap >> (vector & 31) & 1;
}

/* An NMI is the host's; what it means for L1 the event gate decides. A machine check is L0's first. */
static enum owner own_exception(const struct vmcs02 *e, const struct vcpu *v)
{
	u32 info = vmcs_read32(VMCS_EXIT_INTR_INFO);

	(void)v;
	if (INTR_TYPE(info) == INTR_TYPE_NMI || INTR_VECTOR(info) == VEC_MC)
		return OWNER_L0;
	return l1_if(l1_wants_exception(e, INTR_VECTOR(info), vmcs_read32(VMCS_EXIT_ERROR_CODE)));
}

static enum owner own_always_l0(const struct vmcs02 *e, const struct vcpu *v)
{
	(void)e, (void)v;
	return OWNER_L0;
}

/* The first `count` targets. */
static bool is_cr3_target(const struct vmcs12 *c, u64 value)
{
	const u64 target[4] = {c->cr3_target0, c->cr3_target1, c->cr3_target2, c->cr3_target3};

	for (u32 i = 0; i < c->cr3_target_count && i < ARRAY_SIZE(target); i++)
		if (target[i] == value)
			return true;
	return false;
}

static bool wants_mov_to_cr(const struct vmcs02 *e, const struct vcpu *v, const struct cr_qual *q)
{
	const struct vmcs12 *c = &e->v12;
	u64 value = vcpu_reg(v, q->reg);

	if (!vcpu_64bit())
		value = (u32)value;
	switch (q->cr) {
	case 0:
		return (value ^ c->cr0_shadow) & c->cr0_mask;
	case 3:
		return c->proc_ctl & PROC_CR3_LOAD && !is_cr3_target(c, value);
	case 4:
		return (value ^ c->cr4_shadow) & c->cr4_mask;
	case 8:
		return c->proc_ctl & PROC_CR8_LOAD;
	default:
		return true;
	}
}

/* SDM "LMSW": bits 3:1 as for MOV; bit 0 can only be set. */
static bool wants_lmsw(const struct vmcs12 *c, u16 source)
{
	u64 differs = (source ^ c->cr0_shadow) & c->cr0_mask;

	return differs & 0xe || (differs & CR0_PE && source & CR0_PE);
}

static enum owner own_cr(const struct vmcs02 *e, const struct vcpu *v)
{
	struct cr_qual q = cr_qual_decode(vmcs_read_nw(VMCS_EXIT_QUAL));
	const struct vmcs12 *c = &e->v12;

	switch (q.access) {
	case CR_ACCESS_TO:
		return l1_if(wants_mov_to_cr(e, v, &q));
	case CR_ACCESS_FROM:
		return l1_if(c->proc_ctl & (q.cr == 8 ? PROC_CR8_STORE : PROC_CR3_STORE));
	case CR_ACCESS_CLTS:
		return l1_if(c->cr0_mask & CR0_TS && c->cr0_shadow & CR0_TS);
	default:
		return l1_if(wants_lmsw(c, q.lmsw));
	}
}

static enum owner own_io(const struct vmcs02 *e, const struct vcpu *v)
{
	u64 q = vmcs_read_nw(VMCS_EXIT_QUAL);

	return l1_if(l1_wants_io(v, e, (u16)(q >> 16), (unsigned)(q & 7) + 1));
}

static enum owner own_rdmsr(const struct vmcs02 *e, const struct vcpu *v)
{
	return l1_if(l1_wants_msr(v, e, (u32)v->regs[RCX], false));
}

static enum owner own_wrmsr(const struct vmcs02 *e, const struct vcpu *v)
{
	return l1_if(l1_wants_msr(v, e, (u32)v->regs[RCX], true));
}

static enum owner own_vmread(const struct vmcs02 *e, const struct vcpu *v)
{
	return l1_if(l1_wants_field(v, e, false));
}

static enum owner own_vmwrite(const struct vmcs02 *e, const struct vcpu *v)
{
	return l1_if(l1_wants_field(v, e, true));
}

/* SDM "VM Functions": one that L1 enabled does not exit. */
static enum owner own_vmfunc(const struct vmcs02 *e, const struct vcpu *v)
{
	u32 function = (u32)v->regs[RAX];

	return l1_if(function >= 64 || !(e->v12.vmfunc_ctl & BIT(function)));
}

static enum owner own_timer(const struct vmcs02 *e, const struct vcpu *v)
{
	(void)e;
	return l1_if(!v->nested->immediate_exit && timer_expired(v));
}

/* Reasons that need a look at more than a control bit. An EPT exit is L0's until the walk of EPT12 says
 * otherwise. */
static owner_fn *const owner_table[EXIT_REASONS] = {
	[EXIT_EXCEPTION_NMI] = own_exception,
	[EXIT_EXT_INTR] = own_always_l0,
	[EXIT_INIT] = own_always_l0, /* a real one; L1's virtual INIT comes from the event gate */
	[EXIT_SIPI] = own_always_l0,
	[EXIT_VMREAD] = own_vmread,
	[EXIT_VMWRITE] = own_vmwrite,
	[EXIT_CR_ACCESS] = own_cr,
	[EXIT_IO] = own_io,
	[EXIT_RDMSR] = own_rdmsr,
	[EXIT_WRMSR] = own_wrmsr,
	[EXIT_MCE_DURING_ENTRY] = own_always_l0,
	[EXIT_EPT_VIOLATION] = own_always_l0,
	[EXIT_EPT_MISCONFIG] = own_always_l0,
	[EXIT_TIMER] = own_timer,
	[EXIT_VMFUNC] = own_vmfunc,
};

/* Reasons that exist only because of one control: L1's when L1 set it. All others are L1's always. */
static const struct {
	u16 reason;
	enum { WORD_PROC, WORD_SEC } word;
	u32 bit;
} by_control[] = {
	/* clang-format off */
	{ EXIT_INTR_WINDOW,	  WORD_PROC, PROC_INTR_WINDOW },
	{ EXIT_NMI_WINDOW,	  WORD_PROC, PROC_NMI_WINDOW },
	{ EXIT_HLT,		  WORD_PROC, PROC_HLT },
	{ EXIT_INVLPG,		  WORD_PROC, PROC_INVLPG },
	{ EXIT_RDPMC,		  WORD_PROC, PROC_RDPMC },
	{ EXIT_RDTSC,		  WORD_PROC, PROC_RDTSC },
	{ EXIT_MOV_DR,		  WORD_PROC, PROC_MOV_DR },
	{ EXIT_MWAIT,		  WORD_PROC, PROC_MWAIT },
	{ EXIT_MONITOR,		  WORD_PROC, PROC_MONITOR },
	{ EXIT_RDTSCP,		  WORD_PROC, PROC_RDTSC },
	{ EXIT_INVPCID,		  WORD_PROC, PROC_INVLPG },
	{ EXIT_GDTR_IDTR,	  WORD_SEC,  SEC_DESC_TABLE },
	{ EXIT_LDTR_TR,		  WORD_SEC,  SEC_DESC_TABLE },
	{ EXIT_WBINVD,		  WORD_SEC,  SEC_WBINVD },
	{ EXIT_RDRAND,		  WORD_SEC,  SEC_RDRAND },
	{ EXIT_RDSEED,		  WORD_SEC,  SEC_RDSEED },
	/* clang-format on */
};

void owner_plan(struct vmcs02 *e)
{
	e->to_l1[0] = e->to_l1[1] = ~0ull;
	for (size_t i = 0; i < EXIT_REASONS; i++)
		if (owner_table[i])
			e->to_l1[i / 64] &= ~BIT(i % 64);
	for (size_t i = 0; i < ARRAY_SIZE(by_control); i++) {
		u32 word = by_control[i].word == WORD_PROC ? e->v12.proc_ctl : vmcs12_sec(&e->v12);

		if (!(word & by_control[i].bit))
			e->to_l1[by_control[i].reason / 64] &= ~BIT(by_control[i].reason % 64);
	}
}

enum owner exit_owner(struct vcpu *v, u16 reason)
{
	const struct vmcs02 *e = v->nested->current;

	if (reason >= EXIT_REASONS || e->to_l1[reason / 64] >> (reason % 64) & 1)
		return OWNER_L1;
	return owner_table[reason] ? owner_table[reason](e, v) : OWNER_L0;
}
