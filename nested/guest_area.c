/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest-state area between VMCS12 and VMCS02. Fields that go over as they are come from one table made of
 * the field list; the few that L0 has a part in (control registers, EFER, PAT, debug controls, PDPTEs) are
 * done by hand. Pre, everywhere: VMCS02 is current.
 */
#include "nested/internal.h"

/* A group that L1 looked at is saved at once for this many exits. */
#define EAGER_EXITS 64

struct area_field {
	u16 encoding, offset;
	u8 width;
};

/* Guest fields that are copied, by group; filled once from the field list. Group g is area[group_at[g]] to
 * area[group_at[g + 1]]. */
static struct area_field area[80];
static unsigned area_count, group_at[GROUPS + 1];

/* Not copied: see load_special and save_special; or not offered to L1 (CET, MPX), or what hardware does
 * not hold for L1 (PMU's control, PML's index), or always L0's (link pointer, activity). */
static inline bool is_special(u32 enc)
{
	switch (enc) {
	case VMCS_GUEST_INTR_STATUS:
	case VMCS_PML_INDEX:
	case VMCS_LINK_POINTER ... VMCS_GUEST_BNDCFGS:
	case VMCS_GUEST_ACTIVITY:
	case VMCS_GUEST_SMBASE:
	case VMCS_PREEMPT_TIMER:
	case VMCS_GUEST_CR0:
	case VMCS_GUEST_CR4:
	case VMCS_GUEST_DR7:
	case VMCS_GUEST_S_CET ... VMCS_GUEST_SSP_TABLE:
		return true;
	default:
		return false;
	}
}

static void add_field(u32 enc, unsigned group)
{
	struct vmcs12_field f;

	if (VMCS_ENC_TYPE(enc) != VMCS_TYPE_GUEST || is_special(enc))
		return;
	BUG_ON(!vmcs12_lookup(enc, &f) || area_count == ARRAY_SIZE(area));
	if (f.group == group)
		area[area_count++] = (struct area_field){(u16)enc, f.offset, f.width};
}

void guest_area_init(void)
{
	if (area_count)
		return;
	for (unsigned g = 0; g < GROUPS; g++) {
		group_at[g] = area_count;
#define X(width, name, enc, member, cap) add_field(enc, g);
		VMCS_FIELDS(X)
#undef X
	}
	group_at[GROUPS] = area_count;
}

static u64 field_get(const struct vmcs12 *v12, const struct area_field *f)
{
	const char *at = (const char *)v12 + f->offset;

	if (f->width == WIDTH_16)
		return *(const u16 *)(const void *)at;
	return f->width == WIDTH_32 ? *(const u32 *)(const void *)at : *(const u64 *)(const void *)at;
}

/* L2 uses PAE paging: then the PDPTEs are guest state of their own. */
static bool pae_paging(u64 cr0, u64 cr4, u64 efer)
{
	return cr0 & CR0_PG && cr4 & CR4_PAE && !(efer & EFER_LMA);
}

static void load_pdptes(struct vcpu *v, const struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;
	const u64 own[4] = {c->guest_pdpte0, c->guest_pdpte1, c->guest_pdpte2, c->guest_pdpte3};
	const u64 *from = v12_sec(e, SEC_EPT) ? own : v->nested->facts.pdpte;

	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		vmcs_write_raw(VMCS_GUEST_PDPTE0 + 2 * i, from[i]);
}

static void load_registers(struct vcpu *v, const struct vmcs02 *e)
{
	const struct merged *m = &e->m;

	vmcs_write_nw(VMCS_GUEST_CR0, m->cr0);
	vmcs_write_nw(VMCS_GUEST_CR4, m->cr4);
	vmcs_write64(VMCS_GUEST_EFER, m->efer);
	vmcs_write64(VMCS_GUEST_PAT, m->pat);
	vmcs_write64(VMCS_GUEST_DEBUGCTL, m->debugctl);
	vmcs_write_nw(VMCS_GUEST_DR7, m->dr7);
	if (pae_paging(m->cr0, m->cr4, m->efer))
		load_pdptes(v, e);
}

