/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic timers: four for each vCPU. All on the vCPU's own CPU. */
#ifndef NIDUS_HYPERV_STIMER_H
#define NIDUS_HYPERV_STIMER_H

#include "hv/types.h"

struct vcpu;

void stimer_init(struct vcpu *v);
void stimer_reset(struct vcpu *v);
/* HV_MSR_STIMER0_CONFIG to HV_MSR_STIMER3_COUNT. */
bool stimer_read(struct vcpu *v, u32 msr, u64 *value);
bool stimer_write(struct vcpu *v, u32 msr, u64 value);
/* L1 has freed a message slot: send what found no room. */
void stimer_retry(struct vcpu *v);

#endif
