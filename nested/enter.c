/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMLAUNCH and VMRESUME of L1: snapshot, check, merge, load VMCS02, switch. VMCS12 is L0's own copy already;
 * what else the entry needs from L1's memory is copied once, before its check. SDM chapter "VM Entries".
 */
#include "hv/cpuid.h"
#include "hv/exit.h"
#include "hv/pmu.h"
#include "hv/print.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"
#include "nested/sept_root.h"

#define WINDOWS (PROC_INTR_WINDOW | PROC_NMI_WINDOW)

/* CD and NW reach no hardware (hv/exit_cr.c); of CR4 L2 gets what L1 could have: the rest reads 0 and faults
 * when set. */
void needs_init(struct l0_needs *needs)
{
	const struct l0_controls *l0 = &l0_controls;

	*needs = (struct l0_needs){
		.pin = l0->pin,
		.proc = l0->proc & ~WINDOWS,
		.sec = l0->sec,
		.exit = l0->exit,
		.entry = l0->entry,
		.exceptions = l0->exceptions,
		.cr0_mask = CR0_CD | CR0_NW,
		.cr4_mask = ~(cpuid_cr4_offered() | CR4_VMXE),
	};
}

/* --- snapshot. Pre: VMCS01 is current. --- */

static void read_link_page(struct vcpu *v, const struct vmcs12 *c, struct check_facts *f)
{
	f->link_readable = false;
	if (c->link_pointer != NO_VMCS)
		f->link_readable =
			guest_read(&v->guest->mem, GPA(c->link_pointer), &f->link_word, sizeof(f->link_word));
}

static void read_pdptes(struct vcpu *v, const struct vmcs12 *c, struct check_facts *f)
{
	if (check_needs_pdptes(c))
		f->pdptes_readable = guest_read(&v->guest->mem, GPA(c->guest_cr3 & 0xffffffe0), f->pdpte,
						sizeof(f->pdpte));
}

static void snapshot(struct vcpu *v, const struct vmcs02 *e)
{
	struct check_facts *f = &v->nested->facts;
	u8 vtpr = 0xff;

	f->ia32e = vmcs_read64(VMCS_GUEST_EFER) & EFER_LMA;
	f->vmcs = GPA(e->ptr);
	if (v12_proc(e, PROC_TPR_SHADOW))
		guest_read(&v->guest->mem, GPA(e->v12.virtual_apic + APIC_TPR), &vtpr, 1);
	f->vtpr = vtpr;
	read_link_page(v, &e->v12, f);
	read_pdptes(v, &e->v12, f);
}

/* What L2 inherits from L1 as it stands now. */
static void look_at_l1(struct vcpu *v, struct vmcs02 *e)
{
	struct l0_needs *l0 = &v->nested->needs;

	l0->tsc_offset = e->seen.tsc_offset = v->tsc_offset;
	l0->l1_efer = e->seen.efer = vmcs_read64(VMCS_GUEST_EFER);
	l0->l1_pat = e->seen.pat = vmcs_read64(VMCS_GUEST_PAT);
	l0->l1_debugctl = e->seen.debugctl = vmcs_read64(VMCS_GUEST_DEBUGCTL);
	l0->l1_dr7 = e->seen.dr7 = vmcs_read_nw(VMCS_GUEST_DR7);
}

/* --- VMCS02. Pre, from here on: VMCS02 is current. --- */

/* Once for each hardware VMCS: what no VMCS12 changes. */
static void write_constants(struct vcpu *v)
{
	vmcs_write64(VMCS_LINK_POINTER, ~0ull);
	vmcs_write32(VMCS_EXIT_MSR_STORE_COUNT, 0);
	vmcs_write32(VMCS_EXIT_MSR_LOAD_COUNT, 0);
	vmcs_write32(VMCS_ENTRY_MSR_LOAD_COUNT, 0);
	vmcs_write32(VMCS_ENTRY_INTR_INFO, 0);
	vmcs_write32(VMCS_GUEST_ACTIVITY, ACTIVITY_ACTIVE);
	vmcs_write_host_state(v);
	if (v->pmu) {
		vmcs_write64(VMCS_GUEST_PERF_GLOBAL_CTRL, v->pmu->global);
		vmcs_write64(VMCS_HOST_PERF_GLOBAL_CTRL, 0);
	}
}

/* L1's page as hardware uses it. One that is no RAM is replaced: L2 finds zeros in it, and nobody sees its
 * writes. */
