/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exit of L2 becomes an exit to L1: guest area and exit information into VMCS12, MSR lists, L1's host
 * state into VMCS01. SDM chapter "VM Exits"; section titles stand at each step. Must not decide whose an exit
 * is.
 */
#include "hv/lib.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* SDM "VMX Aborts". */
enum abort { ABORT_SAVE_MSRS = 1, ABORT_HOST_PDPTES = 2, ABORT_LOAD_MSRS = 4 };

/* SDM "Loading Host Segment and Descriptor-Table Registers": access rights. */
#define AR_CODE64      0xa09bu
#define AR_CODE32      0xc09bu
#define AR_DATA        0xc093u
#define AR_TR          0x008bu
#define TR_LIMIT       0x67u
#define CR0_NOT_LOADED (CR0_CD | CR0_NW | CR0_ET)
#define DR7_RESET      0x400u

/* What an exit leaves in registers that VMCS12 may not load. */
struct left_over {
	u64 efer, pat, cr0;
	bool nmi_blocked;
};

/* --- exit information --- */

static bool has_linear(u32 reason)
{
	return reason == EXIT_EPT_VIOLATION || reason == EXIT_IO || reason == EXIT_CR_ACCESS;
}

static bool has_phys(u32 reason)
{
	return reason == EXIT_EPT_VIOLATION || reason == EXIT_EPT_MISCONFIG;
}

void l2_exit_read(struct l2_exit *x, u32 reason)
{
	*x = (struct l2_exit){.reason = reason, .from_hardware = true};
	x->qual = vmcs_read_nw(VMCS_EXIT_QUAL);
	x->intr.info = vmcs_read32(VMCS_EXIT_INTR_INFO);
	if (x->intr.info & INTR_ERROR_CODE)
		x->intr.error = vmcs_read32(VMCS_EXIT_ERROR_CODE);
	x->idt.info = vmcs_read32(VMCS_IDT_VECT_INFO);
	if (x->idt.info & INTR_ERROR_CODE)
		x->idt.error = vmcs_read32(VMCS_IDT_VECT_ERROR);
	x->insn_len = vmcs_read32(VMCS_EXIT_INSN_LEN);
	x->insn_info = vmcs_read32(VMCS_EXIT_INSN_INFO);
	if (has_linear(reason))
		x->linear = vmcs_read_nw(VMCS_GUEST_LINEAR);
	if (has_phys(reason))
		x->phys = vmcs_read64(VMCS_GUEST_PHYS);
}

static void store_exit_info(struct vmcs12 *c, const struct l2_exit *x)
{
	c->exit_reason = x->reason;
	c->exit_qual = x->qual;
	c->exit_intr_info = x->intr.info;
	c->idt_vect_info = x->idt.info;
	if (x->intr.info & INTR_VALID && x->intr.info & INTR_ERROR_CODE)
		c->exit_error_code = x->intr.error;
	if (x->idt.info & INTR_VALID && x->idt.info & INTR_ERROR_CODE)
		c->idt_vect_error = x->idt.error;
	/* SDM "Basic VM-Exit Information": an exit clears the valid bit. */
	c->entry_intr_info &= ~INTR_VALID;
	if (!x->from_hardware)
		return;
	c->exit_insn_len = x->insn_len;
	c->exit_insn_info = x->insn_info;
	if (has_linear(x->reason))
		c->guest_linear = x->linear;
	if (has_phys(x->reason))
		c->guest_phys = x->phys;
}

/* --- L1's host state. Pre, from here on: VMCS01 is current. --- */

static void load_segment(unsigned seg, u16 sel, u64 base, u32 ar)
{
	vmcs_write_raw(VMCS_GUEST_ES_SEL + 2 * seg, sel);
	vmcs_write_raw(VMCS_GUEST_ES_BASE + 2 * seg, base);
	vmcs_write_raw(VMCS_GUEST_ES_LIMIT + 2 * seg, 0xffffffff);
	vmcs_write_raw(VMCS_GUEST_ES_AR + 2 * seg, sel ? ar : ar | AR_UNUSABLE);
}

