/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nested/ asks of an enlightened VMCS: where the page is (VP assist page), what changed in it (clean
 * fields), and what goes back. Pages lie in L1's RAM, which never moves: their machine address is kept, their
 * content never believed. TLFS "Enlightened VMCS".
 */
#include "hyperv/assist.h"
#include "hyperv/evmcs.h"
#include "hyperv/internal.h"
#include "mm/guest_access.h"
#include "nested/enlightened.h"
#include "nested/vmcs02.h"

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type takes no parentheses */
#define AT(type, page, at) (*(volatile type *)(void *)((char *)(page) + (at)))

static u64 active(struct vcpu *v)
{
	const struct hv_vp *vp = hv_vp(v);
	const volatile struct assist_page *p = hpa_ptr(vp->assist_at);
	u64 ptr = NO_VMCS;

	if (!(vp->assist & HV_PAGE_ENABLE))
		return NO_VMCS;
	guest_access_begin();
	if (p->enlighten_vmentry)
		ptr = p->current_nested_vmcs;
	guest_access_end();
	return ptr ? ptr : NO_VMCS;
}

/* NULL: no RAM. */
static void *page_of(struct vcpu *v, u64 ptr)
{
	struct hv_vp *vp = hv_vp(v);

	if (vp->evmcs_gpa != ptr) {
		if (ptr & ~PAGE_MASK || !hv_page_ok(v->guest, ptr, &vp->evmcs_at))
			return NULL;
		vp->evmcs_gpa = ptr;
	}
	return hpa_ptr(vp->evmcs_at);
}

static void take_enlightenments(struct hv_vp *vp, struct enlightenments *to, void *page)
{
	*to = (struct enlightenments){
		.control = AT(u32, page, EVMCS_CONTROL),
		.vp_id = AT(u32, page, EVMCS_VP_ID),
		.vm_id = AT(u64, page, EVMCS_VM_ID),
		.partition_assist = AT(u64, page, EVMCS_PARTITION_ASSIST),
	};
	__atomic_fetch_or(&vp->l2_vps, BIT(to->vp_id % 64), __ATOMIC_SEQ_CST);
}

static void count_clean(u64 *counter, u32 groups)
{
	*counter += GROUP_ENLIGHTENMENTS + 1;
	for (u32 read = groups & EVMCS_CLEAN_ALL; read; read &= read - 1)
		--*counter;
}

/* Groups to read; 0: a page of another version. Pre: window to guest memory is open. */
static u32 wanted(void *page, bool fresh)
{
	u32 revision = AT(u32, page, EVMCS_REVISION), clean = AT(u32, page, EVMCS_CLEAN_FIELDS);

	if (revision != EVMCS_VERSION && revision != VMCS12_REVISION)
		return 0;
	return EVMCS_ALWAYS | (fresh ? EVMCS_CLEAN_ALL : ~clean & EVMCS_CLEAN_ALL);
}

static bool copy_in(struct vcpu *v, struct vmcs02 *e, bool fresh)
{
	void *page = page_of(v, e->ptr);
	u32 groups;

	if (!page)
		return false;
	guest_access_begin();
	groups = wanted(page, fresh);
	if (groups) {
		e->dirty |= evmcs_copy_in(&e->v12, page, groups);
		if (groups & BIT32(GROUP_ENLIGHTENMENTS))
			take_enlightenments(hv_vp(v), &e->ext, page);
	}
	guest_access_end();
	if (!groups)
		return false;
	count_clean(&hv_vp(v)->count[COUNT_CLEAN_GROUPS], groups);
	e->bitmap_clean = e->ext.control & ENLIGHTENED_MSR_BITMAP && !(groups & BIT32(GROUP_MSR_BITMAP));
	return true;
}

static void set_clean(struct vcpu *v, struct vmcs02 *e)
{
	void *page = page_of(v, e->ptr);

	hv_vp(v)->count[COUNT_ENTRIES]++;
	hv_vp(v)->count[COUNT_BITMAPS_KEPT] += e->bitmap_clean;
	guest_access_begin();
	AT(u32, page, EVMCS_CLEAN_FIELDS) = EVMCS_CLEAN_ALL;
	guest_access_end();
}

static void copy_out(struct vcpu *v, struct vmcs02 *e, bool guest_area)
{
	void *page = page_of(v, e->ptr);

	guest_access_begin();
	evmcs_put_info(page, &e->v12);
	if (guest_area)
		evmcs_put_area(page, &e->v12);
	guest_access_end();
}

static u64 load(void *page, u16 at, u8 bytes)
{
	switch (bytes) {
	case 2:
		return AT(u16, page, at);
	case 4:
		return AT(u32, page, at);
	default:
		return AT(u64, page, at);
	}
}

static bool read_field(struct vcpu *v, struct vmcs02 *e, u64 encoding, u64 *value)
{
	void *page = page_of(v, e->ptr);
	struct vmcs12_field f;
	u16 at;
	u8 bytes;

	if (!page || !vmcs12_lookup(encoding, &f) || !evmcs_find(&f, &at, &bytes))
		return false;
	guest_access_begin();
	*value = load(page, at, bytes);
	guest_access_end();
	if (f.high)
		*value >>= 32;
	return true;
}

const struct enlightened hv_enlightened = {
	.active = active,
	.copy_in = copy_in,
	.set_clean = set_clean,
	.copy_out = copy_out,
	.read = read_field,
	.l2_call = direct_flush,
};
