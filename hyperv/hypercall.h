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
/* gpa.c */
call_fn flush_gpa_space, flush_gpa_list;
/* ipi.c */
call_fn send_ipi, send_ipi_ex;

/* wait.c: see there. `what` tells calls of the same registers apart. */
bool wait_is_repeated(struct vcpu *v, u64 what);
void wait_ask(struct vcpu *v, u64 vps); /* all but v itself */
bool wait_is_over(struct vcpu *v);

/* One bit for each vCPU of the guest. */
static inline u64 all_vps(const struct vcpu *v)
{
	return MASK(v->guest->nr_vcpus);
}

_Static_assert(VCPUS_MAX < 64, "one mask holds all VPs");

#endif
