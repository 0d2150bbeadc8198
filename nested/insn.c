/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMX instructions of L1: one prologue that finds every #UD and #GP before any nested state is touched, then
 * a function for each. Pre, everywhere: VMCS01 is current. SDM chapter "VMX Instruction Reference".
 */
#include "hv/lib.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

#define FEATURE_LOCK        BIT(0)
#define FEATURE_OUTSIDE_SMX BIT(2)
#define SHADOW_VMCS         BIT32(31)
#define AR_DPL              (3u << 5) /* of SS: the CPL */

/* SDM "Format of the VMCS Region" and the operand rules of all pointers: 4 KiB aligned, within the
 * physical-address width. */
static bool page_ok(const struct nested *n, gpa_t a)
{
	return !(a.v & (PAGE_SIZE - 1)) && !(a.v >> n->facts.phys_bits);
}

/* The first dword of a region; all ones outside of RAM, which is no revision. */
static u32 first_word(struct vcpu *v, gpa_t a)
{
	u32 word;

	return guest_read(&v->guest->mem, a, &word, sizeof(word)) ? word : ~0u;
}

/* SDM "Restrictions on VMX Operation": FIXED0 bits must be 1, others than FIXED1 must be 0. */
static bool fixed_ok(u64 cr, u64 fixed0, u64 fixed1)
{
	return (cr & fixed0) == fixed0 && !(cr & ~fixed1);
}

static bool vmxon_allowed(const struct vcpu *v)
{
	const struct vmx_caps *c = &v->nested->caps;
	const u64 feature = FEATURE_LOCK | FEATURE_OUTSIDE_SMX;

	return fixed_ok(vcpu_cr0(), c->cr0_fixed0, c->cr0_fixed1) &&
	       fixed_ok(vcpu_cr4(), c->cr4_fixed0, c->cr4_fixed1) &&
	       (v->feature_control & feature) == feature;
}

enum exit_action emul_vmxon(struct vcpu *v)
{
	struct nested *n = v->nested;
	gpa_t ptr;

	if (n->vmxon)
		return vmfail(v, ERROR_VMXON_IN_ROOT);
	if (!vmxon_allowed(v))
		return fault_gp(v);
	if (!operand_pointer(v, &ptr))
		return RESUME;
	if (!page_ok(n, ptr) || first_word(v, ptr) != VMCS12_REVISION)
		return vmfail_invalid(v);
	n->vmxon = true;
	n->vmxon_ptr = ptr.v;
	n->current = NULL;
	shadow_switch(v, true);
	/* L0's masks of CR0 and CR4 differ in VMX operation. */
	vcpu_load_cr0(v, vcpu_cr0());
	vcpu_load_cr4(v, vcpu_cr4());
	return vmsucceed(v);
}

enum exit_action emul_vmxoff(struct vcpu *v)
{
	struct nested *n = v->nested;

	for (unsigned i = 0; i < NESTED_CACHE; i++)
		if (n->cache[i] && n->cache[i]->ptr != NO_VMCS)
			vmcs02_release(v, n->cache[i]);
	n->vmxon = false;
	n->current = NULL;
	shadow_switch(v, false);
	vcpu_load_cr0(v, vcpu_cr0());
	vcpu_load_cr4(v, vcpu_cr4());
	if (v->init_waiting) { /* SDM "INIT Signal": held until now */
		v->init_waiting = false;
		vcpu_request(v, PEND_INIT);
	}
	return vmsucceed(v);
}

enum exit_action emul_vmclear(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e;
	gpa_t ptr;

	if (!operand_pointer(v, &ptr))
		return RESUME;
	if (!page_ok(n, ptr))
		return vmfail(v, ERROR_VMCLEAR_ADDRESS);
	if (ptr.v == n->vmxon_ptr)
		return vmfail(v, ERROR_VMCLEAR_VMXON);
	e = vmcs02_find(v, ptr.v);
	if (e) {
		e->launched = false;
		vmcs02_release(v, e);
		if (e == n->current) {
			n->current = NULL;
			shadow_link(v);
		}
	} else {
		vmcs02_clear_page(v, ptr.v);
	}
	return vmsucceed(v);
}

