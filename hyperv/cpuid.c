/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID leaves 0x40000000 on. Only what works is shown. TLFS "Feature and Interface Discovery". */
#include "hv/cpuid.h"
#include "hyperv/internal.h"

#define SPIN_NEVER     0xffffffffu
#define EVMCS_VERSIONS 0x0101u /* lowest and highest: 1 */

static struct cpuid recommendations(const struct vcpu *v)
{
	u32 eax = USE_REMOTE_FLUSH | USE_RELAXED_TIMING | NO_AUTO_EOI | USE_CLUSTER_IPI |
		  USE_EX_PROCESSOR_MASKS;

	if (v->nested)
		eax |= USE_ENLIGHTENED_VMCS;
	return (struct cpuid){.eax = eax, .ebx = SPIN_NEVER};
}

/* The identity is the same for every guest; version and build are those of the interface, not of Nidus. */
struct cpuid hv_cpuid(struct vcpu *v, u32 leaf)
{
	switch (leaf) {
	case LEAF_VENDOR: /* "Microsoft Hv" */
		return (struct cpuid){v->nested ? LEAF_NESTED : LEAF_HARDWARE, 0x7263694d, 0x666f736f,
				      0x76482074};
	case LEAF_INTERFACE:
		return (struct cpuid){.eax = INTERFACE_HV1};
	case LEAF_VERSION:
		return (struct cpuid){.eax = 0x3839, .ebx = 0x000a0000};
	case LEAF_FEATURES:
		return (struct cpuid){.eax = ACCESS_VP_RUNTIME | ACCESS_REFERENCE_COUNTER | ACCESS_SYNIC |
					     ACCESS_SYNTHETIC_TIMERS | ACCESS_INTR_CONTROL |
					     ACCESS_HYPERCALL | ACCESS_VP_INDEX | ACCESS_RESET |
					     ACCESS_REFERENCE_TSC | ACCESS_FREQUENCIES,
				      .edx = HAS_FREQUENCIES | HAS_CRASH_MSRS | HAS_DIRECT_STIMERS};
	case LEAF_RECOMMENDATIONS:
		return recommendations(v);
	case LEAF_LIMITS:
		return (struct cpuid){.eax = VCPUS_MAX, .ebx = VCPUS_MAX};
	case LEAF_HARDWARE:
		return (struct cpuid){.eax = HW_MSR_BITMAPS | HW_SLAT};
	case LEAF_NESTED:
		return (struct cpuid){.eax = v->nested ? EVMCS_VERSIONS | NESTED_DIRECT_FLUSH |
								 NESTED_MAPPING_FLUSH | NESTED_MSR_BITMAP
						       : 0};
	default:
		return (struct cpuid){0};
	}
}
