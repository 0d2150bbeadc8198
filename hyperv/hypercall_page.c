/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's identity and the page through which it makes hypercalls: code that L0 writes into L1's RAM, and
 * takes away again with what it covered. TLFS "Establishing the Hypercall Interface".
 */
#include "hv/lib.h"
#include "hyperv/internal.h"
#include "mm/guest_copy.h"

/* endbr64; vmcall; ret. The first is a no-operation where control-flow enforcement is off. */
static const u8 code[HYPERCALL_CODE_SIZE] = {0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x01, 0xc1, 0xc3};

static void cover(struct guest *g, struct hv_partition *p, u64 msr)
{
	gpa_t at = GPA(HV_PAGE_GPA(msr));

	if (!(msr & HV_PAGE_ENABLE))
		return;
	guest_read(&g->mem, at, p->covered, sizeof(p->covered));
	guest_write(&g->mem, at, code, sizeof(code));
}

/* Only what is still L0's code: L1 may have used the page for something else without telling. */
static void uncover(struct guest *g, struct hv_partition *p)
{
	gpa_t at = GPA(HV_PAGE_GPA(p->hypercall));
	u8 now[HYPERCALL_CODE_SIZE];

	if (p->hypercall & HV_PAGE_ENABLE && guest_read(&g->mem, at, now, sizeof(now)) &&
	    !memcmp(now, code, sizeof(code)))
		guest_write(&g->mem, at, p->covered, sizeof(p->covered));
}

void hypercall_page_reset(struct guest *g)
{
	struct hv_partition *p = g->partition;

	p->os_id = p->hypercall = 0;
}

/* Without an identity there is no interface. */
bool os_id_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_partition *p = hv_partition(v);

	(void)msr;
	spin_lock(&p->lock);
	if (!value) {
		uncover(v->guest, p);
		p->hypercall &= ~HV_PAGE_ENABLE;
	}
	p->os_id = value;
	spin_unlock(&p->lock);
	return true;
}

bool hypercall_page_write(struct vcpu *v, u32 msr, u64 value)
{
	struct hv_partition *p = hv_partition(v);
	hpa_t at;

	(void)msr;
	if (value & HV_PAGE_ENABLE && !hv_page_ok(v->guest, value, &at))
		return false;
	spin_lock(&p->lock);
	if (!(p->hypercall & HYPERCALL_LOCKED)) {
		uncover(v->guest, p);
		if (!p->os_id)
			value &= ~HV_PAGE_ENABLE;
		cover(v->guest, p, value);
		p->hypercall = value;
	}
	spin_unlock(&p->lock);
	return true;
}
