/* SPDX-License-Identifier: Apache-2.0 */
/* MSRs of an L1. */
#ifndef NIDUS_HV_MSR_H
#define NIDUS_HV_MSR_H

#include "hv/types.h"

struct vcpu;

/* Fill l1_msr_bitmap and the index of the table (boot CPU, once; after cpuid_init). */
void msr_init(void);

/* What stands in the table; false: #GP(0). */
typedef bool msr_read_fn(struct vcpu *v, u32 msr, u64 *value);
typedef bool msr_write_fn(struct vcpu *v, u32 msr, u64 value);

/* hv/msr_mtrr.c */
#define MTRR_VAR_COUNT 8u
bool mtrr_type_valid(u8 t);
msr_read_fn mtrr_read_cap, mtrr_read_var, mtrr_read_fixed, mtrr_read_def;
msr_write_fn mtrr_write_var, mtrr_write_fixed, mtrr_write_def;

#endif