/* SDM "Loading Host Segment and Descriptor-Table Registers". */
static void load_segments(const struct vmcs12 *c)
{
	load_segment(0, c->host_es_sel, 0, AR_DATA);
	load_segment(1, c->host_cs_sel, 0, c->exit_ctl & EXIT_HOST_64 ? AR_CODE64 : AR_CODE32);
	load_segment(2, c->host_ss_sel, 0, AR_DATA);
	load_segment(3, c->host_ds_sel, 0, AR_DATA);
	load_segment(4, c->host_fs_sel, c->host_fs_base, AR_DATA);
	load_segment(5, c->host_gs_sel, c->host_gs_base, AR_DATA);
	vmcs_write16(VMCS_GUEST_TR_SEL, c->host_tr_sel);
	vmcs_write_nw(VMCS_GUEST_TR_BASE, c->host_tr_base);
	vmcs_write32(VMCS_GUEST_TR_LIMIT, TR_LIMIT);
	vmcs_write32(VMCS_GUEST_TR_AR, AR_TR);
	vmcs_write16(VMCS_GUEST_LDTR_SEL, 0);
	vmcs_write_nw(VMCS_GUEST_LDTR_BASE, 0);
	vmcs_write32(VMCS_GUEST_LDTR_LIMIT, 0xffff);
	vmcs_write32(VMCS_GUEST_LDTR_AR, AR_UNUSABLE);
	vmcs_write_nw(VMCS_GUEST_GDTR_BASE, c->host_gdtr_base);
	vmcs_write32(VMCS_GUEST_GDTR_LIMIT, 0xffff);
	vmcs_write_nw(VMCS_GUEST_IDTR_BASE, c->host_idtr_base);
	vmcs_write32(VMCS_GUEST_IDTR_LIMIT, 0xffff);
}

static u64 host_efer(const struct vmcs12 *c, const struct left_over *left)
{
	const u64 mode = EFER_LMA | EFER_LME;

	if (c->exit_ctl & EXIT_LOAD_EFER)
		return c->host_efer;
	return (left->efer & ~mode) | (c->exit_ctl & EXIT_HOST_64 ? mode : 0);
}

/* SDM "Loading Host Control Registers, Debug Registers, MSRs". */
static void load_registers(struct vcpu *v, const struct vmcs12 *c, const struct left_over *left)
{
	u64 cr4 = c->host_cr4;

	if (c->exit_ctl & EXIT_HOST_64)
		cr4 |= CR4_PAE;
	else
		cr4 &= ~CR4_PCIDE;
	vcpu_load_efer(v, host_efer(c, left));
	vcpu_load_cr0(v, (c->host_cr0 & ~CR0_NOT_LOADED) | (left->cr0 & CR0_NOT_LOADED));
	vcpu_load_cr4(v, cr4);
	vmcs_write_nw(VMCS_GUEST_CR3, c->host_cr3);
	vmcs_write_nw(VMCS_GUEST_DR7, DR7_RESET);
	vmcs_write64(VMCS_GUEST_DEBUGCTL, 0);
	vmcs_write32(VMCS_GUEST_SYSENTER_CS, c->host_sysenter_cs);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_ESP, c->host_sysenter_esp);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_EIP, c->host_sysenter_eip);
	vmcs_write64(VMCS_GUEST_PAT, c->exit_ctl & EXIT_LOAD_PAT ? c->host_pat : left->pat);
}

/* SDM "Loading Host RIP, RSP, and RFLAGS", "Updating Non-Register State". */
static void load_non_register(const struct vmcs12 *c, const struct left_over *left)
{
	vmcs_write_nw(VMCS_GUEST_RIP, c->host_rip);
	vmcs_write_nw(VMCS_GUEST_RSP, c->host_rsp);
	vmcs_write_nw(VMCS_GUEST_RFLAGS, RFLAGS_FIXED);
	vmcs_write32(VMCS_GUEST_INTR_STATE, left->nmi_blocked ? INTR_STATE_NMI : 0);
	vmcs_write_nw(VMCS_GUEST_PENDING_DBG, 0);
}

/* SDM "Checking and Loading Host Page-Directory-Pointer-Table Entries". */
static bool load_pdptes(struct vcpu *v, const struct vmcs12 *c)
{
	u64 pdpte[4], reserved = 0x1e6 | ~MASK(v->nested->facts.phys_bits);

	if (c->exit_ctl & EXIT_HOST_64 || !(c->host_cr4 & CR4_PAE))
		return true;
	if (!guest_read(&v->guest->mem, GPA(c->host_cr3 & 0xffffffe0), pdpte, sizeof(pdpte)))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(pdpte); i++) {
		if (pdpte[i] & 1 && pdpte[i] & reserved)
			return false;
		vmcs_write_raw(VMCS_GUEST_PDPTE0 + 2 * i, pdpte[i]);
	}
	return true;
}

/* A real processor shuts down; L1's end is that of a triple fault. */
static void vmx_abort(struct vcpu *v, enum abort code)
{
	vmcs02_write_abort(v, v->nested->current, code);
	guest_end(v->guest, "triple-fault");
}

static void load_host(struct vcpu *v, const struct left_over *left)
{
	const struct vmcs12 *c = &v->nested->current->v12;

	load_segments(c);
	load_registers(v, c, left);
	load_non_register(c, left);
	/* SDM "VMX Transitions and TLBs": without VPIDs an exit leaves no translation of L1's. */
	if (!(vmcs12_sec(c) & SEC_VPID))
		invvpid_single(v->vpid);
	if (!load_pdptes(v, c))
		vmx_abort(v, ABORT_HOST_PDPTES);
	if (msr_area_load(v, c->exit_msr_load_addr, c->exit_msr_load_count, msr_write))
		vmx_abort(v, ABORT_LOAD_MSRS);
}

