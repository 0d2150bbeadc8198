/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMX instructions, entries and exits of an L1 that may use an enlightened VMCS: each function does what is
 * particular to it and goes on to the plain one. A guest without this has other tables (struct nested: emul,
 * level_l2), so nothing here costs it anything. Pre, of VMX instructions: VMCS01 is current.
 */
#include "nested/enlightened.h"
#include "hv/lib.h"
#include "hv/tlb.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

static bool is_enlightened(const struct vmcs02 *e)
{
	return e && e->enlightened;
}

/* --- which VMCS --- */

/* The page of the last entry, unless another vCPU has entered it since: else its clean fields mean nothing.
 */
static bool is_same_page(const struct nested *n, u64 ptr)
{
	return __atomic_load_n(&n->evmcs, __ATOMIC_ACQUIRE) == ptr;
}

/* An enlightened VMCS is active on one vCPU only; the one that had it must read it anew. */
static void take_page(struct vcpu *v, u64 ptr)
{
	struct guest *g = v->guest;

	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		struct nested *n = g->vcpu[i]->nested;
		u64 old = ptr;

		if (g->vcpu[i] != v)
			__atomic_compare_exchange_n(&n->evmcs, &old, NO_VMCS, false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	}
	__atomic_store_n(&v->nested->evmcs, ptr, __ATOMIC_RELEASE);
}

static void forget_page(struct nested *n)
{
	__atomic_store_n(&n->evmcs, NO_VMCS, __ATOMIC_RELEASE);
}

/* The current-VMCS pointer as VMPTRLD left it counts again. */
void nested_leave_enlightened(struct vcpu *v)
{
	struct nested *n = v->nested;

	forget_page(n);
	if (!is_enlightened(n->current))
		return;
	n->current = n->vmxon && n->plain != NO_VMCS ? vmcs02_get(v, n->plain) : NULL;
	n->plain = NO_VMCS;
}

static void make_fresh(struct vmcs02 *e)
{
	memset(&e->v12, 0, sizeof(e->v12));
	memset(&e->ext, 0, sizeof(e->ext));
	e->page = NULL;
	e->enlightened = true;
	e->bitmap_clean = false;
	e->dirty = GROUPS_ALL;
}

/* The entry for the page. A plain VMCS that was there is not written back: the page is L1's now. NULL: no
 * memory. */
static struct vmcs02 *find_entry(struct vcpu *v, u64 ptr)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = vmcs02_find(v, ptr);

	if (e && !e->enlightened) {
		if (e == n->current)
			n->current = NULL;
		e->enlightened = true;
		vmcs02_release(v, e);
		e = NULL;
	}
	if (e) {
		e->used = ++n->clock;
		return e;
	}
	e = vmcs02_get(v, ptr);
	if (e)
		make_fresh(e);
	return e;
}

static bool address_ok(const struct vcpu *v, u64 ptr)
{
	hpa_t at;
	u64 run;

	return !(ptr & (PAGE_SIZE - 1)) && ptr != v->nested->vmxon_ptr &&
	       l1mem_translate(&v->guest->mem, GPA(ptr), &at, &run) && run >= PAGE_SIZE;
}

/* Make it the current VMCS. False: VMfailInvalid. */
static bool select(struct vcpu *v, u64 ptr)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;

	if (likely(is_enlightened(e) && e->ptr == ptr))
		return true;
	if (!address_ok(v, ptr))
		return false;
	if (e && !e->enlightened)
		n->plain = e->ptr;
	e = find_entry(v, ptr);
	if (!e) {
		guest_end(v->guest, "killed: no memory for a nested VMCS");
		return false;
	}
	if (n->plain == ptr)
		n->plain = NO_VMCS;
	n->current = e;
	return true;
}

/* --- entry and exit --- */

