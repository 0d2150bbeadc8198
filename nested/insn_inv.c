/* SPDX-License-Identifier: Apache-2.0 */
/*
 * INVEPT and INVVPID of L1. Shadow EPTs are shared by the guest's vCPUs, so an INVEPT drops for all what L1
 * has changed; VPID tags belong to one vCPU. Pre: VMCS01 is current. SDM "INVEPT",
 * "INVVPID".
 */
#include "hv/tlb.h"
#include "nested/internal.h"
#include "nested/watch.h"

#define INFO_TYPE_REG(info) ((info) >> 28)

enum { INVEPT_SINGLE = 1, INVEPT_ALL };
enum { INVVPID_ADDRESS, INVVPID_SINGLE, INVVPID_ALL, INVVPID_SINGLE_GLOBALS };

/* The type operand has the width of the mode. */
static u64 inv_type(const struct vcpu *v, u32 info)
{
	u64 type = operand_register(v, INFO_TYPE_REG(info));

	return v->nested->wide ? type : (u32)type;
}

/* The check a VM entry would make of an EPTP, SDM "Checks on VMX Controls". */
static bool eptp_valid(const struct nested *n, u64 eptp)
{
	u64 cap = n->caps.ept_vpid;
	u64 type = eptp & 7;

	if (!(type == MEMTYPE_WB && cap & EPT_CAP_WB) && !(type == MEMTYPE_UC && cap & EPT_CAP_UC))
		return false;
	if ((eptp & (7u << 3)) != EPTP_WALK4 || (eptp & EPTP_AD && !(cap & EPT_CAP_AD)))
		return false;
	return !(eptp & 0xf80) && !(eptp >> n->facts.phys_bits);
}

enum exit_action emul_invept(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	u64 type = inv_type(v, info), d[2]; /* EPTP, reserved */

	if (!(type == INVEPT_SINGLE && n->caps.ept_vpid & EPT_CAP_INVEPT_SINGLE) &&
	    !(type == INVEPT_ALL && n->caps.ept_vpid & EPT_CAP_INVEPT_ALL))
		return vmfail(v, ERROR_INV_OPERAND);
	if (!operand_read(v, info, d, 2))
		return RESUME;
	if (type == INVEPT_SINGLE) {
		if (!eptp_valid(n, d[0]))
			return vmfail(v, ERROR_INV_OPERAND);
		sept_flush(n->sept, v, d[0]);
	} else {
		sept_flush_all(n->sept, v);
	}
	return vmsucceed(v);
}

/* L1 in xAPIC mode has another root than EPT01's. The other vCPUs need no interrupt for what waits. */
void watch_flush_tlb(struct vcpu *v)
{
	const struct guest *g = v->guest;

	for (u32 i = 0; i < g->nr_vcpus; i++)
		if (g->vcpu[i] != v)
			__atomic_fetch_or(&g->vcpu[i]->pending, PEND_TLB, __ATOMIC_SEQ_CST);
	invept_all();
}

/* The gate takes the request, flushes, and only then the guest runs. */
bool watch_tlb_flushed(struct vcpu *v, bool now)
{
	const struct guest *g = v->guest;
	bool done = true;

	for (u32 i = 0; i < g->nr_vcpus; i++) {
		struct vcpu *w = g->vcpu[i];

		if (w == v || !(__atomic_load_n(&w->pending, __ATOMIC_SEQ_CST) & PEND_TLB))
			continue;
		done = false;
		if (now)
			vcpu_request(w, PEND_TLB);
	}
	return done;
}

/* Only tags that hold something for this VPID; one that VMCS12 has left since is flushed when it is used
 * again. */
static void flush_vpid(struct nested *n, u64 type, u16 vpid, u64 linear)
{
	for (unsigned i = 0; i < NESTED_CACHE; i++) {
		const struct vmcs02 *e = n->cache[i];

		if (!e || !e->vpid12 || (type != INVVPID_ALL && e->vpid12 != vpid))
			continue;
		if (type == INVVPID_ADDRESS)
			invvpid_address(e->vpid, linear);
		else
			invvpid_single(e->vpid);
	}
}

enum exit_action emul_invvpid(struct vcpu *v)
{
	struct nested *n = v->nested;
	u32 info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	u64 type = inv_type(v, info), d[2]; /* VPID, linear address */

	if (type > INVVPID_SINGLE_GLOBALS || !(n->caps.ept_vpid & VPID_CAP_ADDRESS << type))
		return vmfail(v, ERROR_INV_OPERAND);
	if (!operand_read(v, info, d, 2))
		return RESUME;
	if (d[0] >> 16 || (type != INVVPID_ALL && !d[0]))
		return vmfail(v, ERROR_INV_OPERAND);
	if (type == INVVPID_ADDRESS && !is_canonical(d[1]))
		return vmfail(v, ERROR_INV_OPERAND);
	flush_vpid(n, type, (u16)d[0], d[1]);
	return vmsucceed(v);
}
