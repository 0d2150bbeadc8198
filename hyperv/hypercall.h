/* SPDX-License-Identifier: Apache-2.0 */
/* Between the dispatcher of hypercalls and the calls. Pre, everywhere: VMCS01 is current. */
#ifndef NIDUS_HYPERV_HYPERCALL_H
#define NIDUS_HYPERV_HYPERCALL_H

#include "hyperv/call.h"
#include "hyperv/internal.h"

/* `in` is L0's own copy of the input. *again: not finished, L1 is to repeat the VMCALL. */
typedef enum hv_status call_fn(struct vcpu *v, const struct call *c, const u64 *in, bool *again);

/* flush.c */
call_fn flush_space, flush_list, flush_space_ex, flush_list_ex;
/* Flags and VPs of an L2's flush call; VP n is bit n modulo 64. */
enum hv_status flush_of_l2(const struct call *c, const u64 *in, u64 *vps);
/* gpa.c */
call_fn flush_gpa_space, flush_gpa_list;
/* ipi.c */
call_fn send_ipi, send_ipi_ex;

/* hypercall.c: of the level that runs. */
struct hypercall_regs {
	u64 control;
	u64 input, output; /* addresses, or fast input */
	bool wide;
};
struct hypercall_regs hypercall_registers(const struct vcpu *v);
void hypercall_result(struct vcpu *v, const struct hypercall_regs *r, u64 result);
bool hypercall_is_legal(const struct hypercall_regs *r);

/* wait.c: see there. `what` tells calls of the same registers apart. */
bool wait_is_repeated(struct vcpu *v, u64 what);
void wait_ask(struct vcpu *v, u64 vps, u32 pending); /* all but v itself; PEND_VPID or PEND_TLB */
bool wait_is_over(struct vcpu *v);

/* One bit for each vCPU of the guest. */
static inline u64 all_vps(const struct vcpu *v)
{
	return MASK(v->guest->nr_vcpus);
}

_Static_assert(VCPUS_MAX < 64, "one mask holds all VPs");

#endif
