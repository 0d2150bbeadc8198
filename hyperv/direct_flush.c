/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L2's own flush calls, done by L0 when L1 allowed it: what L0 holds of the VPs named is flushed, on every
 * CPU, and L2 goes on. More may be flushed: whole tags, and VPs with the same number modulo 64. TLFS "Direct
 * Virtual Flush". Pre, everywhere: VMCS02 is current.
 */
#include "hyperv/assist.h"
#include "hyperv/hypercall.h"
#include "mm/guest_copy.h"
#include "nested/enlightened.h"
#include "nested/vmcs02.h"

#define EXIT_TRAP_AFTER_FLUSH 0x10000031u /* TLFS, synthetic exit reason */

/* L1 asks for it in the VP assist page and in the eVMCS, and has a partition assist page. */
static bool is_allowed(struct vcpu *v, const struct vmcs02 *e)
{
	const struct hv_vp *vp = hv_vp(v);
	u32 features = 0;

	return vp->assist & HV_PAGE_ENABLE && e->ext.control & ENLIGHTENED_NESTED_FLUSH &&
	       guest_read(&v->guest->mem,
			  GPA(HV_PAGE_GPA(vp->assist) + offsetof(struct assist_page, nested_features)),
			  &features, sizeof(features)) &&
	       features & ASSIST_DIRECT_HYPERCALL;
}

/* TLFS "Partition Assist Page": its first word counts the locks L1's VPs hold. */
static bool read_lock_count(struct vcpu *v, const struct vmcs02 *e, u32 *count)
{
	gpa_t at = GPA(e->ext.partition_assist & PAGE_MASK);

	return at.v && guest_read(&v->guest->mem, at, count, sizeof(*count));
}

static enum hv_status fetch(struct vcpu *v, u64 at, const struct call *c)
{
	u64 bytes = 8ull * call_words(c);

	if (at & 7 || (at & ~PAGE_MASK) + bytes > PAGE_SIZE)
		return HV_INVALID_ALIGNMENT;
	return nested_read_l2(v, NGPA(at), hv_vp(v)->input, bytes) ? HV_SUCCESS : HV_INVALID_PARAMETER;
}

/* L1's vCPUs that may hold something of these VPs, of whichever L2: each says so before it enters one, and
 * L2 changed its tables before it called. */
static u64 holders(const struct vcpu *v, u64 vps)
{
	const struct guest *g = v->guest;
	u64 holders = 0;

	for (unsigned i = 0; i < g->nr_vcpus; i++)
		if (__atomic_load_n(&hv_vp(g->vcpu[i])->l2_vps, __ATOMIC_SEQ_CST) & vps)
			holders |= BIT(i);
	return holders;
}

static enum hv_status flush(struct vcpu *v, const struct vmcs02 *e, const struct call *c, bool *again)
{
	u64 vps;
	enum hv_status s = flush_of_l2(c, hv_vp(v)->input, &vps);

	if (s != HV_SUCCESS)
		return s;
	if (!wait_is_repeated(v, e->ext.vm_id)) {
		nested_flush_vm(v, e->ext.vm_id, vps);
		wait_ask(v, holders(v, vps), PEND_TLB);
	}
	*again = !wait_is_over(v);
	return HV_SUCCESS;
}

bool direct_flush(struct vcpu *v, struct vmcs02 *e, enum exit_action *action)
{
	struct hypercall_regs r = hypercall_registers(v);
	bool again = false;
	struct call c;
	enum hv_status s;
	u32 locks = 0;

	if (!is_allowed(v, e) || !hypercall_is_legal(&r) || !call_is_flush(r.control) ||
	    !read_lock_count(v, e, &locks))
		return false;
	s = call_decode(r.control, &c);
	if (s == HV_SUCCESS && c.fast)
		return false; /* more input than L0 takes in registers: L1's */
	if (s == HV_SUCCESS)
		s = fetch(v, r.input, &c);
	if (s == HV_SUCCESS)
		s = flush(v, e, &c, &again);
	*action = again ? RESUME : RESUME_NEXT;
	if (again)
		return true;
	hv_vp(v)->count[COUNT_DIRECT_FLUSH] += s == HV_SUCCESS;
	hypercall_result(v, &r, call_result(&c, s));
	if (s == HV_SUCCESS && locks)
		*action = nested_exit_after(v, EXIT_TRAP_AFTER_FLUSH);
	return true;
}
