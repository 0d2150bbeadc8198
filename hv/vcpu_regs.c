/* SPDX-License-Identifier: Apache-2.0 */
/* Registers and processor mode of what runs on a vCPU, read from the current VMCS. */
#include "hv/cpuid.h"
#include "hv/vcpu.h"
#include "mm/guest_copy.h"

u64 vcpu_reg(const struct vcpu *v, unsigned reg)
{
	return reg == RSP ? vmcs_read_nw(VMCS_GUEST_RSP) : v->regs[reg & 15];
}

void vcpu_set_reg(struct vcpu *v, unsigned reg, u64 value)
{
	if (reg == RSP)
		vmcs_write_nw(VMCS_GUEST_RSP, value);
	else
		v->regs[reg & 15] = value;
}

/* SDM "Guest Segment Registers": the DPL of SS is the CPL. */
unsigned vcpu_cpl(void)
{
	return vmcs_read32(VMCS_GUEST_SS_AR) >> 5 & 3;
}

bool vcpu_64bit(void)
{
	return vmcs_read64(VMCS_GUEST_EFER) & EFER_LMA && vmcs_read32(VMCS_GUEST_CS_AR) & BIT32(13);
}

u64 vcpu_seg_base(unsigned seg)
{
	return vmcs_read_raw(VMCS_GUEST_ES_BASE + 2 * seg);
}

/* PKRU is read with CR4.PKE set for a moment: RDPKRU faults otherwise. */
static u32 read_pkru(void)
{
	u64 cr4 = read_cr4();
	u32 pkru, edx;

	write_cr4(cr4 | CR4_PKE);
	asm volatile("rdpkru" : "=a"(pkru), "=d"(edx) : "c"(0));
	write_cr4(cr4);
	return pkru;
}

/* The registers the processor has: what the guest reads of them may be a shadow. */
void vcpu_paging(struct vcpu *v, struct paging *out)
{
	(void)v;
	*out = (struct paging){
		.cr0 = vmcs_read_nw(VMCS_GUEST_CR0),
		.cr3 = vmcs_read_nw(VMCS_GUEST_CR3),
		.cr4 = vmcs_read_nw(VMCS_GUEST_CR4),
		.efer = vmcs_read64(VMCS_GUEST_EFER),
		.user = vcpu_cpl() == 3,
		.ac = vmcs_read_nw(VMCS_GUEST_RFLAGS) & RFLAGS_AC,
		.phys_bits = cpuid_phys_bits(),
	};
	if (out->cr4 & CR4_PAE && !(out->efer & EFER_LMA))
		for (unsigned i = 0; i < 4; i++)
			out->pdpte[i] = vmcs_read_raw(VMCS_GUEST_PDPTE0 + 2 * i);
	if (out->cr4 & CR4_PKE)
		out->pkru = read_pkru();
}
