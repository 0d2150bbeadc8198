/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of Hyper-V's interface, for the side that offers it and for the side that uses it (hyperv/client).
 * No code. */
#ifndef NIDUS_HYPERV_INTERFACE_H
#define NIDUS_HYPERV_INTERFACE_H

#include "hv/types.h"

/* TLFS "Feature and Interface Discovery". */
enum hv_leaf {
	LEAF_VENDOR = 0x40000000,
	LEAF_INTERFACE,
	LEAF_VERSION,
	LEAF_FEATURES,
	LEAF_RECOMMENDATIONS,
	LEAF_LIMITS,
	LEAF_HARDWARE,
	LEAF_NESTED = 0x4000000a,
};

#define INTERFACE_HV1 0x31237648u /* "Hv#1" */
/* LEAF_FEATURES EAX: privileges. */
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
/* LEAF_RECOMMENDATIONS EAX: recommendations. */
#define USE_REMOTE_FLUSH       BIT32(2)
#define USE_RELAXED_TIMING     BIT32(5)
#define NO_AUTO_EOI            BIT32(9)
#define USE_CLUSTER_IPI        BIT32(10)
#define USE_EX_PROCESSOR_MASKS BIT32(11)
#define USE_ENLIGHTENED_VMCS   BIT32(14)
/* LEAF_HARDWARE EAX: hardware features in use. */
#define HW_MSR_BITMAPS BIT32(1)
#define HW_SLAT        BIT32(3)
/* LEAF_NESTED EAX, above the lowest and the highest version of the enlightened VMCS. */
#define NESTED_DIRECT_FLUSH  BIT32(17)
#define NESTED_MAPPING_FLUSH BIT32(18)
#define NESTED_MSR_BITMAP    BIT32(19)

/* TLFS "Hypervisor Synthetic MSRs", in the order of their numbers. */
enum hv_msr {
	HV_MSR_GUEST_OS_ID = 0x40000000,
	HV_MSR_HYPERCALL = 0x40000001,
	HV_MSR_VP_INDEX = 0x40000002,
	HV_MSR_RESET = 0x40000003,
	HV_MSR_VP_RUNTIME = 0x40000010,
	HV_MSR_TIME_REF_COUNT = 0x40000020,
	HV_MSR_REFERENCE_TSC = 0x40000021,
	HV_MSR_TSC_FREQUENCY = 0x40000022,
	HV_MSR_APIC_FREQUENCY = 0x40000023,
	HV_MSR_EOI = 0x40000070,
	HV_MSR_ICR = 0x40000071,
	HV_MSR_TPR = 0x40000072,
	HV_MSR_VP_ASSIST_PAGE = 0x40000073,
	HV_MSR_SCONTROL = 0x40000080,
	HV_MSR_SVERSION = 0x40000081,
	HV_MSR_SIEFP = 0x40000082,
	HV_MSR_SIMP = 0x40000083,
	HV_MSR_EOM = 0x40000084,
	HV_MSR_SINT0 = 0x40000090,
	HV_MSR_SINT15 = 0x4000009f,
	HV_MSR_STIMER0_CONFIG = 0x400000b0,
	HV_MSR_STIMER3_COUNT = 0x400000b7,
	HV_MSR_CRASH_P0 = 0x40000100,
	HV_MSR_CRASH_P4 = 0x40000104,
	HV_MSR_CRASH_CTL = 0x40000105,
};

/* Pages that L1 names by an MSR: bit 0 enables, bits 63:12 are the page number. */
#define HV_PAGE_ENABLE BIT(0)
#define HV_PAGE_GPA(x) ((x)&PAGE_MASK)

#endif