/* A VMCALL that L0 serves for L2. */
static bool l2_call(struct vcpu *v, enum exit_action *a)
{
	struct nested *n = v->nested;

	if (!(n->current->ext.control & ENLIGHTENED_NESTED_FLUSH) ||
	    !n->enlightened->l2_call(v, n->current, a))
		return false;
	v->l2_exits[EXIT_VMCALL]++;
	n->event_in_entry = n->fresh = false;
	if (n->immediate_exit)
		__atomic_fetch_or(&v->pending, PEND_NESTED, __ATOMIC_RELAXED);
	if (v->level != &level_l1)
		*a = nested_go_on(v, *a);
	return true;
}

static __attribute__((noinline, cold)) enum exit_action exit_call(struct vcpu *v)
{
	enum exit_action a;

	return l2_call(v, &a) ? a : nested_exit(v, EXIT_VMCALL);
}

static enum exit_action exit_enlightened(struct vcpu *v, u32 reason)
{
	return unlikely(reason == EXIT_VMCALL) ? exit_call(v) : nested_exit(v, reason);
}

static const struct level level_l2_enlightened = {
	.exit = exit_enlightened, .gate = gate_l2, .fault = fault_l2, .translate = translate_l2};

/*
 * The page has no launch state: VMLAUNCH only says that nothing of it may be taken as known. Nor has the
 * entry a choice of its own: all groups are read when the page is another, or was another's.
 */
static enum exit_action enter(struct vcpu *v, u64 ptr, bool launch)
{
	struct nested *n = v->nested;
	bool fresh = launch || !is_same_page(n, ptr);
	struct vmcs02 *e;

	if (!select(v, ptr) || !n->enlightened->copy_in(v, n->current, fresh)) {
		nested_leave_enlightened(v);
		return vmfail_invalid(v);
	}
	e = n->current;
	if (fresh)
		take_page(v, ptr);
	e->launched = !launch;
	return launch ? emul_vmlaunch(v) : emul_vmresume(v);
}

static __attribute__((noinline)) enum exit_action enter_by_assist(struct vcpu *v, bool launch)
{
	u64 ptr = v->nested->enlightened->active(v);

	if (ptr != NO_VMCS)
		return enter(v, ptr, launch);
	nested_leave_enlightened(v);
	return launch ? emul_vmlaunch(v) : emul_vmresume(v);
}

/* --- the instructions --- */

static enum exit_action vmlaunch(struct vcpu *v)
{
	return enter_by_assist(v, true);
}

static enum exit_action vmresume(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;

	if (likely(is_enlightened(e) && is_same_page(n, e->ptr) && n->enlightened->copy_in_again(v, e))) {
		e->launched = true;
		return emul_vmresume(v);
	}
	return enter_by_assist(v, false);
}

static enum exit_action vmread(struct vcpu *v)
{
	struct nested *n = v->nested;
	u64 value = 0;

	if (!is_enlightened(n->current))
		return emul_vmread(v);
	if (!n->enlightened->read(v, n->current, vmread_encoding(v), &value))
		return vmfail(v, ERROR_NO_FIELD);
	return vmread_give(v, value);
}

/* TLFS: not supported while an enlightened VMCS is active. */
static enum exit_action vmwrite(struct vcpu *v)
{
	return is_enlightened(v->nested->current) ? vmfail_invalid(v) : emul_vmwrite(v);
}

/* The pointer is read twice; VMPTRLD of a page that was an enlightened VMCS finds an ordinary one. */
static enum exit_action vmptrld(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e;
	enum exit_action a;
	gpa_t ptr;

	if (!operand_pointer(v, &ptr))
		return RESUME;
	e = vmcs02_find(v, ptr.v);
	if (is_enlightened(e)) {
		if (e == n->current)
			nested_leave_enlightened(v);
		vmcs02_release(v, e);
	}
	a = emul_vmptrld(v);
	if (!is_enlightened(n->current)) {
		forget_page(n);
		n->plain = NO_VMCS;
	}
	return a;
}

