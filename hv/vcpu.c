/* SPDX-License-Identifier: Apache-2.0 */
/* Making a vCPU, its reset states, and requests to it. How it runs is in sched.c, exit.c and event.c. */
#include "hv/vcpu.h"
#include "hv/apicv.h"
#include "hv/cpu.h"
#include "hv/cpuid.h"
#include "hv/exit.h"
#include "hv/insn_memo.h"
#include "hv/lib.h"
#include "hv/personality.h"
#include "hv/pmu.h"
#include "hv/tlb.h"
#include "hv/vcpu_switch.h"
#include "hv/vmcs_init.h"
#include "mm/palloc.h"

#define VCPU_ORDER 1

_Static_assert(sizeof(struct vcpu) <= PAGE_SIZE << VCPU_ORDER, "struct vcpu fits its pages");
_Static_assert(INSN_MEMOS * sizeof(struct insn_memo) <= PAGE_SIZE, "memos fit their page");
_Static_assert(offsetof(struct vcpu, regs) == 0, "entry.S stores the registers at the start");

const struct level level_l1 = {
	.exit = exit_l1, .gate = gate_l1, .fault = fault_l1, .translate = translate_l1};

struct vcpu *vcpu_create(struct guest *g, u32 index, struct cpu *cpu)
{
	struct vcpu *v = pages_alloc(VCPU_ORDER);

	if (!v)
		return NULL;
	v->guest = g;
	v->index = index;
	v->cpu = cpu;
	v->level = &level_l1;
	v->vmcs = &v->vmcs01;
	v->vpid = vpid_alloc();
	v->fpu = fpu_alloc();
	v->memos = page_alloc();
	v->lapic = vlapic_create(v);
	if ((g->desc.pmu && !pmu_create(v)) || !v->vpid || !v->fpu || !v->memos || !v->lapic ||
	    !vmcs_create(&v->vmcs01) || (g->desc.vmx && !nested_create(v)) ||
	    (g->personality && !g->personality->create(v))) {
		vcpu_destroy(v);
		return NULL;
	}
	v->vmcs01.steady_bitmap = true;
	v->vmcs01.vp_id = index;
	v->vmcs01.vm_id = g->personality ? g->id + 1u : 0;
	v->cpuid1_ecx = cpuid_own_ecx(v);
	return v;
}

/* A vCPU that never ran; those that did stay until the machine ends. */
void vcpu_destroy(struct vcpu *v)
{
	if (v->guest->personality)
		v->guest->personality->destroy(v);
	if (v->nested)
		nested_destroy(v);
	if (v->lapic)
		vlapic_destroy(v->lapic);
	if (v->vmcs01.page)
		page_free(v->vmcs01.page);
	if (v->pmu)
		page_free(v->pmu);
	if (v->memos)
		page_free(v->memos);
	fpu_free(v->fpu);
	vpid_free(v->vpid);
	pfree(ptr_hpa(v), VCPU_ORDER);
}

void vcpu_request(struct vcpu *v, u32 bits)
{
	__atomic_fetch_or(&v->pending, bits, __ATOMIC_SEQ_CST);
	if (v->cpu != this_cpu())
		cpu_kick(v->cpu);
}

void vcpu_nmi(struct vcpu *v)
{
	__atomic_add_fetch(&v->nmis_sent, 1, __ATOMIC_SEQ_CST);
	vcpu_request(v, PEND_NMI);
}

static void reset_segments(void)
{
	for (unsigned i = 0; i < 6; i++) {
		vmcs_write_raw(VMCS_GUEST_ES_SEL + 2 * i, 0);
		vmcs_write_raw(VMCS_GUEST_ES_BASE + 2 * i, 0);
		vmcs_write_raw(VMCS_GUEST_ES_LIMIT + 2 * i, 0xffff);
		vmcs_write_raw(VMCS_GUEST_ES_AR + 2 * i, 0x93);
	}
	/* Type 3 for CS, as the processor itself has it in real mode; type 11 meets an emulator's extra rule.
	 */
	vmcs_write16(VMCS_GUEST_CS_SEL, 0xf000);
	vmcs_write_nw(VMCS_GUEST_CS_BASE, 0xffff0000);
	vmcs_write32(VMCS_GUEST_CS_AR, 0x93);
	vmcs_write16(VMCS_GUEST_LDTR_SEL, 0);
	vmcs_write_nw(VMCS_GUEST_LDTR_BASE, 0);
	vmcs_write32(VMCS_GUEST_LDTR_LIMIT, 0xffff);
	vmcs_write32(VMCS_GUEST_LDTR_AR, 0x82);
	vmcs_write16(VMCS_GUEST_TR_SEL, 0);
	vmcs_write_nw(VMCS_GUEST_TR_BASE, 0);
	vmcs_write32(VMCS_GUEST_TR_LIMIT, 0xffff);
	vmcs_write32(VMCS_GUEST_TR_AR, 0x8b);
	vmcs_write_nw(VMCS_GUEST_GDTR_BASE, 0);
	vmcs_write_nw(VMCS_GUEST_IDTR_BASE, 0);
	vmcs_write32(VMCS_GUEST_GDTR_LIMIT, 0xffff);
	vmcs_write32(VMCS_GUEST_IDTR_LIMIT, 0xffff);
}

