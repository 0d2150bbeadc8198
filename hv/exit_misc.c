/* SPDX-License-Identifier: Apache-2.0 */
/* Exits of L1 that need a few lines each. */
#include "hv/exit.h"
#include "hv/personality.h"
#include "hv/vcpu_switch.h"

/* The gate wakes it: at once, when an interrupt is due already (PEND_INTR makes it look). */
enum exit_action exit_hlt(struct vcpu *v)
{
	insn_advance(v);
	if (!event_trap_due()) /* a single step over HLT ends in its trap */
		v->state = VCPU_HALT;
	__atomic_fetch_or(&v->pending, PEND_INTR, __ATOMIC_RELAXED);
	return RESUME;
}

/* SDM "XSETBV—Set Extended Control Register": #GP for every value the processor refuses. */
static bool xcr0_valid(u64 x)
{
	const u64 avx512 = BIT(5) | BIT(6) | BIT(7);

	if (!(x & BIT(0)) || x & ~xcr0_supported())
		return false;
	if (x & BIT(2) && !(x & BIT(1)))
		return false;
	return !(x & avx512) || ((x & avx512) == avx512 && x & BIT(2));
}

enum exit_action exit_xsetbv(struct vcpu *v)
{
	u64 value = v->regs[RDX] << 32 | (u32)v->regs[RAX];

	if (vcpu_cpl() != 0 || (u32)v->regs[RCX] != 0 || !xcr0_valid(value))
		return fault_gp(v);
	v->xcr0 = value;
	xsetbv0(value);
	return RESUME_NEXT;
}

/* In VMX operation, a VMX instruction of L1; outside of it, it does not exist. */
enum exit_action vmcall_without_interface(struct vcpu *v)
{
	return v->nested && nested_vmxon(v) ? exit_vmx_insn(v) : fault_ud(v);
}

enum exit_action exit_vmcall(struct vcpu *v)
{
	const struct personality *p = v->guest->personality;

	return p ? p->vmcall(v) : vmcall_without_interface(v);
}

enum exit_action exit_ud(struct vcpu *v)
{
	return fault_ud(v);
}

enum exit_action exit_skip(struct vcpu *v)
{
	(void)v;
	return RESUME_NEXT;
}

/* Hardware task switching is not emulated (docs/limits.md); 64-bit guests cannot ask for it. */
enum exit_action exit_task_switch(struct vcpu *v)
{
	guest_end(v->guest, "killed: hardware task switch is not supported");
	return RESUME;
}
