/* SPDX-License-Identifier: Apache-2.0 */
/* How a VMX instruction of L1 ends. SDM "Conventions" of the chapter on VMX instructions. Pre, everywhere:
 * VMCS01 is current. */
#include "nested/internal.h"

static void set_flags(u64 flag)
{
	vmcs_write_sure(VMCS_GUEST_RFLAGS, (vmcs_read_sure(VMCS_GUEST_RFLAGS) & ~RFLAGS_ALU) | flag);
}

enum exit_action vmsucceed(struct vcpu *v)
{
	(void)v;
	set_flags(0);
	return RESUME_NEXT;
}

enum exit_action vmfail_invalid(struct vcpu *v)
{
	(void)v;
	set_flags(RFLAGS_CF);
	return RESUME_NEXT;
}

enum exit_action vmfail(struct vcpu *v, enum vmx_error error)
{
	struct vmcs02 *e = v->nested->current;

	if (!e)
		return vmfail_invalid(v);
	e->v12.insn_error = error;
	if (e->enlightened)
		enlightened_error(v);
	set_flags(RFLAGS_ZF);
	return RESUME_NEXT;
}
