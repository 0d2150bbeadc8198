/* SPDX-License-Identifier: Apache-2.0 */
/* Nested state of a vCPU: making and dropping it, the one switch between L1 and L2, and the way of an exit of
 * L2. */
#include "hv/cpu.h"
#include "hv/cpuid.h"
#include "hv/exit.h"
#include "hv/fixup.h"
#include "hv/lib.h"
#include "hv/pmu.h"
#include "hv/print.h"
#include "mm/palloc.h"
#include "nested/internal.h"

#define NESTED_ORDER 1
_Static_assert(sizeof(struct nested) <= PAGE_SIZE << NESTED_ORDER, "struct nested fits its pages");

/* IA32_DEBUGCTL as hv/msr.c lets L1 write it: LBR, BTF. */
#define DEBUGCTL_OFFERED (BIT(0) | BIT(1))
#define EFER_OFFERED     (EFER_SCE | EFER_LME | EFER_LMA | EFER_NXE)

const struct level level_l2 = {
	.exit = nested_exit, .gate = gate_l2, .fault = fault_l2, .translate = translate_l2};

void nested_write_anew(struct vcpu *v)
{
	struct nested *n = v->nested;

	for (unsigned i = 0; i < NESTED_CACHE; i++)
		if (n->cache[i]) {
			n->cache[i]->known = 0;
			n->cache[i]->checked = false;
		}
}

bool nested_in_l2(const struct vcpu *v)
{
	return v->level != &level_l1;
}

bool nested_vmxon(const struct vcpu *v)
{
	return v->nested->vmxon;
}

/* --- exits of L2 --- */

/*
 * Hardware refused what the checks let pass, in the guest area: for L1 it is an entry that failed, once. The
 * launch state of VMCS02 is that of before, which VMCLEAR makes a known one.
 */
static enum exit_action hardware_refused(struct vcpu *v, u16 reason)
{
	struct nested *n = v->nested;
	bool for_l1 = n->fresh && reason == EXIT_BAD_GUEST_STATE;

	log_warn("guest %s vcpu %u: hardware fails a nested VM entry with %u", v->guest->name, v->index,
		 reason);
	if (!for_l1) {
		guest_end(v->guest, "killed: nested VM entry failed with %u", reason);
		return RESUME;
	}
	reflect_failed_entry(v, reason, vmcs_read_nw(VMCS_EXIT_QUAL));
	vmcs_clear(&n->current->hw);
	return RESUME;
}

/* An L2 that goes on; the gate, if anything is pending, comes after this. */
enum exit_action nested_go_on(struct vcpu *v, enum exit_action a)
{
	event_requeue(v);
	/* SDM "Monitor Trap Flag": the instruction L0 carried out ends as any other. */
	if (a == RESUME_NEXT && v12_proc(v->nested->current, PROC_MTF))
		queue_exit(v, &(struct l2_exit){.reason = EXIT_MTF});
	if (a == RESCHEDULE) {
		__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
		return a;
	}
	/* Else the gate does it. */
	if (!v->pending && nested_before_entry(v) == RESCHEDULE) {
		if (a == RESUME_NEXT)
			insn_advance(v);
		return RESCHEDULE;
	}
	return a;
}

/* Its owner is not plain from the reason. */
static __attribute__((noinline)) enum exit_action exit_of_either(struct vcpu *v, u32 reason)
{
	struct nested *n = v->nested;
	u16 basic = (u16)reason;
	enum exit_action a;

	if (basic < EXIT_REASONS)
		v->l2_exits[basic]++;
	if (unlikely(reason & EXIT_REASON_FAILED_ENTRY))
		return hardware_refused(v, basic);
	n->event_in_entry = n->fresh = false;
	if (exit_owner(v, basic) == OWNER_L1)
		return reflect_hardware(v, reason);
	a = l0_exit(v, basic);
	if (n->immediate_exit && v->level != &level_l1)
		__atomic_fetch_or(&v->pending, PEND_NESTED,
				  __ATOMIC_RELAXED); /* the gate has waited for this */
	return v->level != &level_l1 ? nested_go_on(v, a) : a;
}

enum exit_action nested_exit(struct vcpu *v, u32 reason)
{
	struct nested *n = v->nested;

	if (unlikely(reason >= 64 || !(n->current->to_l1[0] >> reason & 1)))
		return exit_of_either(v, reason);
	v->l2_exits[reason]++;
	n->event_in_entry = n->fresh = false;
	return reflect_hardware(v, reason);
}

/* --- capabilities --- */

