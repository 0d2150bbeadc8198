/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting in a hypercall until other vCPUs have passed their gates: no old translation is used behind it. A
 * vCPU out of the guest passes it before it enters again. For the others the call does not end but is
 * repeated by L1 (RIP stays), so that the caller takes its interrupts meanwhile and nobody waits in L0.
 */
#include "hv/cpu.h"
#include "hv/lib.h"
#include "hyperv/hypercall.h"

/* Asked, and not yet past its gate. One that its CPU does not hold looks at its requests after it is loaded
 * and before it runs. */
static bool may_hold_old(const struct vcpu *v, const struct vcpu *w)
{
	if (w->cpu == v->cpu || !(__atomic_load_n(&w->pending, __ATOMIC_SEQ_CST) & (PEND_VPID | PEND_TLB)))
		return false;
	return __atomic_load_n(&w->cpu->loaded, __ATOMIC_SEQ_CST) == w;
}

/* The call that was waiting is here again, and not another one of the same form from an interrupt handler. */
bool wait_is_repeated(struct vcpu *v, u64 what)
{
	struct hv_vp *vp = hv_vp(v);
	const u64 key[4] = {v->regs[RCX], what, vmcs_read_nw(VMCS_GUEST_RIP), vmcs_read_nw(VMCS_GUEST_RSP)};
	bool same = vp->wait_vps && !memcmp(key, vp->wait_key, sizeof(key));

	memcpy(vp->wait_key, key, sizeof(key));
	return same;
}

void wait_ask(struct vcpu *v, u64 vps, u32 pending)
{
	vps &= all_vps(v) & ~BIT(v->index);
	for (unsigned i = 0; i < v->guest->nr_vcpus; i++)
		if (vps >> i & 1)
			vcpu_request(v->guest->vcpu[i], pending);
	hv_vp(v)->wait_vps |= vps;
}

bool wait_is_over(struct vcpu *v)
{
	struct hv_vp *vp = hv_vp(v);

	for (unsigned i = 0; i < v->guest->nr_vcpus; i++)
		if (vp->wait_vps >> i & 1 && !may_hold_old(v, v->guest->vcpu[i]))
			vp->wait_vps &= ~BIT(i);
	return !vp->wait_vps;
}
