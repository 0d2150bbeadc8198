/* SPDX-License-Identifier: Apache-2.0 */
/* Hyper-V's interface as a guest uses it: synthetic MSRs, hypercalls, VP assist page. TLFS. */
#pragma once

#include "types.h"

#define HV_MSR_GUEST_OS_ID    0x40000000
#define HV_MSR_HYPERCALL      0x40000001
#define HV_MSR_VP_INDEX       0x40000002
#define HV_MSR_VP_RUNTIME     0x40000010
#define HV_MSR_TIME           0x40000020
#define HV_MSR_REFERENCE_TSC  0x40000021
#define HV_MSR_TSC_FREQUENCY  0x40000022
#define HV_MSR_APIC_FREQUENCY 0x40000023
#define HV_MSR_EOI            0x40000070
#define HV_MSR_ICR            0x40000071
#define HV_MSR_TPR            0x40000072
#define HV_MSR_ASSIST         0x40000073
#define HV_MSR_SCONTROL       0x40000080
#define HV_MSR_SVERSION       0x40000081
#define HV_MSR_SIMP           0x40000083
#define HV_MSR_EOM            0x40000084
#define HV_MSR_SINT(n)        (0x40000090 + (n))
#define HV_MSR_STIMER0_CONFIG 0x400000b0
#define HV_MSR_STIMER0_COUNT  0x400000b1
#define HV_MSR_CRASH_P0       0x40000100
#define HV_MSR_CRASH_CTL      0x40000105

#define HV_OS_ID 0x8100000600000000ull

#define HV_SUCCESS           0
#define HV_INVALID_CODE      2
#define HV_INVALID_INPUT     3
#define HV_INVALID_ALIGNMENT 4
#define HV_INVALID_PARAMETER 5

#define HV_FAST         BIT(16)
#define HV_VARIABLE(n)  ((u64)(n) << 17)
#define HV_REPS(n)      ((u64)(n) << 32)
#define HV_START(n)     ((u64)(n) << 48)
#define HV_STATUS(r)    ((r)&0xffff)
#define HV_REPS_DONE(r) ((r) >> 32 & 0xfff)

/* True when the CPU says that Hyper-V is below; prints a SKIP line otherwise. */
bool hv_available(void);
/* Guest identity and hypercall page. */
void hv_start(void);
u8 *hv_hypercall_page(void);
/* Through the page; input and output are what RDX and R8 hold. */
u64 hv_call(u64 control, u64 input, u64 output);

/* This CPU's VP assist page, enabled on first use. */
struct hv_assist {
	u32 apic_assist, reserved0;
	u8 vtl_control[24];
	u32 nested_features, hypercall_controls;
	u8 enlighten_vmentry, reserved1[7];
	u64 current_nested_vmcs;
};
volatile struct hv_assist *hv_assist(void);
