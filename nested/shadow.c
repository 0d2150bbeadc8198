/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shadows of L1's VMCSs: made current only to be filled and read out; VM entries of L1 find the current
 * VMCS's at VMCS01's link pointer. Like every VMCS they are active on the CPU of their vCPU and nowhere else.
 */
#include "nested/shadow.h"
#include "hv/lib.h"
#include "mm/palloc.h"
#include "nested/internal.h"

#define TYPE_SHADOW BIT32(31) /* of the first dword of the region */

static struct shadow_maps maps;
static bool has_timer;

/* L0 fills in exit information, which takes VMWRITE to any field. */
bool shadow_possible(const struct vmx_caps *hw, const struct vmx_caps *l1)
{
	shadow_maps_fill(&maps, l1);
	has_timer = caps_may1(l1->true_pin) & PIN_TIMER;
	return caps_may1(hw->sec) & SEC_SHADOW_VMCS && hw->misc & VMX_MISC_WRITE_INFO;
}

bool shadow_create(struct shadow *s)
{
	if (!vmcs_create(&s->hw))
		return false;
	*(u32 *)s->hw.page |= TYPE_SHADOW;
	return true;
}

void shadow_free(struct shadow *s)
{
	if (!s->hw.page)
		return;
	if (s->hw.cpu)
		vmcs_clear(&s->hw);
	page_free(s->hw.page);
}

void shadow_switch(struct vcpu *v, bool on)
{
	u32 sec = vmcs_read32(VMCS_SEC_CTL) & ~SEC_SHADOW_VMCS;

	if (!v->nested->shadowing)
		return;
	vmcs_write32(VMCS_SEC_CTL, on ? sec | SEC_SHADOW_VMCS : sec);
	vmcs_write64(VMCS_VMREAD_BITMAP, ptr_hpa(maps.read).v);
	vmcs_write64(VMCS_VMWRITE_BITMAP, ptr_hpa(maps.write).v);
	vmcs_write64(VMCS_LINK_POINTER, NO_VMCS);
}

/* Without a current VMCS the link pointer makes hardware say VMfailInvalid, as L1 is due. */
void shadow_link(struct vcpu *v)
{
	struct vmcs02 *e = v->nested->current;
	struct shadow *s = e ? &e->shadow : NULL;

	if (!v->nested->shadowing)
		return;
	if (s && !s->live) {
		shadow_publish(e);
		s->live = true;
		vmcs_load(&v->vmcs01);
	}
	vmcs_write64(VMCS_LINK_POINTER, s ? ptr_hpa(s->hw.page).v : NO_VMCS);
}

/* One field; `h` is what the shadow holds, `c` VMCS12. */
#define COLLECT(width, name, member)                                                                         \
	do {                                                                                                 \
		vmcs12_##width value = (vmcs12_##width)vmcs_read_raw(VMCS_##name);                           \
                                                                                                             \
		if (value != h->member) {                                                                    \
			h->member = c->member = value;                                                       \
			e->dirty |= BIT32(VMCS12_GROUP(VMCS_##name));                                        \
		}                                                                                            \
	} while (0);
#define PUBLISH(width, name, member)                                                                         \
	if (c->member != h->member) {                                                                        \
		h->member = c->member;                                                                       \
		vmcs_write_raw(VMCS_##name, c->member);                                                      \
	}

void shadow_collect(struct vmcs02 *e, bool all)
{
	typeof(e->shadow.holds) *h = &e->shadow.holds;
	struct vmcs12 *c = &e->v12;

	vmcs_load(&e->shadow.hw);
	SHADOW_LIVE(COLLECT)
	SHADOW_CONTROL(COLLECT)
	if (c->entry_intr_info & INTR_VALID || all) {
		SHADOW_EVENT(COLLECT)
	}
	if (c->proc_ctl & PROC_TPR_SHADOW || all) {
		SHADOW_TPR(COLLECT)
	}
	if (has_timer && (c->pin_ctl & PIN_TIMER || all)) {
		SHADOW_TIMER(COLLECT)
	}
}

void shadow_settle(struct vcpu *v, struct vmcs02 *e)
{
	if (!e->shadow.live)
		return;
	shadow_collect(e, true);
	e->shadow.live = false;
	vmcs_load(v->vmcs);
}

/* Hardware's first contents are undefined: then everything is written. */
static void fill(struct vmcs02 *e)
{
	typeof(e->shadow.holds) *h = &e->shadow.holds;
	const struct vmcs12 *c = &e->v12;

#define X(width, name, member) h->member = (vmcs12_##width) ~c->member;
	SHADOW_FIELDS(X)
#undef X
	e->shadow.known = true;
}

void shadow_publish(struct vmcs02 *e)
{
	typeof(e->shadow.holds) *h = &e->shadow.holds;
	const struct vmcs12 *c = &e->v12;

	vmcs_load(&e->shadow.hw);
	if (unlikely(!e->shadow.known))
		fill(e);
	SHADOW_INFO(PUBLISH)
	SHADOW_LIVE(PUBLISH)
	if (has_timer) {
		SHADOW_TIMER(PUBLISH)
	}
	if (likely(e->shadow.live))
		return;
	SHADOW_CONTROL(PUBLISH)
	SHADOW_EVENT(PUBLISH)
	SHADOW_TPR(PUBLISH)
}