static u64 page_of_l1(struct vcpu *v, u64 gpa)
{
	hpa_t hpa;

	if (!l1mem_translate(&v->guest->mem, GPA(gpa), &hpa, NULL))
		hpa = ptr_hpa(v->nested->scratch);
	l1mem_expose(&v->guest->mem, GPA(gpa));
	return hpa.v;
}

/* Many of them, none in a hurry. */
static __attribute__((noinline, cold)) void put(struct vmcs02 *e, enum mirror slot, u64 value)
{
	vmcs02_put(e, slot, value);
}

static void write_controls(struct vmcs02 *e)
{
	const struct merged *m = &e->m;

	put(e, MIRROR_PIN_CTL, m->pin);
	put(e, MIRROR_PROC_CTL, m->proc);
	put(e, MIRROR_SEC_CTL, m->sec);
	put(e, MIRROR_EXIT_CTL, m->exit);
	vmcs_write32(VMCS_ENTRY_CTL, m->entry);
	put(e, MIRROR_EXCEPTION_BITMAP, m->exceptions);
	put(e, MIRROR_PF_MASK, m->pf_mask);
	put(e, MIRROR_PF_MATCH, m->pf_match);
	put(e, MIRROR_CR0_MASK, m->cr0_mask);
	put(e, MIRROR_CR0_SHADOW, m->cr0_shadow);
	put(e, MIRROR_CR4_MASK, m->cr4_mask);
	put(e, MIRROR_CR4_SHADOW, m->cr4_shadow);
	put(e, MIRROR_TSC_OFFSET, m->tsc_offset);
	if (m->sec & SEC_TSC_SCALING)
		put(e, MIRROR_TSC_MULTIPLIER, m->tsc_multiplier);
	if (m->sec & SEC_XSAVES)
		put(e, MIRROR_XSS_EXITING_BITMAP, m->xss_exiting);
	if (m->sec & SEC_ENCLS)
		put(e, MIRROR_ENCLS_EXITING_BITMAP, m->encls_exiting);
	if (m->sec & SEC_VMFUNC)
		vmcs_write64(VMCS_VMFUNC_CTL, 0);
}

static void write_cr3_targets(struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;
	const u64 target[4] = {c->cr3_target0, c->cr3_target1, c->cr3_target2, c->cr3_target3};

	put(e, MIRROR_CR3_TARGET_COUNT, e->m.cr3_target_count);
	for (u32 i = 0; i < e->m.cr3_target_count && i < ARRAY_SIZE(target); i++)
		put(e, MIRROR_CR3_TARGET0 + i, target[i]);
}

static void write_apic(struct vcpu *v, struct vmcs02 *e)
{
	const struct vmcs12 *c = &e->v12;
	u32 sec = e->m.sec;

	if (e->m.proc & PROC_TPR_SHADOW) {
		put(e, MIRROR_VIRTUAL_APIC, page_of_l1(v, c->virtual_apic));
		put(e, MIRROR_TPR_THRESHOLD, c->tpr_threshold);
	}
	if (sec & SEC_APIC_ACCESSES)
		put(e, MIRROR_APIC_ACCESS, page_of_l1(v, c->apic_access));
	if (sec & SEC_VID) {
		put(e, MIRROR_EOI_EXIT_BITMAP_0, c->eoi_exit_bitmap_0);
		put(e, MIRROR_EOI_EXIT_BITMAP_1, c->eoi_exit_bitmap_1);
		put(e, MIRROR_EOI_EXIT_BITMAP_2, c->eoi_exit_bitmap_2);
		put(e, MIRROR_EOI_EXIT_BITMAP_3, c->eoi_exit_bitmap_3);
	}
	if (sec & SEC_PLE) {
		put(e, MIRROR_PLE_GAP, c->ple_gap);
		put(e, MIRROR_PLE_WINDOW, c->ple_window);
	}
}

/* Each VMCS02 has a tag of its own. It is flushed when it begins to stand for another VPID of L1, and always
 * when L1 uses none: then VM entries flush. */
static void write_vpid(struct vmcs02 *e)
{
	u16 vpid12 = v12_sec(e, SEC_VPID) ? e->v12.vpid : 0;

	vmcs02_put(e, MIRROR_VPID, e->vpid);
	if (!vpid12 || vpid12 != e->vpid12)
		invvpid_single(e->vpid);
	e->vpid12 = vpid12;
}

