/* SPDX-License-Identifier: Apache-2.0 */
/* What processor an L1 sees. The lookup itself is vcpu_cpuid (hv/vcpu.h). */
#ifndef NIDUS_HV_CPUID_H
#define NIDUS_HV_CPUID_H

#include "hv/types.h"

struct vcpu;

/* Read the host's leaves once and apply the rules. Boot CPU, after tsc_hz and l0_controls are known. */
void cpuid_init(void);
/* CR4 bits an L1 may set: those of features its CPUID shows. Without VMXE. */
u64 cpuid_cr4_offered(void);
/* MAXPHYADDR as L1 sees it. */
u8 cpuid_phys_bits(void);
/* One feature bit as L1 sees it, before the per-vCPU bits: leaf, subleaf 0, register (0 eax .. 3 edx). */
bool cpuid_offers(u32 leaf, unsigned reg, unsigned bit);

/* Bits of leaf 1 ECX that this vCPU shows beyond those of all. */
u32 cpuid_own_ecx(const struct vcpu *v);

#endif
