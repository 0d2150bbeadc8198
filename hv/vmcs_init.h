/* SPDX-License-Identifier: Apache-2.0 */
/* First contents of a VMCS, and the controls L0 wants for an L1. */
#ifndef NIDUS_HV_VMCS_INIT_H
#define NIDUS_HV_VMCS_INIT_H

#include "hv/types.h"

struct vcpu;

/* What VMCS01 holds for controls; nested/ merges VMCS12 into the same needs. Set once at boot by
 * vmcs_init_caps. */
struct l0_controls {
	u32 pin, proc, sec, exit, entry;
	u32 exceptions;
	unsigned timer_shift;  /* the preemption timer counts TSC >> timer_shift */
	u64 eptp_flags;        /* memory type, walk length (and A/D) of every EPTP L0 makes */
	unsigned ept_max_leaf; /* as struct ept */
	u64 ept_vpid_cap;
};
extern struct l0_controls l0_controls;

/* Choose controls from the capability MSRs. False after an error line: something L0 cannot do without is
 * missing. */
bool vmcs_init_caps(void);
/* Host area of the current VMCS: L0's state on this CPU, RSP at v->regs[16]. */
void vmcs_write_host_state(struct vcpu *v);
/* Everything but the guest area of VMCS01. Pre: VMCS01 is current. */
void vmcs_init_l1(struct vcpu *v);
/* Ticks (host TSC) until this vCPU is looked at again, whatever it does, of which `used` are gone; written to
 * the current VMCS as preemption-timer value. */
void vmcs_arm_slice(struct vcpu *v, u64 used);

#endif