static void write_vmcs02(struct vcpu *v, struct vmcs02 *e)
{
	if (!e->known)
		write_constants(v);
	write_controls(e);
	write_cr3_targets(e);
	write_apic(v, e);
	write_vpid(e);
	e->eptp = e->v12.eptp | (v12_sec(e, SEC_MBE) ? EPT12_MBE : 0);
	if (!v12_sec(e, SEC_EPT))
		e->root = NULL;
	bitmaps_load(v, e);
	guest_area_load(v, e);
	e->dirty = 0;
}

/* As write_vmcs02, but all that entry_is_quick knows to be unchanged is in VMCS02 already. */
static void refresh_vmcs02(struct vcpu *v, struct vmcs02 *e)
{
	if (e->m.proc & PROC_TPR_SHADOW)
		vmcs02_put(e, MIRROR_TPR_THRESHOLD, e->v12.tpr_threshold);
	if (!e->vpid12) { /* without VPID every entry flushes */
		invvpid_single(e->vpid);
		e->vpid12 = v12_sec(e, SEC_VPID) ? e->v12.vpid : 0;
	}
	if (bitmaps_may_change(e))
		bitmaps_refresh(v, e);
	guest_area_reload(e);
	e->dirty = 0;
}

/* The root of another EPTP12, or none. */
static __attribute__((noinline, cold)) enum exit_action find_root(struct vcpu *v, struct vmcs02 *e)
{
	bool flush = false;

	if (!v12_sec(e, SEC_EPT)) {
		e->root = NULL;
		vmcs02_put(e, MIRROR_EPTP, v->guest->eptp01);
		return RESUME;
	}
	e->root = sept_enter(v->nested->sept, e->root, e->eptp, v->index, &flush);
	if (!e->root) { /* roots or pages come free when others have passed here */
		__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
		return RESCHEDULE;
	}
	e->place = &e->root->place[v->index];
	vmcs02_put(e, MIRROR_EPTP, sept_eptp(e->root));
	if (flush)
		invept_single(sept_eptp(e->root));
	return RESUME;
}

/* Pre: a root of e is that of its EPTP12, or was. */
static inline enum exit_action before_entry(struct vcpu *v, struct vmcs02 *e)
{
	bool flush;

	timer_set(v, e);
	if (unlikely(!e->root || !sept_enter_again(v->nested->sept, e->root, e->place, e->eptp, &flush)))
		return find_root(v, e);
	if (unlikely(flush))
		invept_single(sept_eptp(e->root));
	return RESUME;
}

enum exit_action nested_before_entry(struct vcpu *v)
{
	return before_entry(v, v->nested->current);
}

/* Nothing that L2's gate would find: no request, nothing held for L1, no interrupt for it. */
static bool is_quiet(const struct vcpu *v, const struct vmcs02 *e)
{
	const struct nested *n = v->nested;

	return !v->pending && !n->nmi && !n->init && n->activity == ACTIVITY_ACTIVE && !v12_pin(e, PIN_TIMER);
}

/* SDM "Event Injection", "Activity State". `intr`: an interrupt may wait for L1. */
static inline __attribute__((always_inline)) enum exit_action begin_l2(struct vcpu *v, struct vmcs02 *e,
								       bool intr)
{
	struct nested *n = v->nested;
	const struct vmcs12 *c = &e->v12;

	n->fresh = true;
	e->launched = true;
	n->activity = (enum activity)c->guest_activity;
	v->state = n->activity == ACTIVITY_ACTIVE ? VCPU_RUN : VCPU_HALT;
	n->host_deadline = v->cpu->timers.armed;
	n->cut = 0;
	if (unlikely(v12_pin(e, PIN_TIMER) || !(c->guest_rflags & RFLAGS_IF)))
		timer_start(v);
	if (unlikely(c->entry_intr_info & INTR_VALID))
		l2_inject(v, &(struct event){c->entry_intr_info, c->entry_error_code, c->entry_insn_len});
	if (likely(!intr && is_quiet(v, e))) {
		vmcs02_put(e, MIRROR_PROC_CTL, e->m.proc);
		return before_entry(v, e);
	}
	__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
	return RESUME;
}

/* --- the instructions. Pre: VMCS01 is current. --- */

static struct fail check_early(const struct vcpu *v, const struct vmcs02 *e)
{
	struct fail f = check_controls(&e->v12, &v->nested->facts);