static void reset_guest_area(bool init)
{
	reset_segments();
	vmcs_write_nw(VMCS_GUEST_RIP, 0xfff0);
	vmcs_write_nw(VMCS_GUEST_RSP, 0);
	vmcs_write_nw(VMCS_GUEST_RFLAGS, RFLAGS_FIXED);
	vmcs_write_nw(VMCS_GUEST_CR3, 0);
	vmcs_write_nw(VMCS_GUEST_DR7, 0x400);
	vmcs_write64(VMCS_GUEST_DEBUGCTL, 0);
	vmcs_write_nw(VMCS_GUEST_PENDING_DBG, 0);
	vmcs_write32(VMCS_GUEST_INTR_STATE, 0);
	vmcs_write32(VMCS_GUEST_ACTIVITY, ACTIVITY_ACTIVE);
	vmcs_write32(VMCS_ENTRY_INTR_INFO, 0);
	if (init)
		return;
	vmcs_write32(VMCS_GUEST_SYSENTER_CS, 0);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_ESP, 0);
	vmcs_write_nw(VMCS_GUEST_SYSENTER_EIP, 0);
	vmcs_write64(VMCS_GUEST_PAT, 0x0007040600070406ull);
}

/* MSRs and the like that INIT leaves alone. */
static void reset_power_on(struct vcpu *v)
{
	v->xcr0 = 1;
	v->xss = 0;
	v->star = v->lstar = v->cstar = v->fmask = v->kernel_gs = 0;
	v->tsc_offset = 0;
	v->tsc_adjust = 0;
	v->tsc_aux = 0;
	v->feature_control = 0;
	v->misc_enable = BIT(0); /* fast strings */
	v->mtrr_def = 0;
	memset(v->mtrr_fixed, 0, sizeof(v->mtrr_fixed));
	memset(v->mtrr_var, 0, sizeof(v->mtrr_var));
	fpu_reset(v->fpu);
	if (v->pmu)
		pmu_reset(v);
}

void vcpu_reset(struct vcpu *v, bool init)
{
	BUG_ON(v->cpu != this_cpu());
	vcpu_unload(v);
	if (v->nested)
		nested_reset(v);
	v->level = &level_l1;
	v->vmcs = &v->vmcs01;
	vmcs_load(&v->vmcs01);
	memset(v->regs, 0, sizeof(v->regs));
	v->regs[RDX] = vcpu_cpuid(v, 1, 0).eax;
	v->cr2 = 0;
	memset(v->dr, 0, sizeof(v->dr));
	v->dr6 = 0xffff0ff0;
	v->inject.info = 0;
	memset(v->memos, 0, INSN_MEMOS * sizeof(v->memos[0]));
	v->intr_window = v->nmi_window = v->init_waiting = false;
	v->nmi_waiting = 0;
	v->nmis_sent = 0;
	if (!init)
		reset_power_on(v);
	v->apicv = v->guest->apic_page != NULL;
	v->apicv_mode = 0;
	memset(v->apicv_eoi, 0, sizeof(v->apicv_eoi));
	vmcs_init_l1(v);
	reset_guest_area(init);
	vlapic_reset(v, init);
	if (v->guest->personality)
		v->guest->personality->reset(v, init);
	vcpu_load_efer(v, 0);
	vcpu_load_cr0(v, init ? (vcpu_cr0() & (CR0_CD | CR0_NW)) | CR0_ET : CR0_CD | CR0_NW | CR0_ET);
	vcpu_load_cr4(v, 0);
	if (v->apicv)
		apicv_sync(v);
	invvpid_single(v->vpid);
}

static void flat_segments(bool code64)
{
	for (unsigned i = 0; i < 6; i++) {
		vmcs_write_raw(VMCS_GUEST_ES_SEL + 2 * i, i == 1 ? 0x10 : 0x18);
		vmcs_write_raw(VMCS_GUEST_ES_BASE + 2 * i, 0);
		vmcs_write_raw(VMCS_GUEST_ES_LIMIT + 2 * i, 0xffffffff);
		vmcs_write_raw(VMCS_GUEST_ES_AR + 2 * i, 0xc093);
	}
	vmcs_write32(VMCS_GUEST_CS_AR, code64 ? 0xa09b : 0xc09b);
}

void vcpu_set_entry(struct vcpu *v, const struct entry_state *e)
{
	vmcs_write_nw(VMCS_GUEST_RIP, e->rip);
	vmcs_write_nw(VMCS_GUEST_RSP, e->rsp);
	v->regs[RAX] = e->rax;
	v->regs[RBX] = e->rbx;
	v->regs[RSI] = e->rsi;
	v->regs[RDX] = 0;
	if (e->mode == ENTRY_REAL)
		return;
	flat_segments(e->mode == ENTRY_LONG);
	vmcs_write_nw(VMCS_GUEST_GDTR_BASE, e->gdt_base);
	vmcs_write32(VMCS_GUEST_GDTR_LIMIT, e->gdt_limit);
	if (e->mode == ENTRY_LONG) {
		vmcs_write_nw(VMCS_GUEST_CR3, e->cr3);
		vcpu_load_cr4(v, CR4_PAE);
		vcpu_load_efer(v, EFER_LME | EFER_LMA);
		vcpu_load_cr0(v, CR0_PE | CR0_PG | CR0_ET | CR0_NE | CR0_MP);
	} else {
		vcpu_load_cr0(v, CR0_PE | CR0_ET);
	}
}
