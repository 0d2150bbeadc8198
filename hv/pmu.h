/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The architectural PMU of a guest with pmu=on: its counters are the processor's own, which count only while
 * the guest runs (IA32_PERF_GLOBAL_CTRL is loaded by VM entries and exits) and change hands with the CPU. A
 * guest without it has v->pmu NULL, and nothing here runs. SDM chapter "Performance Monitoring".
 */
#ifndef NIDUS_HV_PMU_H
#define NIDUS_HV_PMU_H

#include "hv/msr.h"
#include "hv/types.h"
#include "hv/x86.h"

#define PMU_COUNTERS 8
#define PMU_FIXED    3

struct vcpu;

/* What is offered. counters 0: nothing. */
struct pmu_caps {
	u8 counters, width, fixed, fixed_width, events;
	u32 unavailable; /* CPUID.0AH:EBX */
};

/* A guest's registers. While its vCPU has a CPU, counts are in the processor. */
struct pmu {
	u64 global, status, fixed_ctrl;
	bool known; /* of a CPU: what its registers hold is known */
	u64 select[PMU_COUNTERS], count[PMU_COUNTERS], fixed[PMU_FIXED];
};

/* Pure: what leaf 0AH of the CPU allows; the leaf a guest sees; the bits of IA32_PERF_GLOBAL_CTRL. */
struct pmu_caps pmu_caps_of(const struct cpuid *leaf);
struct cpuid pmu_leaf(const struct pmu_caps *c);
u64 pmu_global_bits(const struct pmu_caps *c);
/* Pure: the register behind an MSR and the bits a guest may set in it. NULL: no such MSR. */
u64 *pmu_slot(struct pmu *p, const struct pmu_caps *c, u32 msr, u64 *writable);
/* Pure: the MSR that RDPMC reads, 0: #GP. */
u32 pmu_rdpmc_msr(const struct pmu_caps *c, u32 index);
/* Pure: the writes that turn the registers `have` of a CPU into `want`; at most PMU_WRITES. */
struct pmu_write {
	u32 msr;
	u64 value;
};
#define PMU_WRITES (2 * PMU_COUNTERS + PMU_FIXED + 1)
unsigned pmu_plan(const struct pmu_caps *c, const struct pmu *have, const struct pmu *want,
		  struct pmu_write out[PMU_WRITES]);

/* Once, on the boot CPU, with VMX on. */
void pmu_init(void);
/* What vcpu_create does for pmu=on. False: no memory. A CPU without a PMU gives none, which is logged. */
bool pmu_create(struct vcpu *v);
void pmu_reset(struct vcpu *v);
/* Into the current VMCS: it loads the guest's control at entries and 0 at exits. Pre: v->pmu. */
void pmu_write_vmcs(struct vcpu *v);
/* The vCPU gets the CPU, or loses it. Pre: v->pmu. */
void pmu_load(struct vcpu *v);
void pmu_unload(struct vcpu *v);
/* HOST_VEC_PMI: a counter has run over. */
void pmu_interrupt(void);
struct cpuid pmu_cpuid(const struct vcpu *v);
/* What IA32_PERF_GLOBAL_CTRL of a guest with a PMU may hold. */
u64 pmu_bits(void);
/* Load it, checked, as a VM entry or exit of L1 does: into all VMCSs of the vCPU that hold it. Pre: v->pmu;
 * v->vmcs is current. */
void pmu_load_global(struct vcpu *v, u64 value);

msr_read_fn pmu_read;
msr_write_fn pmu_write;

#endif
