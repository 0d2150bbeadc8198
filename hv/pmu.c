/* SPDX-License-Identifier: Apache-2.0 */
/* See hv/pmu.h. The processor's side; which register is what stands in pmu_regs.c. */
#include "hv/pmu.h"
#include "hv/cpu.h"
#include "hv/exit.h"
#include "hv/fixup.h"
#include "hv/lapic.h"
#include "hv/print.h"
#include "mm/palloc.h"

#define PERF_CAPABILITIES_FULL_WIDTH BIT(13)

static struct pmu_caps caps;

/* Whether entries and exits can load the global control, and counters can be written whole. */
static bool can_switch(void)
{
	bool true_ctls = rdmsr(MSR_VMX_BASIC) & BIT(55);
	u64 entry = rdmsr(true_ctls ? MSR_VMX_TRUE_ENTRY_CTLS : MSR_VMX_ENTRY_CTLS) >> 32;
	u64 exit = rdmsr(true_ctls ? MSR_VMX_TRUE_EXIT_CTLS : MSR_VMX_EXIT_CTLS) >> 32, full = 0;

	return entry & ENTRY_LOAD_PERF && exit & EXIT_LOAD_PERF && cpuid(1, 0).ecx & BIT32(15) &&
	       rdmsr_safe(MSR_PERF_CAPABILITIES, &full) && full & PERF_CAPABILITIES_FULL_WIDTH;
}

void pmu_init(void)
{
	struct cpuid leaf = cpuid(0, 0).eax >= 0xa ? cpuid(0xa, 0) : (struct cpuid){0};

	caps = pmu_caps_of(&leaf);
	if (caps.counters && !can_switch())
		caps.counters = 0;
}

bool pmu_create(struct vcpu *v)
{
	if (!caps.counters) {
		if (!v->index)
			log_warn("guest %s: pmu=on, but this CPU has no PMU that a guest could use",
				 v->guest->name);
		return true;
	}
	v->pmu = page_alloc();
	return v->pmu;
}

void pmu_reset(struct vcpu *v)
{
	*v->pmu = (struct pmu){.known = true};
	for (unsigned i = 0; i < caps.counters; i++) /* SDM "Processor State After Reset" */
		v->pmu->global |= BIT(i);
}

struct cpuid pmu_cpuid(const struct vcpu *v)
{
	return v->pmu ? pmu_leaf(&caps) : (struct cpuid){0};
}

void pmu_write_vmcs(struct vcpu *v)
{
	vmcs_write32(VMCS_ENTRY_CTL, vmcs_read32(VMCS_ENTRY_CTL) | ENTRY_LOAD_PERF);
	vmcs_write32(VMCS_EXIT_CTL, vmcs_read32(VMCS_EXIT_CTL) | EXIT_LOAD_PERF);
	vmcs_write64(VMCS_GUEST_PERF_GLOBAL_CTRL, v->pmu->global);
	vmcs_write64(VMCS_HOST_PERF_GLOBAL_CTRL, 0);
}

/* --- the CPU's registers. Root mode: IA32_PERF_GLOBAL_CTRL is 0, nothing counts. --- */

static u64 hardware(u32 msr)
{
	u64 value;

	rdmsr_safe(msr, &value);
	return value;
}

void pmu_load(struct vcpu *v)
{
	struct pmu *have = &this_cpu()->pmu;
	struct pmu_write w[PMU_WRITES];
	unsigned n = pmu_plan(&caps, have, v->pmu, w);

	wrmsr_safe(MSR_PERF_GLOBAL_CTRL, 0);
	wrmsr_safe(MSR_PERF_GLOBAL_OVF, pmu_global_bits(&caps));
	for (unsigned i = 0; i < n; i++)
		wrmsr_safe(w[i].msr, w[i].value);
	lapic_set_pmi(true);
}

void pmu_unload(struct vcpu *v)
{
	struct pmu *p = v->pmu;

	lapic_set_pmi(false);
	for (u32 i = 0; i < caps.counters; i++)
		p->count[i] = hardware(MSR_PMC0 + i);
	for (u32 i = 0; i < caps.fixed; i++)
		p->fixed[i] = hardware(MSR_FIXED_CTR0 + i);
	p->status |= hardware(MSR_PERF_GLOBAL_STATUS) & pmu_global_bits(&caps);
	this_cpu()->pmu = *p;
}

/* SDM "Local Vector Table": delivering the interrupt sets the mask, the real one's and the guest's. */
void pmu_interrupt(void)
{
	struct vcpu *v = this_cpu()->loaded;

	if (!v || !v->pmu)
		return;
	if (hardware(MSR_PERF_GLOBAL_STATUS) & pmu_global_bits(&caps))
		vlapic_pmi(v);
	lapic_set_pmi(true);
}

/* --- the guest's accesses. Its vCPU has the CPU. --- */

bool pmu_read(struct vcpu *v, u32 msr, u64 *value)
{
	u64 writable;
	const u64 *slot = v->pmu ? pmu_slot(v->pmu, &caps, msr, &writable) : NULL;

	if (!slot)
		return false;
	*value = *slot;
	if (msr == MSR_PERF_GLOBAL_STATUS)
		*value |= hardware(msr) & pmu_global_bits(&caps);
	else if (msr == MSR_PERF_GLOBAL_OVF)
		*value = 0;
	else if (slot >= v->pmu->count)
		*value = hardware(msr); /* it counts */
	return true;
}

u64 pmu_bits(void)
{
	return pmu_global_bits(&caps);
}

/* One register for L1 and its L2s, whose VMCSs load it at each entry. */
void pmu_load_global(struct vcpu *v, u64 value)
{
	if (v->pmu->global == value)
		return;
	v->pmu->global = value;
	vmcs_load(&v->vmcs01);
	vmcs_write64(VMCS_GUEST_PERF_GLOBAL_CTRL, v->pmu->global);
	vmcs_load(v->vmcs);
	if (v->nested)
		nested_write_anew(v);
	vmcs_write64(VMCS_GUEST_PERF_GLOBAL_CTRL, v->pmu->global);
}

bool pmu_write(struct vcpu *v, u32 msr, u64 value)
{
	u64 writable, *slot = v->pmu ? pmu_slot(v->pmu, &caps, msr, &writable) : NULL;

	if (!slot)
		return false;
	if (msr - MSR_PMC0 < PMU_COUNTERS) { /* no full-width writes are offered */
		value = (u64)(s64)(s32)value & writable;
		msr += MSR_PMC0_FULL - MSR_PMC0;
	}
	if (value & ~writable)
		return false;
	if (msr == MSR_PERF_GLOBAL_OVF) {
		v->pmu->status &= ~value;
		return wrmsr_safe(msr, value);
	}
	if (msr == MSR_PERF_GLOBAL_CTRL) {
		pmu_load_global(v, value);
		return true;
	}
	if (msr == MSR_PERF_GLOBAL_STATUS || !wrmsr_safe(msr, value))
		return false;
	*slot = value;
	return true;
}

/* SDM "RDPMC—Read Performance-Monitoring Counters"; the privilege was checked before the exit. */
enum exit_action exit_rdpmc(struct vcpu *v)
{
	u32 msr = v->pmu ? pmu_rdpmc_msr(&caps, (u32)v->regs[RCX]) : 0;
	u64 value;

	if (!msr)
		return fault_gp(v);
	value = hardware(msr);
	v->regs[RAX] = (u32)value;
	v->regs[RDX] = value >> 32;
	return RESUME_NEXT;
}
