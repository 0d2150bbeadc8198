/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an L1 finds beside the processor: a hypervisor's interface, or nothing (guest->personality NULL). The
 * processor's own CPUID leaves and MSRs stay with hv/; a personality answers only what hv/ does not know.
 * hv/ names nothing of who implements it.
 */
#ifndef NIDUS_HV_PERSONALITY_H
#define NIDUS_HV_PERSONALITY_H

#include "hv/vcpu.h"

struct personality {
	/* The vCPU is complete but for this; vCPU 0 comes first and may fill g->partition. False: no memory.
	 */
	bool (*create)(struct vcpu *v);
	void (*destroy)(struct vcpu *v);
	/* Power-on (init false, vCPU 0: of the whole guest) or INIT. Pre: VMCS01 is current. */
	void (*reset)(struct vcpu *v, bool init);
	/* Leaves 0x40000000 to 0x4000ffff. */
	struct cpuid (*cpuid)(struct vcpu *v, u32 leaf);
	/* MSRs that hv/msr.c does not have. False: #GP(0). */
	bool (*msr_read)(struct vcpu *v, u32 msr, u64 *value);
	bool (*msr_write)(struct vcpu *v, u32 msr, u64 value);
	/* VMCALL of L1, in VMX operation or not; where it is no hypercall, vmcall_without_interface. */
	enum exit_action (*vmcall)(struct vcpu *v);
	/* v->tsc_offset changed. */
	void (*tsc_moved)(struct vcpu *v);
	/* The guest has ended: a line of counters, if there is something to say. */
	void (*report)(const struct guest *g);
};

/* exit_misc.c: VMCALL where there is no interface, or L1 does not use it. */
enum exit_action vmcall_without_interface(struct vcpu *v);

/* What `hyperv=on` gives a guest; set by boot/main.c before the guests are made. */
extern const struct personality *personality_hyperv;

#endif