static enum exit_action vmptrst(struct vcpu *v)
{
	struct nested *n = v->nested;

	if (!is_enlightened(n->current))
		return emul_vmptrst(v);
	return operand_write_any(v, &n->plain, sizeof(n->plain)) ? vmsucceed(v) : RESUME;
}

static enum exit_action vmclear(struct vcpu *v)
{
	struct nested *n = v->nested;
	gpa_t ptr;

	if (!operand_pointer(v, &ptr))
		return RESUME;
	if (is_enlightened(n->current) && n->current->ptr == ptr.v)
		nested_leave_enlightened(v);
	else if (ptr.v == n->plain)
		n->plain = NO_VMCS;
	return emul_vmclear(v);
}

static enum exit_action vmxoff(struct vcpu *v)
{
	nested_leave_enlightened(v);
	v->nested->plain = NO_VMCS;
	return emul_vmxoff(v);
}

/* By exit reason, as the plain table. */
static exit_fn *const emul_enlightened[EXIT_REASONS] = {
	[EXIT_VMCALL] = emul_vmcall, [EXIT_VMCLEAR] = vmclear,    [EXIT_VMLAUNCH] = vmlaunch,
	[EXIT_VMPTRLD] = vmptrld,    [EXIT_VMPTRST] = vmptrst,    [EXIT_VMREAD] = vmread,
	[EXIT_VMRESUME] = vmresume,  [EXIT_VMWRITE] = vmwrite,    [EXIT_VMXOFF] = vmxoff,
	[EXIT_VMXON] = emul_vmxon,   [EXIT_INVEPT] = emul_invept, [EXIT_INVVPID] = emul_invvpid,
};

void enlightened_error(struct vcpu *v)
{
	struct nested *n = v->nested;

	/* The page is written only while it is this vCPU's. After an entry that failed all of it is read. */
	if (!is_same_page(n, n->current->ptr))
		return;
	n->enlightened->put_error(n->current);
	forget_page(n);
}

void enlightened_failed_entry(struct vcpu *v)
{
	struct nested *n = v->nested;

	n->enlightened->put_failed(n->current);
	forget_page(n);
}

void nested_fetch(struct vcpu *v, struct vmcs02 *e, u32 groups)
{
	guest_area_fetch(v, e, groups);
}

/* --- L2's memory --- */

void nested_flush_gpa(struct vcpu *v, u64 eptp12, ngpa_t from, u64 bytes)
{
	if (bytes == ~0ull)
		sept_flush(v->nested->sept, v, eptp12);
	else
		sept_flush_range(v->nested->sept, eptp12, from, bytes);
}

u64 nested_inside(struct vcpu *v, u64 eptp12)
{
	return sept_inside(v->nested->sept, eptp12);
}

/* --- L2's calls --- */

bool nested_read_l2(struct vcpu *v, ngpa_t at, void *buf, size_t n)
{
	return l2_read_physical(v, at, buf, n);
}

void nested_flush_vm(struct vcpu *v, u64 vm_id, u64 vps)
{
	for (unsigned i = 0; i < NESTED_CACHE; i++) {
		const struct vmcs02 *e = v->nested->cache[i];

		if (is_enlightened(e) && e->ext.vm_id == vm_id && vps >> e->ext.vp_id % 64 & 1)
			invvpid_single(e->vpid);
	}
}

enum exit_action nested_exit_after(struct vcpu *v, u32 reason)
{
	insn_advance(v);
	return reflect_simple(v, reason, 0);
}

/* --- life --- */

void nested_enlighten(struct vcpu *v, const struct enlightened *en)
{
	struct nested *n = v->nested;

	n->emul = emul_enlightened;
	n->level_l2 = &level_l2_enlightened;
	n->enlightened = en;
	n->evmcs = n->plain = NO_VMCS;
	n->shadowing = false; /* VMREAD of an enlightened VMCS is served from its page */
	caps_enlightened(&n->caps);
}
