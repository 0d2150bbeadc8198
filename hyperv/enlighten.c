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
		l1mem_expose(&v->guest->mem, GPA(ptr));
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

/* Groups to read; 0: a page of another version. Pre: window to guest memory is open. */
static u32 wanted(void *page, bool fresh)
{
	u32 revision = AT(u32, page, EVMCS_REVISION), clean = AT(u32, page, EVMCS_CLEAN_FIELDS);

	if (unlikely(revision != EVMCS_VERSION && revision != VMCS12_REVISION))
		return 0;
	return EVMCS_ALWAYS | (fresh ? EVMCS_CLEAN_ALL : ~clean & EVMCS_CLEAN_ALL);
}

/* Groups beyond those that each entry reads. Pre: window to guest memory is open. */
static void copy_unclean(struct vcpu *v, struct vmcs02 *e, u32 groups)
{
	for (u32 read = groups; read; read &= read - 1)
		hv_vp(v)->count[COUNT_CLEAN_GROUPS]--;
	e->dirty |= evmcs_copy_in(&e->v12, e->page, groups);
	if (groups & BIT32(GROUP_ENLIGHTENMENTS))
		take_enlightenments(hv_vp(v), &e->ext, e->page);
}

/* Pre: the window to guest memory is open. */
static inline bool page_is_clean(void *page)
{
	return AT(u32, page, EVMCS_REVISION) == EVMCS_VERSION &&
	       (AT(u32, page, EVMCS_CLEAN_FIELDS) & EVMCS_CLEAN_ALL) == EVMCS_CLEAN_ALL;
}

/* What nearly every entry is: by the same page, with nothing but the fields changed that have no clean bit.
 */
static bool copy_in_again(struct vcpu *v, struct vmcs02 *e)
{
	struct hv_vp *vp = hv_vp(v);
	const volatile struct assist_page *p = hpa_ptr(vp->assist_at);
	bool same;

	if (unlikely(!(vp->assist & HV_PAGE_ENABLE)))
		return false;
	guest_access_begin();
	same = p->enlighten_vmentry && p->current_nested_vmcs == e->ptr && page_is_clean(e->page);
	if (likely(same))
		e->dirty |= evmcs_copy_live(&e->v12, e->page);
	guest_access_end();
	if (unlikely(!same))
		return false;
	vp->count[COUNT_ENTRIES]++;
	vp->count[COUNT_CLEAN_GROUPS] += GROUP_ENLIGHTENMENTS + 1;
	e->bitmap_clean = e->ext.control >> ENLIGHTENED_MSR_BITMAP_BIT & 1;
	vp->count[COUNT_BITMAPS_KEPT] += e->bitmap_clean;
	return true;
}

static bool copy_in(struct vcpu *v, struct vmcs02 *e, bool fresh)
{
	struct hv_vp *vp = hv_vp(v);
	u32 groups;

	e->page = page_of(v, e->ptr);
	if (!e->page)
		return false;
	guest_access_begin();
	groups = wanted(e->page, fresh);
	if (unlikely(groups & e->stale)) { /* what the last exit left only in VMCS02 is to be compared */
		guest_access_end();
		nested_fetch(v, e, groups);
		guest_access_begin();
	}
	if (unlikely(!groups)) {
		guest_access_end();
		return false;
	}
	e->dirty |= evmcs_copy_live(&e->v12, e->page);
	groups &= EVMCS_CLEAN_ALL;
	if (groups)
		copy_unclean(v, e, groups);
	AT(u32, e->page, EVMCS_CLEAN_FIELDS) = EVMCS_CLEAN_ALL;
	guest_access_end();
	vp->count[COUNT_ENTRIES]++;
	vp->count[COUNT_CLEAN_GROUPS] += GROUP_ENLIGHTENMENTS + 1;
	e->bitmap_clean = e->ext.control & ENLIGHTENED_MSR_BITMAP && !(groups & BIT32(GROUP_MSR_BITMAP));
	vp->count[COUNT_BITMAPS_KEPT] += e->bitmap_clean;
	return true;
}

#define PUT(what)                                                                                            \
	static void put_##what(struct vmcs02 *e)                                                             \
	{                                                                                                    \
		guest_access_begin();                                                                        \
		evmcs_put_##what(e->page, &e->v12);                                                          \
		guest_access_end();                                                                          \
	}
PUT(info)
PUT(failed)
PUT(error)
#undef PUT

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
	.copy_in_again = copy_in_again,
	.save = evmcs_save,
	.save_exit = evmcs_save_exit,
	.put_info = put_info,
	.put_failed = put_failed,
	.put_error = put_error,
	.read = read_field,
	.l2_call = direct_flush,
};
