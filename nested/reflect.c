/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exit of L2 becomes an exit to L1: guest area and exit information into VMCS12, MSR lists, L1's host
 * state into VMCS01. SDM chapter "VM Exits"; section titles stand at each step. Must not decide whose an exit
 * is.
 */
#include "hv/lib.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "nested/exit_info.h"
#include "nested/internal.h"
#include "nested/sept_root.h"

/* --- exit information --- */

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
	if (exit_has_linear(reason))
		x->linear = vmcs_read_nw(VMCS_GUEST_LINEAR);
	if (exit_has_phys(reason))
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
	if (exit_has_linear(x->reason))
		c->guest_linear = x->linear;
	if (exit_has_phys(x->reason))
		c->guest_phys = x->phys;
}

/* Both at once. Fields that this exit leaves undefined are not touched. */
static void read_more_info(struct vmcs12 *c, u32 reason)
{
	c->exit_qual = vmcs_read_sure(VMCS_EXIT_QUAL);
	c->exit_intr_info = (u32)vmcs_read_sure(VMCS_EXIT_INTR_INFO);
	c->idt_vect_info = (u32)vmcs_read_sure(VMCS_IDT_VECT_INFO);
	c->exit_insn_info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	if (c->exit_intr_info & INTR_VALID && c->exit_intr_info & INTR_ERROR_CODE)
		c->exit_error_code = vmcs_read32(VMCS_EXIT_ERROR_CODE);
	if (c->idt_vect_info & INTR_VALID && c->idt_vect_info & INTR_ERROR_CODE)
		c->idt_vect_error = vmcs_read32(VMCS_IDT_VECT_ERROR);
	if (exit_has_linear(reason))
		c->guest_linear = vmcs_read_nw(VMCS_GUEST_LINEAR);
	if (exit_has_phys(reason))
		c->guest_phys = vmcs_read64(VMCS_GUEST_PHYS);
}

static void read_exit_info(struct vmcs12 *c, u32 reason)
{
	c->exit_reason = reason;
	c->exit_insn_len = (u32)vmcs_read_sure(VMCS_EXIT_INSN_LEN);
	/* SDM "Basic VM-Exit Information": an exit clears the valid bit. */
	c->entry_intr_info &= ~INTR_VALID;
	c->exit_qual = 0;
	c->exit_intr_info = c->idt_vect_info = 0;
	if (unlikely(!exit_is_simple(reason)))
		read_more_info(c, reason);
}

/* --- the way back --- */

/* CR0: CD, NW and ET only, which hardware does not hold for L2; they are where L2 or L1 wrote them. */
static struct left_over left_by_l2(const struct vmcs02 *e)
{
	return (struct left_over){
		.efer = vmcs_read64(VMCS_GUEST_EFER),
		.pat = vmcs_read64(VMCS_GUEST_PAT),
		.cr0 = l2_uncached_bits(e),
	};
}

/* Blocking by NMI is the processor's own, not L2's, unless L1 uses virtual NMIs. Pre: the guest area is
 * saved. */
static bool nmi_blocked(const struct vmcs02 *e)
{
	return !v12_pin(e, PIN_VNMI) && e->v12.guest_intr_state & INTR_STATE_NMI;
}

/* Nothing of what was under way for L2 may reach L1 or the next L2. Pre: VMCS02 is current. */
static void drop_l2_events(struct vcpu *v)
{
	struct nested *n = v->nested;

	v->inject.info = 0;
	/* Only this CPU sets these two. */
	if (unlikely(v->pending & (PEND_INJECT | PEND_NESTED)))
		__atomic_fetch_and(&v->pending, ~(u32)(PEND_INJECT | PEND_NESTED), __ATOMIC_SEQ_CST);
	if (n->event_in_entry)
		vmcs_write32(VMCS_ENTRY_INTR_INFO, 0);
	n->event_in_entry = n->immediate_exit = n->fault_raised = false;
	n->queued.reason = 0;
	timer_stop(v);
}

/* What waits for L1 is its own gate's business again, for the sake of these requests. hv/event counts NMIs in
 * nmi_waiting. */
static __attribute__((noinline, cold)) u32 give_back(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 look = n->l1_pending | (n->nmi ? PEND_NMI : 0) | (n->init ? PEND_INIT : 0);

	v->nmi_waiting = n->nmi;
	n->nmi = n->init = n->sipi = false;
	n->l1_pending = 0;
	return look;
}

