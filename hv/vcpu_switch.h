/* SPDX-License-Identifier: Apache-2.0 */
/* State that stays in a CPU's registers while one vCPU has it: moved only when another vCPU gets the CPU. */
#ifndef NIDUS_HV_VCPU_SWITCH_H
#define NIDUS_HV_VCPU_SWITCH_H

#include "hv/types.h"

struct vcpu;

/* Make `v` the one whose state this CPU holds (saving the one before), and its VMCS current. */
void vcpu_load(struct vcpu *v);
/* If this CPU holds v's state, save it to *v and hold nobody's. */
void vcpu_unload(struct vcpu *v);

/* The XSAVE area of a vCPU, in the state after reset. NULL: no memory. */
void *fpu_alloc(void);
void fpu_free(void *area);
void fpu_reset(void *area);
/* XCR0 bits this CPU and L0 support. */
u64 xcr0_supported(void);

/* hv/event.c: struct level's fault function for L1. */
struct event;
void fault_l1(struct vcpu *v, const struct event *e);

#endif
