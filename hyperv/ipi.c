/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts from one VP to a set of them. TLFS "HvCallSendSyntheticClusterIpi". */
#include "hyperv/hypercall.h"

#define VECTOR_FIRST  0x10u
#define VECTOR_LAST   0xffu
#define IPI_VTL(word) ((u8)((word) >> 32))

static enum hv_status send(struct vcpu *v, u64 word, u64 vps)
{
	struct apic_message m = {.vector = (u8)word};

	if ((u32)word < VECTOR_FIRST || (u32)word > VECTOR_LAST || IPI_VTL(word))
		return HV_INVALID_PARAMETER;
	vps &= all_vps(v);
	for (unsigned i = 0; i < v->guest->nr_vcpus; i++) {
		m.dest = i;
		if (vps >> i & 1)
			apic_deliver(v->guest, &m);
	}
	return HV_SUCCESS;
}

enum hv_status send_ipi(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	(void)c, (void)again;
	return send(v, in[0], in[1]);
}

enum hv_status send_ipi_ex(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	u64 vps;
	enum hv_status s = call_vp_set(in + 1, c->variable, all_vps(v), &vps);

	(void)again;
	return s == HV_SUCCESS ? send(v, in[0], vps) : s;
}