static bool shadow_offered(const struct nested *n)
{
	return caps_may1(n->caps.sec) & SEC_SHADOW_VMCS;
}

enum exit_action emul_vmptrld(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e;
	gpa_t ptr;
	u32 word;

	if (!operand_pointer(v, &ptr))
		return RESUME;
	if (!page_ok(n, ptr))
		return vmfail(v, ERROR_VMPTRLD_ADDRESS);
	if (ptr.v == n->vmxon_ptr)
		return vmfail(v, ERROR_VMPTRLD_VMXON);
	word = first_word(v, ptr);
	if (word != VMCS12_REVISION && (word != (VMCS12_REVISION | SHADOW_VMCS) || !shadow_offered(n)))
		return vmfail(v, ERROR_VMPTRLD_REVISION);
	e = vmcs02_get(v, ptr.v);
	if (!e) {
		guest_end(v->guest, "killed: no memory for a nested VMCS");
		return RESUME;
	}
	e->is_shadow = word & SHADOW_VMCS;
	n->current = e;
	shadow_link(v);
	return vmsucceed(v);
}

enum exit_action emul_vmptrst(struct vcpu *v)
{
	u64 ptr = v->nested->current ? v->nested->current->ptr : NO_VMCS;

	return operand_write_any(v, &ptr, sizeof(ptr)) ? vmsucceed(v) : RESUME;
}

/* Hypercalls, when there is an interface, are taken by hv/ before this. */
enum exit_action emul_vmcall(struct vcpu *v)
{
	return vmfail(v, ERROR_VMCALL_IN_ROOT);
}

/* By exit reason. VMFUNC is not here: in root operation it is #UD. */
exit_fn *const emul_plain[EXIT_REASONS] = {
	[EXIT_VMCALL] = emul_vmcall,     [EXIT_VMCLEAR] = emul_vmclear, [EXIT_VMLAUNCH] = emul_vmlaunch,
	[EXIT_VMPTRLD] = emul_vmptrld,   [EXIT_VMPTRST] = emul_vmptrst, [EXIT_VMREAD] = emul_vmread,
	[EXIT_VMRESUME] = emul_vmresume, [EXIT_VMWRITE] = emul_vmwrite, [EXIT_VMXOFF] = emul_vmxoff,
	[EXIT_VMXON] = emul_vmxon,       [EXIT_INVEPT] = emul_invept,   [EXIT_INVVPID] = emul_invvpid,
};

/*
 * The processor has tested before the exit what makes every VMX instruction undefined: real, virtual-8086 and
 * compatibility mode. It did so with L0's CR4 and in L0's VMX operation, so these two are left.
 */
static bool vmxon_exists(struct vcpu *v)
{
	/* So it stays until VMXOFF: paging cannot be left, and every exit's "host address-space size" is this
	 * mode. SDM "Checks Related to Address-Space Size". */
	v->nested->wide = vmcs_read64(VMCS_GUEST_EFER) & EFER_LMA;
	return vcpu_cr4() & CR4_VMXE;
}

/* One of the conditions does not hold: which fault, in the order of the manual. */
static __attribute__((cold, noinline)) enum exit_action unusual(struct vcpu *v, u32 reason, exit_fn *fn)
{
	if (!fn || (!v->nested->vmxon && (reason != EXIT_VMXON || !vmxon_exists(v))))
		return fault_ud(v);
	return vcpu_cpl() ? fault_gp(v) : fn(v);
}

enum exit_action exit_vmx_insn(struct vcpu *v)
{
	u32 reason = (u32)vmcs_read_sure(VMCS_EXIT_REASON);
	const struct nested *n = v->nested;
	exit_fn *fn = likely(n) ? n->emul[reason] : NULL;

	if (likely(fn) && likely(n->vmxon) && likely(!(vmcs_read_sure(VMCS_GUEST_SS_AR) & AR_DPL)))
		return fn(v);
	return unusual(v, reason, fn);
}
