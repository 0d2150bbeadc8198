/* SPDX-License-Identifier: Apache-2.0 */
/* vCPUs on physical CPUs: each is pinned to one; those that share it take turns. */
#ifndef NIDUS_HV_SCHED_H
#define NIDUS_HV_SCHED_H

#include "hv/types.h"

struct vcpu;

/* Put a vCPU on its CPU's ring. Boot CPU, before the CPUs enter sched_loop. */
void sched_add(struct vcpu *v);
/* Called on every CPU once guests exist. */
void sched_loop(void) __attribute__((noreturn));
/* The next vCPU to enter on this CPU after `v` (NULL: from the start); waits until there is one. Its VMCS is
 * current, its gate passed. */
struct vcpu *sched_next(struct vcpu *v);
/* From the gate: v's guest ends; v will not run any more (in this life of its guest). */
void sched_vcpu_stopped(struct vcpu *v);

#endif