/* VMCS01 current, L1's gate sees what came in meanwhile. Pre: VMCS02 is current. */
static inline void switch_to_l1(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 look = unlikely(n->nmi || n->init || n->sipi || n->l1_pending) ? give_back(v) : 0;

	drop_l2_events(v);
	if (likely(n->current->root))
		sept_leave_place(n->current->place);
	n->activity = ACTIVITY_ACTIVE;
	v->state = VCPU_RUN;
	if (n->current->shadow.live)
		shadow_publish(n->current);
	nested_switch(v, &v->vmcs01, &level_l1);
	if (unlikely(v->tsc_offset != n->tsc_offset01))
		vmcs_write64(VMCS_TSC_OFFSET, n->tsc_offset01 = v->tsc_offset);
	if (unlikely(look))
		__atomic_fetch_or(&v->pending, look, __ATOMIC_SEQ_CST);
}

/* Pre: the guest area and the exit information are saved. VMCS02 is current. */
static inline enum exit_action finish(struct vcpu *v, struct vmcs02 *e, bool blocked)
{
	struct nested *n = v->nested;
	const struct vmcs12 *c = &e->v12;
	bool stored = true;

	if (unlikely(c->exit_msr_store_count))
		stored = msr_area_store(v, c->exit_msr_store_addr, c->exit_msr_store_count);
	if (unlikely(!host_area_is_kept(v, e))) {
		struct left_over left = left_by_l2(e);

		host_area_keep(n, e, &left);
		e->pat_written = true;
	}
	switch_to_l1(v);
	if (likely(stored))
		host_area_load(v, e, blocked);
	else
		vmx_abort(v, ABORT_SAVE_MSRS);
	return RESUME;
}

static inline void save_timer(struct vcpu *v, struct vmcs02 *e, u32 reason)
{
	if (e->v12.exit_ctl & EXIT_SAVE_TIMER)
		e->v12.preempt_timer = reason == EXIT_TIMER ? 0 : timer_left(v);
}

/* The exit as L0 made it (x), with its information in VMCS12. */
static __attribute__((noinline)) void save_made(struct vcpu *v, struct vmcs02 *e, const struct l2_exit *x)
{
	store_exit_info(&e->v12, x);
	if (e->enlightened) {
		v->nested->enlightened->save(e, v->kept_written);
		v->nested->enlightened->put_info(e);
	} else {
		guest_area_save(v, e);
	}
}

/* x NULL: as hardware reported it. */
static enum exit_action reflect_any(struct vcpu *v, u32 reason, const struct l2_exit *x)
{
	struct vmcs02 *e = v->nested->current;
	bool nmi = false;

	save_timer(v, e, reason);
	if (e->enlightened)
		guest_area_leave(v->nested, e);
	if (unlikely(x)) {
		nmi = reason == EXIT_EXCEPTION_NMI && INTR_TYPE(x->intr.info) == INTR_TYPE_NMI;
		save_made(v, e, x);
	} else if (e->enlightened) {
		v->nested->enlightened->save_exit(e, reason, v->kept_written);
	} else {
		guest_area_save(v, e);
		read_exit_info(&e->v12, reason);
	}
	return finish(v, e, nmi || nmi_blocked(e));
}

enum exit_action reflect(struct vcpu *v, const struct l2_exit *x)
{
	return reflect_any(v, x->reason, x);
}

enum exit_action reflect_hardware(struct vcpu *v, u32 reason)
{
	return reflect_any(v, reason, NULL);
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
	struct left_over left;
	bool l2 = v->level != &level_l1;
	bool blocked = vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_NMI && !(l2 && v12_pin(e, PIN_VNMI));

	left = left_by_l2(e);
	if (!l2)
		left.cr0 = vcpu_cr0();
	e->v12.exit_reason = reason | EXIT_REASON_FAILED_ENTRY;
	e->v12.exit_qual = qual;
	if (e->enlightened)
		enlightened_failed_entry(v);
	host_area_prepare(n, e, &left);
	if (l2) {
		guest_area_sync(e, e->stale);
		e->launched = n->was_launched;
		e->dirty = GROUPS_ALL; /* the MSR list changed VMCS02, not VMCS12 */
		switch_to_l1(v);
	} else if (e->shadow.live) {
		shadow_publish(e);
		vmcs_load(v->vmcs);
	}
	host_area_load(v, e, blocked);
	return RESUME;
}