static void load_group(const struct vmcs12 *c, unsigned group)
{
	for (unsigned i = group_at[group]; i < group_at[group + 1]; i++)
		vmcs_write_raw(area[i].encoding, field_get(c, &area[i]));
}

static void load_groups(const struct vmcs02 *e, u32 dirty)
{
	for (unsigned g = GROUP_CRDR; g <= GROUP_OTHER; g++)
		if (dirty & BIT32(g))
			load_group(&e->v12, g);
	if (e->m.sec & SEC_VID)
		vmcs_write16(VMCS_GUEST_INTR_STATUS, e->v12.guest_intr_status);
}

void guest_area_load(struct vcpu *v, struct vmcs02 *e)
{
	load_groups(e, e->dirty);
	load_registers(v, e);
	e->rare_due = true;
}

/* VMCS02 holds the registers that the last exit saved and this entry loads; of others L2 may have changed it.
 */
void guest_area_reload(struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;
	u32 kept = c->exit_ctl, loaded = c->entry_ctl;

	if (e->dirty & BIT32(GROUP_LIVE))
		vmcs_write_sure(VMCS_GUEST_RIP, c->guest_rip);
	if (e->dirty & BIT32(GROUP_GUEST_BASIC)) {
		vmcs_write_sure(VMCS_GUEST_RSP, c->guest_rsp);
		vmcs_write_sure(VMCS_GUEST_RFLAGS, c->guest_rflags);
		vmcs_write_sure(VMCS_GUEST_INTR_STATE, c->guest_intr_state);
	}
	if (e->m.sec & SEC_VID)
		vmcs_write16(VMCS_GUEST_INTR_STATUS, c->guest_intr_status);
	if (!(kept & EXIT_SAVE_EFER && loaded & ENTRY_LOAD_EFER))
		vmcs_write64(VMCS_GUEST_EFER, e->m.efer);
	if (unlikely(e->pat_written)) {
		if (!(kept & EXIT_SAVE_PAT && loaded & ENTRY_LOAD_PAT))
			vmcs_write64(VMCS_GUEST_PAT, e->m.pat);
		e->pat_written = false;
		e->rare_due = true;
	}
	if (!(kept & EXIT_SAVE_DEBUG && loaded & ENTRY_LOAD_DEBUG)) {
		vmcs_write64(VMCS_GUEST_DEBUGCTL, e->m.debugctl);
		vmcs_write_nw(VMCS_GUEST_DR7, e->m.dr7);
		e->rare_due |= e->m.debugctl != 0;
	}
}

static void save_pdptes(struct vmcs02 *e)
{
	e->v12.guest_pdpte0 = vmcs_read64(VMCS_GUEST_PDPTE0);
	e->v12.guest_pdpte1 = vmcs_read64(VMCS_GUEST_PDPTE1);
	e->v12.guest_pdpte2 = vmcs_read64(VMCS_GUEST_PDPTE2);
	e->v12.guest_pdpte3 = vmcs_read64(VMCS_GUEST_PDPTE3);
}

void guest_area_plan(struct vcpu *v, struct vmcs02 *e)
{
	const struct l0_needs *l0 = &v->nested->needs;

	e->cr0_saved = (struct saved_cr){~l0->cr0_mask, merge_saved_cr0(&e->v12, l0, 0, e->m.cr0_shadow)};
	e->cr4_saved = (struct saved_cr){~l0->cr4_mask, merge_saved_cr4(&e->v12, l0, 0, e->m.cr4_shadow)};
}

static u64 saved_cr(const struct saved_cr *s, u64 hw)
{
	return (hw & s->free) | s->rest;
}

/* SDM "Saving Control Registers, Debug Registers, and MSRs". */
static void save_crdr(struct vmcs02 *e)
{
	struct vmcs12 *c = &e->v12;

	c->guest_cr0 = saved_cr(&e->cr0_saved, vmcs_read_nw(VMCS_GUEST_CR0));
	c->guest_cr4 = saved_cr(&e->cr4_saved, vmcs_read_nw(VMCS_GUEST_CR4));
	if (c->exit_ctl & EXIT_SAVE_DEBUG)
		c->guest_dr7 = vmcs_read_nw(VMCS_GUEST_DR7);
}

