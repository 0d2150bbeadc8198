/* SPDX-License-Identifier: Apache-2.0 */
/* CPUID leaves 0x40000000 on. Only what works is shown. TLFS "Feature and Interface Discovery". */
#include "hv/cpuid.h"
#include "hyperv/internal.h"

/* Leaf 0x40000003 EAX: privileges. */
#define ACCESS_VP_RUNTIME        BIT32(0)
#define ACCESS_REFERENCE_COUNTER BIT32(1)
#define ACCESS_SYNIC             BIT32(2)
#define ACCESS_SYNTHETIC_TIMERS  BIT32(3)
#define ACCESS_INTR_CONTROL      BIT32(4)
#define ACCESS_HYPERCALL         BIT32(5)
#define ACCESS_VP_INDEX          BIT32(6)
#define ACCESS_RESET             BIT32(7)
#define ACCESS_REFERENCE_TSC     BIT32(9)
#define ACCESS_FREQUENCIES       BIT32(11)
/* EDX: features. */
#define HAS_FREQUENCIES    BIT32(8)
#define HAS_CRASH_MSRS     BIT32(10)
#define HAS_DIRECT_STIMERS BIT32(19)
/* Leaf 0x40000004 EAX: recommendations. */
#define USE_REMOTE_FLUSH       BIT32(2)
#define USE_RELAXED_TIMING     BIT32(5)
#define NO_AUTO_EOI            BIT32(9)
#define USE_CLUSTER_IPI        BIT32(10)
#define USE_EX_PROCESSOR_MASKS BIT32(11)
#define USE_ENLIGHTENED_VMCS   BIT32(14)
#define SPIN_NEVER             0xffffffffu
/* Leaf 0x40000006 EAX: hardware features in use. */
#define HW_MSR_BITMAPS BIT32(1)
#define HW_SLAT        BIT32(3)
/* Leaf 0x4000000a EAX. */
#define EVMCS_VERSIONS       0x0101u /* lowest and highest: 1 */
#define NESTED_DIRECT_FLUSH  BIT32(17)
#define NESTED_MAPPING_FLUSH BIT32(18)
#define NESTED_MSR_BITMAP    BIT32(19)

#define LEAF_PLAIN  0x40000006u
#define LEAF_NESTED 0x4000000au

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
	case 0x40000000: /* "Microsoft Hv" */
		return (struct cpuid){v->nested ? LEAF_NESTED : LEAF_PLAIN, 0x7263694d, 0x666f736f,
				      0x76482074};
	case 0x40000001: /* "Hv#1" */
		return (struct cpuid){.eax = 0x31237648};
	case 0x40000002:
		return (struct cpuid){.eax = 0x3839, .ebx = 0x000a0000};
	case 0x40000003:
		return (struct cpuid){.eax = ACCESS_VP_RUNTIME | ACCESS_REFERENCE_COUNTER | ACCESS_SYNIC |
					     ACCESS_SYNTHETIC_TIMERS | ACCESS_INTR_CONTROL |
					     ACCESS_HYPERCALL | ACCESS_VP_INDEX | ACCESS_RESET |
					     ACCESS_REFERENCE_TSC | ACCESS_FREQUENCIES,
				      .edx = HAS_FREQUENCIES | HAS_CRASH_MSRS | HAS_DIRECT_STIMERS};
	case 0x40000004:
		return recommendations(v);
	case 0x40000005:
		return (struct cpuid){.eax = VCPUS_MAX, .ebx = VCPUS_MAX};
	case 0x40000006:
		return (struct cpuid){.eax = HW_MSR_BITMAPS | HW_SLAT};
	case 0x4000000a:
		return (struct cpuid){.eax = v->nested ? EVMCS_VERSIONS | NESTED_DIRECT_FLUSH |
								 NESTED_MAPPING_FLUSH | NESTED_MSR_BITMAP
						       : 0};
	default:
		return (struct cpuid){0};
	}
}