	return f.err ? f : check_host(&e->v12, &v->nested->facts);
}

static void trace_fail(const struct vcpu *v, const struct fail *f)
{
	log_debug("guest %s vcpu %u: VM entry fails with %u, rule at line %u", v->guest->name, v->index,
		  f->err, f->line);
}

/* What was held for L1 is now for L2's gate. The NMI window in VMCS01 goes with it, or its exit would make an
 * NMI of its own. */
static inline void take_over_events(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (likely(!v->nmi_waiting && !v->init_waiting && !v->nmi_window))
		return; /* all of n's are false while L1 runs */
	n->nmi = v->nmi_waiting;
	n->init = v->init_waiting;
	v->nmi_waiting = v->init_waiting = false;
	if (v->nmi_window)
		event_window(PROC_NMI_WINDOW, v->nmi_window = false);
}

static enum exit_action enter_checked(struct vcpu *v, struct vmcs02 *e)
{
	struct nested *n = v->nested;
	u32 bad;

	look_at_l1(v, e);
	merge_controls(&e->m, &e->v12, &n->needs);
	owner_plan(e);
	guest_area_plan(v, e);
	host_area_prepare(n, e, &(struct left_over){e->m.efer, e->m.pat, l2_uncached_bits(e)});
	take_over_events(v);
	nested_switch(v, &e->hw, v->nested->level_l2);
	if (e->v12.entry_ctl & ENTRY_LOAD_PERF)
		pmu_load_global(v, e->v12.guest_perf_global_ctrl);
	write_vmcs02(v, e);
	e->checked = !(e->v12.entry_ctl & ENTRY_LOAD_PERF); /* it is loaded here only */
	e->checked_ia32e = n->facts.ia32e;
	bad = msr_area_load(v, e->v12.entry_msr_load_addr, e->v12.entry_msr_load_count, l2_msr_write);
	if (bad)
		return reflect_failed_entry(v, EXIT_BAD_MSR_LOAD, bad);
	return begin_l2(v, e, true); /* the gate looks */
}

static enum exit_action enter_quick(struct vcpu *v, struct vmcs02 *e)
{
	bool intr = vcpu_intr_possible(v);

	take_over_events(v);
	nested_switch(v, &e->hw, v->nested->level_l2);
	refresh_vmcs02(v, e);
	return begin_l2(v, e, intr);
}

static __attribute__((noinline, cold)) enum exit_action enter_slowly(struct vcpu *v, struct vmcs02 *e,
								     bool launch)
{
	struct fail f;

	if (!e || e->is_shadow)
		return vmfail_invalid(v);
	if (vmcs_read32(VMCS_GUEST_INTR_STATE) & INTR_STATE_MOV_SS)
		return vmfail(v, ERROR_MOV_SS);
	if (launch == e->launched)
		return vmfail(v, launch ? ERROR_VMLAUNCH_NOT_CLEAR : ERROR_VMRESUME_NOT_LAUNCHED);
	guest_area_fetch(v, e, e->stale);
	snapshot(v, e);
	f = check_early(v, e);
	if (f.err) {
		trace_fail(v, &f);
		return vmfail(v, f.err);
	}
	f = check_guest(&e->v12, &v->nested->facts);
	if (f.err) {
		trace_fail(v, &f);
		return reflect_failed_entry(v, f.err, f.qual);
	}
	return enter_checked(v, e);
}

/* What L1 wrote without an exit. */
static inline void take_shadow(struct vcpu *v, struct vmcs02 *e)
{
	if (e->shadow.live) {
		shadow_collect(e, false);
		vmcs_load(v->vmcs);
	}
}

/* Never quick: at least the launch state is another. */
enum exit_action emul_vmlaunch(struct vcpu *v)
{
	struct vmcs02 *e = v->nested->current;

	if (e)
		take_shadow(v, e);
	v->nested->was_launched = false;
	v->nested->tsc_offset01 = v->tsc_offset;
	return enter_slowly(v, e, true);
}

enum exit_action emul_vmresume(struct vcpu *v)
{
	struct vmcs02 *e = v->nested->current;

	v->nested->was_launched = true;
	v->nested->tsc_offset01 = v->tsc_offset;
	if (unlikely(!e))
		return vmfail_invalid(v);
	take_shadow(v, e);
	if (likely(e->launched && entry_is_quick(v, e)))
		return enter_quick(v, e);
	return enter_slowly(v, e, false);
}