static void save_msrs(struct vmcs02 *e)
{
	struct vmcs12 *c = &e->v12;
	u64 efer = vmcs_read64(VMCS_GUEST_EFER);

	if (c->exit_ctl & EXIT_SAVE_DEBUG)
		c->guest_debugctl = vmcs_read64(VMCS_GUEST_DEBUGCTL);
	if (c->exit_ctl & EXIT_SAVE_PAT)
		c->guest_pat = vmcs_read64(VMCS_GUEST_PAT);
	if (c->exit_ctl & EXIT_SAVE_EFER)
		c->guest_efer = efer;
	if (v12_sec(e, SEC_EPT) &&
	    pae_paging(vmcs_read_nw(VMCS_GUEST_CR0), vmcs_read_nw(VMCS_GUEST_CR4), efer))
		save_pdptes(e);
}

/* `group` is a constant at each use: what remains is the group's VMREADs and stores, one after the other. */
static inline __attribute__((always_inline)) void save_group(struct vmcs12 *c, enum vmcs12_group group)
{
#define X(width, name, enc, member, cap)                                                                     \
	if (VMCS_ENC_TYPE(enc) == VMCS_TYPE_GUEST && VMCS12_GROUP(enc) == group && !is_special(enc))         \
		c->member = (vmcs12_##width)vmcs_read_sure(enc);
	VMCS_FIELDS(X)
#undef X
}

void guest_area_sync(struct vmcs02 *e, u32 groups)
{
	groups &= e->stale;
	e->stale &= ~groups;
	if (groups & BIT32(GROUP_GUEST_GRP2))
		save_group(&e->v12, GROUP_GUEST_GRP2);
	if (groups & BIT32(GROUP_CRDR)) {
		save_group(&e->v12, GROUP_CRDR);
		save_crdr(e);
	}
	if (groups & BIT32(GROUP_GUEST_GRP1)) {
		save_group(&e->v12, GROUP_GUEST_GRP1);
		save_msrs(e);
	}
}

void guest_area_fetch(struct vcpu *v, struct vmcs02 *e, u32 groups)
{
	if (likely(!(e->stale & groups)))
		return;
	e->eager |= groups & LAZY_GROUPS;
	vmcs_load(&e->hw);
	guest_area_sync(e, groups);
	vmcs_load(v->vmcs);
}

/* VMX_MISC bit 5: the control follows the mode L2 was in. */
static void save_mode(struct vmcs02 *e)
{
	u32 ctl = (e->v12.entry_ctl & ~ENTRY_IA32E) |
		  (vmcs_read64(VMCS_GUEST_EFER) & EFER_LMA ? ENTRY_IA32E : 0);

	if (ctl != e->v12.entry_ctl)
		e->dirty |= BIT32(GROUP_CONTROL_ENTRY);
	e->v12.entry_ctl = ctl;
}

void guest_area_save(struct vcpu *v, struct vmcs02 *e)
{
	struct vmcs12 *c = &e->v12;

	c->guest_rip = e->exit_rip = vmcs_read_nw(VMCS_GUEST_RIP);
	c->guest_rsp = vmcs_read_nw(VMCS_GUEST_RSP);
	c->guest_rflags = vmcs_read_nw(VMCS_GUEST_RFLAGS);
	/* There is no SMM: the bit an SMI would set must not show. */
	c->guest_intr_state = vmcs_read32(VMCS_GUEST_INTR_STATE) & ~INTR_STATE_SMI;
	c->guest_activity = v->nested->activity;
	if (e->m.sec & SEC_VID)
		c->guest_intr_status = vmcs_read16(VMCS_GUEST_INTR_STATUS);
	save_mode(e);
	e->stale = LAZY_GROUPS;
	if (++e->exits % EAGER_EXITS == 0)
		e->eager = 0;
	if (e->eager)
		guest_area_sync(e, e->eager);
}
