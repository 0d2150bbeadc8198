/* SPDX-License-Identifier: Apache-2.0 */
/* The callable forms of hv/insn_len.h. */
#include "hv/insn_len.h"

void insn_advance_by(struct vcpu *v, u32 length)
{
	(void)v;
	insn_advance_inline(length);
}

void insn_advance(struct vcpu *v)
{
	insn_advance_by(v, vmcs_read32(VMCS_EXIT_INSN_LEN));
}
