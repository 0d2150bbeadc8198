/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's control registers. L0 keeps a few bits to itself (masks); L1 reads its own value of them from the read
 * shadow. Bits outside of the masks L1 changes without an exit, so the checks here are for writes that touch
 * a kept bit.
 */
#include "hv/exit.h"
#include "hv/cpuid.h"
#include "mm/guest_copy.h"

/* CD and NW must reach no hardware (L0's memory stays cached), NE and ET are fixed in VMX operation. */
#define CR0_KEPT (CR0_CD | CR0_NW | CR0_NE | CR0_ET | ~MASK(32))
/* In VMX operation L1 may not leave protected mode or paging: SDM "Restrictions on VMX Operation". */
#define CR0_VMX_FIXED (CR0_PE | CR0_PG | CR0_NE)
#define CR0_DEFINED                                                                                          \
	(CR0_PE | CR0_MP | CR0_EM | CR0_TS | CR0_ET | CR0_NE | CR0_WP | CR0_AM | CR0_NW | CR0_CD | CR0_PG)

u64 vcpu_cr0(void)
{
	u64 mask = vmcs_read_nw(VMCS_CR0_MASK);

	return (vmcs_read_nw(VMCS_GUEST_CR0) & ~mask) | (vmcs_read_nw(VMCS_CR0_SHADOW) & mask);
}

u64 vcpu_cr4(void)
{
	u64 mask = vmcs_read_nw(VMCS_CR4_MASK);

	return (vmcs_read_nw(VMCS_GUEST_CR4) & ~mask) | (vmcs_read_nw(VMCS_CR4_SHADOW) & mask);
}

static bool in_vmx(const struct vcpu *v)
{
	return v->nested && nested_vmxon(v);
}

void vcpu_load_cr0(struct vcpu *v, u64 cr0)
{
	v->kept_written = true;
	vmcs_write_nw(VMCS_CR0_MASK, CR0_KEPT | (in_vmx(v) ? CR0_VMX_FIXED : 0));
	vmcs_write_nw(VMCS_CR0_SHADOW, cr0);
	vmcs_write_nw(VMCS_GUEST_CR0, vcpu_hardware_cr0(cr0));
}

void vcpu_load_cr4(struct vcpu *v, u64 cr4)
{
	v->kept_written = true;
	vmcs_write_nw(VMCS_CR4_MASK, ~cpuid_cr4_offered() | CR4_VMXE);
	vmcs_write_nw(VMCS_CR4_SHADOW, cr4);
	vmcs_write_nw(VMCS_GUEST_CR4, vcpu_hardware_cr4(cr4));
}

void vcpu_load_efer(struct vcpu *v, u64 efer)
{
	u32 entry = vmcs_read32(VMCS_ENTRY_CTL) & ~ENTRY_IA32E;

	v->kept_written = true;
	vmcs_write64(VMCS_GUEST_EFER, efer);
	vmcs_write32(VMCS_ENTRY_CTL, efer & EFER_LMA ? entry | ENTRY_IA32E : entry);
}

/* SDM "PDPTE Registers": loaded from memory when PAE paging begins or its control bits change. False: a
 * reserved bit, #GP. */
static bool load_pdptes(struct vcpu *v, u64 cr0, u64 cr4)
{
	u64 cr3 = vmcs_read_nw(VMCS_GUEST_CR3), pdpte[4];
	u64 reserved = 0x1e6 | ~MASK(vcpu_cpuid(v, 0x80000008, 0).eax & 0xff);

	if (!(cr0 & CR0_PG) || !(cr4 & CR4_PAE) || vmcs_read64(VMCS_GUEST_EFER) & EFER_LME)
		return true;
	if (!guest_read(&v->guest->mem, GPA(cr3 & 0xffffffe0), pdpte, sizeof(pdpte)))
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (pdpte[i] & 1 && pdpte[i] & reserved)
			return false;
	for (unsigned i = 0; i < 4; i++)
		vmcs_write_raw(VMCS_GUEST_PDPTE0 + 2 * i, pdpte[i]);
	return true;
}

