/* SPDX-License-Identifier: Apache-2.0 */
/* RDMSR and WRMSR of L1; the rules are in msr.c. Only ECX selects; results are zero-extended. */
#include "hv/exit.h"

enum exit_action exit_rdmsr(struct vcpu *v)
{
	u64 value;

	if (!msr_read(v, (u32)v->regs[RCX], &value))
		return fault_gp(v);
	v->regs[RAX] = (u32)value;
	v->regs[RDX] = value >> 32;
	return RESUME_NEXT;
}

enum exit_action exit_wrmsr(struct vcpu *v)
{
	if (!msr_write(v, (u32)v->regs[RCX], v->regs[RDX] << 32 | (u32)v->regs[RAX]))
		return fault_gp(v);
	return RESUME_NEXT;
}