/* SDM "VMX Capability Reporting Facility": the later MSRs exist when another says so. */
static bool msr_exists(const struct vmx_caps *c, u32 msr)
{
	u32 sec = caps_may1(c->proc) & PROC_SECONDARY ? caps_may1(c->sec) : 0;

	switch (msr) {
	case MSR_VMX_SEC_CTLS:
		return caps_may1(c->proc) & PROC_SECONDARY;
	case MSR_VMX_EPT_VPID_CAP:
		return sec & (SEC_EPT | SEC_VPID);
	case MSR_VMX_TRUE_PIN_CTLS ... MSR_VMX_TRUE_ENTRY_CTLS:
		return c->basic & VMX_BASIC_TRUE;
	case MSR_VMX_VMFUNC:
		return sec & SEC_VMFUNC;
	default:
		return true;
	}
}

bool nested_msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	struct vmx_caps *c = &v->nested->caps;
	const u64 *slot = caps_slot(c, msr);

	if (!slot || !msr_exists(c, msr))
		return false;
	*value = *slot;
	return true;
}

/* MSRs that the CPU lacks read 0; the TRUE ones then repeat the plain ones. */
static void read_hardware_caps(struct vmx_caps *hw)
{
	for (u32 msr = MSR_VMX_BASIC; msr <= MSR_VMX_VMFUNC; msr++)
		rdmsr_safe(msr, caps_slot(hw, msr));
	if (hw->basic & VMX_BASIC_TRUE)
		return;
	hw->true_pin = hw->pin;
	hw->true_proc = hw->proc;
	hw->true_exit = hw->exit;
	hw->true_entry = hw->entry;
}

/* Hyper-V leaves it to its guest not to use what an enlightened VMCS has no field for. */
static void read_caps(struct vmx_caps *hw)
{
	read_hardware_caps(hw);
	if (vmcs_format)
		caps_enlightened(hw);
}

static void fill_facts(struct vcpu *v)
{
	struct nested *n = v->nested;

	n->facts = (struct check_facts){
		.caps = &n->caps,
		.phys_bits = (u8)vcpu_cpuid(v, 0x80000008, 0).eax,
		.linear_bits = LINEAR_BITS,
		.efer_bits = EFER_OFFERED,
		.debugctl_bits = DEBUGCTL_OFFERED,
		.perf_global_bits = pmu_bits(),
		.rtm = cpuid_offers(7, 1, 11),
	};
}

/* --- life --- */

/* The guest's shadow EPTs hang on its first vCPU, which is created first. */
static struct sept *find_sept(struct vcpu *v)
{
	const struct guest *g = v->guest;
	struct nested *n = v->nested;

	if (v->index)
		return g->vcpu[0]->nested->sept;
	l1mem_account(&v->guest->mem); /* without it nothing is ever clean */
	return sept_create(&g->mem, &v->guest->ept01, g->ept01_apic.root ? &v->guest->ept01_apic : NULL,
			   l0_controls.eptp_flags & EPTP_AD, n->caps.ept_vpid, n->facts.phys_bits);
}

bool nested_create(struct vcpu *v)
{
	struct nested *n = pages_alloc(NESTED_ORDER);
	struct vmx_caps hw;

	if (!n)
		return false;
	guest_area_init();
	bitmaps_init();
	v->nested = n;
	n->emul = emul_plain;
	n->level_l2 = &level_l2;
	n->evmcs = n->plain = NO_VMCS;
	n->scratch = page_alloc();
	read_caps(&hw);
	caps_plain(&n->caps, &hw, cpuid_cr4_offered());
	fill_facts(v);
	n->shadowing = shadow_possible(&hw, &n->caps);
	needs_init(&n->needs);
	if (v->pmu) {
		n->needs.entry |= ENTRY_LOAD_PERF;
		n->needs.exit |= EXIT_LOAD_PERF;
	} else {
		caps_without_pmu(&n->caps);
	}
	n->sept = find_sept(v);
	return n->scratch && n->sept;
}

void nested_reset(struct vcpu *v)
{
	struct nested *n = v->nested;

	timer_stop(v);
	if (v->level != &level_l1 && n->current->root)
		sept_leave(n->current->root, v->index);
	sept_drop_all(n->sept);
	vmcs02_free_all(v);
	n->vmxon = false;
	n->current = NULL;
	__atomic_store_n(&n->evmcs, NO_VMCS, __ATOMIC_RELEASE);
	n->plain = NO_VMCS;
	n->activity = ACTIVITY_ACTIVE;
	n->init = n->sipi = n->nmi = false;
	n->event_in_entry = n->immediate_exit = n->fault_raised = false;
	n->queued.reason = 0;
	n->l1_pending = 0;
	memset(n->operands, 0, sizeof(n->operands));
}

void nested_destroy(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (!n)
		return;
	vmcs02_free_all(v);
	if (n->scratch)
		page_free(n->scratch);
	if (!v->index && n->sept)
		sept_destroy(n->sept);
	pfree(ptr_hpa(n), NESTED_ORDER);
	v->nested = NULL;
}