/* SDM "MOV—Move to/from Control Registers", "IA-32e Mode: Initializing". */
static bool cr0_allowed(const struct vcpu *v, u64 cr0, u64 old, u64 cr4, u64 efer)
{
	bool cs_l = vmcs_read32(VMCS_GUEST_CS_AR) & BIT32(13);

	if (cr0 >> 32 || (cr0 & CR0_PG && !(cr0 & CR0_PE)) || (cr0 & CR0_NW && !(cr0 & CR0_CD)))
		return false;
	if (in_vmx(v) && (cr0 & CR0_VMX_FIXED) != CR0_VMX_FIXED)
		return false;
	if (cr0 & ~old & CR0_PG && efer & EFER_LME)
		return cr4 & CR4_PAE && !cs_l;
	if (old & ~cr0 & CR0_PG)
		return !(cr4 & CR4_PCIDE) && !(efer & EFER_LMA && cs_l);
	return true;
}

static bool write_cr0_checked(struct vcpu *v, u64 cr0)
{
	u64 old = vcpu_cr0(), cr4 = vcpu_cr4(), efer = vmcs_read64(VMCS_GUEST_EFER);

	if (!cr0_allowed(v, cr0, old, cr4, efer))
		return false;
	cr0 = (cr0 & CR0_DEFINED) | CR0_ET;
	if ((cr0 ^ old) & (CR0_PG | CR0_CD | CR0_NW) && !load_pdptes(v, cr0, cr4))
		return false;
	if ((cr0 ^ old) & CR0_PG && efer & EFER_LME)
		vcpu_load_efer(v, cr0 & CR0_PG ? efer | EFER_LMA : efer & ~EFER_LMA);
	vcpu_load_cr0(v, cr0);
	return true;
}

static bool cr4_allowed(const struct vcpu *v, u64 cr4, u64 old, u64 efer)
{
	u64 offered = cpuid_cr4_offered() | (v->nested ? CR4_VMXE : 0);

	if (cr4 & ~offered || (in_vmx(v) && !(cr4 & CR4_VMXE)))
		return false;
	if (efer & EFER_LMA && !(cr4 & CR4_PAE))
		return false;
	if (cr4 & ~old & CR4_PCIDE)
		return efer & EFER_LMA && !(vmcs_read_nw(VMCS_GUEST_CR3) & 0xfff);
	return true;
}

static bool write_cr4_checked(struct vcpu *v, u64 cr4)
{
	u64 old = vcpu_cr4(), cr0 = vcpu_cr0();

	if (!cr4_allowed(v, cr4, old, vmcs_read64(VMCS_GUEST_EFER)))
		return false;
	if ((cr4 ^ old) & (CR4_PAE | CR4_PGE | CR4_PSE | CR4_SMEP) && !load_pdptes(v, cr0, cr4))
		return false;
	vcpu_load_cr4(v, cr4);
	return true;
}

/* SDM table "Exit Qualification for Control-Register Accesses". */
struct cr_qual {
	u8 cr, access, reg;
	u16 lmsw;
};
enum { ACCESS_TO_CR, ACCESS_FROM_CR, ACCESS_CLTS, ACCESS_LMSW };

static struct cr_qual cr_qual_decode(u64 q)
{
	return (struct cr_qual){
		.cr = q & 15, .access = q >> 4 & 3, .reg = q >> 8 & 15, .lmsw = (u16)(q >> 16)};
}

static bool mov_to_cr(struct vcpu *v, const struct cr_qual *q)
{
	u64 value = vcpu_reg(v, q->reg);

	if (!vcpu_64bit())
		value = (u32)value;
	return q->cr == 0 ? write_cr0_checked(v, value) : write_cr4_checked(v, value);
}

enum exit_action exit_cr(struct vcpu *v)
{
	struct cr_qual q = cr_qual_decode(vmcs_read_nw(VMCS_EXIT_QUAL));
	u64 cr0 = vcpu_cr0();
	bool ok = true;

	switch (q.access) {
	case ACCESS_TO_CR:
		if (q.cr != 0 && q.cr != 4)
			return exit_unexpected(v, EXIT_CR_ACCESS);
		ok = mov_to_cr(v, &q);
		break;
	case ACCESS_CLTS:
		vcpu_load_cr0(v, cr0 & ~CR0_TS);
		break;
	case ACCESS_LMSW: /* cannot clear PE */
		ok = write_cr0_checked(v, (cr0 & ~0xeull) | (q.lmsw & 0xf));
		break;
	default:
		return exit_unexpected(v, EXIT_CR_ACCESS);
	}
	return ok ? RESUME_NEXT : fault_gp(v);
}
