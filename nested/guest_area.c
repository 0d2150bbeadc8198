/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest-state area between VMCS12 and VMCS02. Fields that go over as they are come from one table made of
 * the field list; the few that L0 has a part in (control registers, EFER, PAT, debug controls, PDPTEs) are
 * done by hand. Pre, everywhere: VMCS02 is current.
 */
#include "nested/internal.h"

#define ENC_TYPE(enc) ((enc) >> 10 & 3)
#define TYPE_GUEST    2

struct area_field {
	u16 encoding, offset;
	u8 width, group;
};

/* Guest fields that are copied; filled once from the field list. */
static struct area_field area[80];
static unsigned area_count;

/* Not copied: see load_special and save_special; or not offered to L1 (CET, MPX, PMU, PML), or always L0's
 * (link pointer, activity). */
static bool is_special(u32 enc)
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

static void add_field(u32 enc)
{
	struct vmcs12_field f;

	if (ENC_TYPE(enc) != TYPE_GUEST || is_special(enc))
		return;
	BUG_ON(!vmcs12_lookup(enc, &f) || area_count == ARRAY_SIZE(area));
	area[area_count++] = (struct area_field){(u16)enc, f.offset, f.width, f.group};
}

void guest_area_init(void)
{
	if (area_count)
		return;
#define X(width, name, enc, member, cap) add_field(enc);
	VMCS_FIELDS(X)
#undef X
}

static u64 field_get(const struct vmcs12 *v12, const struct area_field *f)
{
	const char *at = (const char *)v12 + f->offset;

	if (f->width == WIDTH_16)
		return *(const u16 *)(const void *)at;
	return f->width == WIDTH_32 ? *(const u32 *)(const void *)at : *(const u64 *)(const void *)at;
}

static void field_set(struct vmcs12 *v12, const struct area_field *f, u64 value)
{
	void *at = (char *)v12 + f->offset;

	if (f->width == WIDTH_16)
		*(u16 *)at = (u16)value;
	else if (f->width == WIDTH_32)
		*(u32 *)at = (u32)value;
	else
		*(u64 *)at = value;
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

static void load_special(struct vcpu *v, const struct vmcs02 *e)
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
	if (m->sec & SEC_VID)
		vmcs_write16(VMCS_GUEST_INTR_STATUS, e->v12.guest_intr_status);
}

void guest_area_load(struct vcpu *v, struct vmcs02 *e, u32 dirty)
{
	for (unsigned i = 0; i < area_count; i++)
		if (dirty & BIT32(area[i].group))
			vmcs_write_raw(area[i].encoding, field_get(&e->v12, &area[i]));
	load_special(v, e);
}

static void save_pdptes(struct vmcs02 *e)
{
	e->v12.guest_pdpte0 = vmcs_read64(VMCS_GUEST_PDPTE0);
	e->v12.guest_pdpte1 = vmcs_read64(VMCS_GUEST_PDPTE1);
	e->v12.guest_pdpte2 = vmcs_read64(VMCS_GUEST_PDPTE2);
	e->v12.guest_pdpte3 = vmcs_read64(VMCS_GUEST_PDPTE3);
}

/* SDM "Saving Control Registers, Debug Registers, and MSRs". */
static void save_special(struct vcpu *v, struct vmcs02 *e)
{
	const struct l0_needs *l0 = &v->nested->needs;
	u64 hw_cr0 = vmcs_read_nw(VMCS_GUEST_CR0), hw_cr4 = vmcs_read_nw(VMCS_GUEST_CR4);
	u64 efer = vmcs_read64(VMCS_GUEST_EFER);
	u32 exit_ctl = e->v12.exit_ctl;

	e->v12.guest_cr0 = merge_saved_cr0(&e->v12, l0, hw_cr0, e->m.cr0_shadow);
	e->v12.guest_cr4 = merge_saved_cr4(&e->v12, l0, hw_cr4, e->m.cr4_shadow);
	if (exit_ctl & EXIT_SAVE_DEBUG) {
		e->v12.guest_dr7 = vmcs_read_nw(VMCS_GUEST_DR7);
		e->v12.guest_debugctl = vmcs_read64(VMCS_GUEST_DEBUGCTL);
	}
	if (exit_ctl & EXIT_SAVE_PAT)
		e->v12.guest_pat = vmcs_read64(VMCS_GUEST_PAT);
	if (exit_ctl & EXIT_SAVE_EFER)
		e->v12.guest_efer = efer;
	/* VMX_MISC bit 5: the control follows the mode L2 was in. */
	e->v12.entry_ctl = (e->v12.entry_ctl & ~ENTRY_IA32E) | (efer & EFER_LMA ? ENTRY_IA32E : 0);
	if (v12_sec(e, SEC_EPT) && pae_paging(hw_cr0, hw_cr4, efer))
		save_pdptes(e);
	if (e->m.sec & SEC_VID)
		e->v12.guest_intr_status = vmcs_read16(VMCS_GUEST_INTR_STATUS);
}

void guest_area_save(struct vcpu *v, struct vmcs02 *e)
{
	for (unsigned i = 0; i < area_count; i++)
		field_set(&e->v12, &area[i], vmcs_read_raw(area[i].encoding));
	save_special(v, e);
	/* There is no SMM: the bit an SMI would set must not show. */
	e->v12.guest_intr_state &= ~INTR_STATE_SMI;
	e->v12.guest_activity = v->nested->activity;
}
