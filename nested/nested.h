/* SPDX-License-Identifier: Apache-2.0 */
/* Nested VMX as the floors beside and above see it. What hv/ calls is declared in hv/vcpu.h, so that hv/
 * names nothing of this folder. */
#ifndef NIDUS_NESTED_NESTED_H
#define NIDUS_NESTED_NESTED_H

#include "hv/types.h"

struct vcpu;

/* L2 runs on this vCPU (or is halted on it). */
bool nested_in_l2(const struct vcpu *v);

#endif