/* --- the way back --- */

/* CR0: CD, NW and ET only, which hardware does not hold for L2; they are where L2 or L1 wrote them. */
static struct left_over left_by_l2(const struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;

	return (struct left_over){
		.efer = c->exit_ctl & EXIT_LOAD_EFER ? 0 : vmcs_read64(VMCS_GUEST_EFER),
		.pat = c->exit_ctl & EXIT_LOAD_PAT ? 0 : vmcs_read64(VMCS_GUEST_PAT),
		.cr0 = (c->guest_cr0 & c->cr0_mask) | (e->m.cr0_shadow & ~c->cr0_mask) | CR0_ET,
		.nmi_blocked = !v12_pin(e, PIN_VNMI) && vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_NMI,
	};
}

/* Nothing of what was under way for L2 may reach L1 or the next L2. Pre: VMCS02 is current. */
static void drop_l2_events(struct vcpu *v)
{
	struct nested *n = v->nested;

	v->inject.info = 0;
	__atomic_fetch_and(&v->pending, ~(u32)(PEND_INJECT | PEND_NESTED), __ATOMIC_SEQ_CST);
	if (n->event_in_entry)
		vmcs_write32(VMCS_ENTRY_INTR_INFO, 0);
	n->event_in_entry = n->immediate_exit = n->fault_raised = false;
	n->queued.reason = 0;
	timer_stop(v);
}

/* VMCS01 current, L1's gate sees what came in meanwhile. Pre: VMCS02 is current. */
static void switch_to_l1(struct vcpu *v)
{
	struct nested *n = v->nested;
	/* hv/event counts NMIs in nmi_waiting; the request only makes it look. */
	u32 look = n->l1_pending | (n->nmi ? PEND_NMI : 0) | (n->init ? PEND_INIT : 0);

	drop_l2_events(v);
	if (n->current->root)
		sept_leave(n->current->root, v->index);
	v->nmi_waiting = n->nmi;
	n->nmi = n->init = n->sipi = false;
	n->l1_pending = 0;
	n->activity = ACTIVITY_ACTIVE;
	v->state = VCPU_RUN;
	if (n->current->shadow.live)
		shadow_publish(n->current);
	nested_switch(v, &v->vmcs01, &level_l1);
	vmcs_write64(VMCS_TSC_OFFSET, v->tsc_offset);
	__atomic_fetch_or(&v->pending, look, __ATOMIC_SEQ_CST);
}

enum exit_action reflect(struct vcpu *v, const struct l2_exit *x)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;
	struct left_over left = left_by_l2(e);
	bool stored;

	if (e->v12.exit_ctl & EXIT_SAVE_TIMER)
		e->v12.preempt_timer = x->reason == EXIT_TIMER ? 0 : timer_left(v);
	guest_area_save(v, e);
	store_exit_info(&e->v12, x);
	if (x->reason == EXIT_EXCEPTION_NMI && INTR_TYPE(x->intr.info) == INTR_TYPE_NMI)
		left.nmi_blocked = true;
	stored = msr_area_store(v, e->v12.exit_msr_store_addr, e->v12.exit_msr_store_count);
	switch_to_l1(v);
	if (stored)
		load_host(v, &left);
	else
		vmx_abort(v, ABORT_SAVE_MSRS);
	return RESUME;
}

enum exit_action reflect_simple(struct vcpu *v, u32 reason, u64 qual)
{
	return reflect(v, &(struct l2_exit){.reason = reason, .qual = qual});
}

/* SDM "VM-Entry Failures During or After Loading Guest State": only reason and qualification change, the
 * guest area is not saved. */
enum exit_action reflect_failed_entry(struct vcpu *v, u32 reason, u64 qual)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;
	struct left_over left = {
		.efer = vmcs_read64(VMCS_GUEST_EFER),
		.pat = vmcs_read64(VMCS_GUEST_PAT),
		.cr0 = vcpu_cr0(),
		.nmi_blocked = vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_NMI,
	};

	e->v12.exit_reason = reason | EXIT_REASON_FAILED_ENTRY;
	e->v12.exit_qual = qual;
	if (v->level != &level_l1) {
		left = left_by_l2(e);
		guest_area_sync(v, e, e->stale); /* VMCS02 still has what this entry loaded */
		e->launched = n->was_launched;
		e->dirty = GROUPS_ALL; /* the MSR list changed VMCS02, not VMCS12 */
		switch_to_l1(v);
	} else if (e->shadow.live) {
		shadow_publish(e);
		vmcs_load(v->vmcs);
	}
	load_host(v, &left);
	return RESUME;
}
