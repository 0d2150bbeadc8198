/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's host state, as an exit loads it into VMCS01. What it will be is worked out when VMCS12 is merged, so
 * that an exit is a run of VMWRITEs. Fields that L1 cannot change without L0 (the "kept" ones) are written
 * only when VMCS01 holds other values. SDM "Loading Host State"; section titles stand at each step.
 */
#include "hv/lib.h"
#include "hv/pmu.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* SDM "Loading Host Segment and Descriptor-Table Registers": access rights. */
#define AR_CODE64 0xa09bu
#define AR_CODE32 0xc09bu
#define AR_DATA   0xc093u
#define AR_TR     0x008bu
#define TR_LIMIT  0x67u
#define DT_LIMIT  0xffffu
#define NO_LIMIT  0xffffffffu
#define DR7_RESET 0x400u

#define EFER_MODE (EFER_LMA | EFER_LME)

static u32 access_rights(u16 sel, u32 ar)
{
	return sel ? ar : ar | AR_UNUSABLE;
}

static u64 host_cr4(const struct vmcs12 *c)
{
	return c->exit_ctl & EXIT_HOST_64 ? c->host_cr4 | CR4_PAE : c->host_cr4 & ~CR4_PCIDE;
}

static u64 host_efer(const struct vmcs12 *c, u64 left)
{
	if (c->exit_ctl & EXIT_LOAD_EFER)
		return c->host_efer;
	return (left & ~EFER_MODE) | (c->exit_ctl & EXIT_HOST_64 ? EFER_MODE : 0);
}

/* Equal values have equal numbers, whichever VMCS12 they are from. */
static void number_kept(struct nested *n, struct vmcs02 *e)
{
	if (n->kept_held && !memcmp(&n->kept, &e->kept, sizeof(n->kept)))
		e->kept_number = n->kept_held;
	else
		e->kept_number = ++n->kept_numbers;
}

void host_area_keep(struct nested *n, struct vmcs02 *e, const struct left_over *left)
{
	const struct vmcs12 *c = &e->v12;

	e->kept = (struct kept){
		.cr0 = (c->host_cr0 & ~CR0_NOT_LOADED) | (left->cr0 & CR0_NOT_LOADED),
		.cr4 = host_cr4(c),
		.efer = host_efer(c, left->efer),
		.pat = c->exit_ctl & EXIT_LOAD_PAT ? c->host_pat : left->pat,
		.sysenter_cs = c->host_sysenter_cs,
		.sysenter_esp = c->host_sysenter_esp,
		.sysenter_eip = c->host_sysenter_eip,
	};
	number_kept(n, e);
}

void host_area_prepare(struct nested *n, struct vmcs02 *e, const struct left_over *left)
{
	const struct vmcs12 *c = &e->v12;
	struct host_area *h = &e->host;

#define X(name, value) h->name = (value);
	HOST_AREA(X)
#undef X
	e->rest = (c->exit_ctl & (EXIT_HOST_64 | EXIT_LOAD_PERF)) != EXIT_HOST_64 || c->exit_msr_load_count;
	host_area_keep(n, e, left);
}

/* SDM "Loading Host Control Registers, Debug Registers, MSRs". */
static void load_kept(struct vcpu *v, const struct vmcs02 *e)
{
	struct nested *n = v->nested;

	vcpu_load_efer(v, e->kept.efer);
	vcpu_load_cr0(v, e->kept.cr0);
	vcpu_load_cr4(v, e->kept.cr4);
	vmcs_write64(VMCS_GUEST_DEBUGCTL, 0);
	vmcs_write64(VMCS_GUEST_PAT, e->kept.pat);
	vmcs_write32(VMCS_GUEST_SYSENTER_CS, (u32)e->kept.sysenter_cs);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_ESP, e->kept.sysenter_esp);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_EIP, e->kept.sysenter_eip);
	n->kept = e->kept;
	n->kept_held = e->kept_number;
	v->kept_written = false;
}

/* SDM "Loading Host Segment and Descriptor-Table Registers". LDTR: unusable, and otherwise undefined. */
static inline void load_constants(void)
{
	const u64 no_limit = NO_LIMIT, dt_limit = DT_LIMIT, zero = 0;

	vmcs_write_sure(VMCS_GUEST_ES_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_CS_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_SS_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_DS_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_FS_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_GS_LIMIT, no_limit);
	vmcs_write_sure(VMCS_GUEST_GDTR_LIMIT, dt_limit);
	vmcs_write_sure(VMCS_GUEST_IDTR_LIMIT, dt_limit);
	vmcs_write_sure(VMCS_GUEST_ES_BASE, zero);
	vmcs_write_sure(VMCS_GUEST_CS_BASE, zero);
	vmcs_write_sure(VMCS_GUEST_SS_BASE, zero);
	vmcs_write_sure(VMCS_GUEST_DS_BASE, zero);
	vmcs_write_sure(VMCS_GUEST_LDTR_SEL, zero);
	vmcs_write_sure(VMCS_GUEST_PENDING_DBG, zero);
	vmcs_write_sure(VMCS_GUEST_LDTR_AR, AR_UNUSABLE);
	vmcs_write_sure(VMCS_GUEST_TR_LIMIT, TR_LIMIT);
	vmcs_write_sure(VMCS_GUEST_TR_AR, AR_TR);
	vmcs_write_sure(VMCS_GUEST_DR7, DR7_RESET);
	vmcs_write_sure(VMCS_GUEST_RFLAGS, RFLAGS_FIXED);
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
void vmx_abort(struct vcpu *v, enum abort code)
{
	vmcs02_write_abort(v, v->nested->current, code);
	guest_end(v->guest, "triple-fault");
}

/* What few L1s have: PDPTEs of their own, a PMU's control, an MSR list. */
static __attribute__((noinline, cold)) void load_rest(struct vcpu *v, const struct vmcs12 *c)
{
	if (c->exit_ctl & EXIT_LOAD_PERF)
		pmu_load_global(v, c->host_perf_global_ctrl);
	if (!load_pdptes(v, c))
		vmx_abort(v, ABORT_HOST_PDPTES);
	if (msr_area_load(v, c->exit_msr_load_addr, c->exit_msr_load_count, msr_write))
		vmx_abort(v, ABORT_LOAD_MSRS);
}

void host_area_load(struct vcpu *v, const struct vmcs02 *e, bool nmi_blocked)
{
	const struct host_area *h = &e->host;

	if (unlikely(!host_area_is_kept(v, e)))
		load_kept(v, e);
	load_constants();
	vmcs_write_sure(VMCS_GUEST_INTR_STATE, nmi_blocked ? INTR_STATE_NMI : 0);
#define X(name, value) vmcs_write_from(VMCS_##name, &h->name);
	HOST_AREA(X)
#undef X
	/* SDM "VMX Transitions and TLBs": without VPIDs an exit leaves no translation of L1's. */
	if (!v12_sec(e, SEC_VPID))
		invvpid_single(v->vpid);
	if (unlikely(e->rest))
		load_rest(v, &e->v12);
}
