/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VP assist page: where L1 put it, and what L0 reads in it. L0 never writes it: no EOI assist is offered.
 * TLFS "Virtual Processor Assist Page".
 */
#include "hyperv/assist.h"
#include "hyperv/internal.h"
#include "nested/enlightened.h"

bool assist_read(struct vcpu *v, u32 msr, u64 *value)
{
	(void)msr;
	*value = hv_vp(v)->assist;
	return true;
}

/* Whatever the old page said about an enlightened VMCS ends here. */
bool assist_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_vp *vp = hv_vp(v);
	hpa_t at = HPA(0);

	(void)msr;
	if (value & HV_PAGE_ENABLE && !hv_page_ok(v->guest, value, &at))
		return false;
	if (v->nested && value != vp->assist)
		nested_leave_enlightened(v);
	vp->assist = value;
	vp->assist_at = at;
	return true;
}

void assist_reset(struct vcpu *v)
{
	struct hv_vp *vp = hv_vp(v);

	vp->assist = 0;
	vp->evmcs_gpa = ~0ull;
}
