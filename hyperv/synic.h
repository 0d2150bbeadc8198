/* SPDX-License-Identifier: Apache-2.0 */
/* The synthetic interrupt controller of a VP, as far as L0's own messages (timers) need it. */
#ifndef NIDUS_HYPERV_SYNIC_H
#define NIDUS_HYPERV_SYNIC_H

#include "hv/types.h"

struct vcpu;

void synic_reset(struct vcpu *v);
/* HV_MSR_SCONTROL to HV_MSR_EOM, HV_MSR_SINT0 to HV_MSR_SINT15. */
bool synic_read(struct vcpu *v, u32 msr, u64 *value);
bool synic_write(struct vcpu *v, u32 msr, u64 value);

/* TLFS HV_MESSAGE, with the payload of a timer message. */
struct timer_message {
	u32 type;
	u8 payload_size, flags;
	u16 reserved0;
	u64 origin;
	u32 timer, reserved1;
	u64 expired, delivered; /* reference time */
};

/* Put a message into a SINT's slot and raise its interrupt. False: the slot is taken (L1 was told to say when
 * it is free, synic_write of HV_MSR_EOM) or there is none. */
bool synic_post(struct vcpu *v, unsigned sint, const struct timer_message *m);

#endif
