/* SPDX-License-Identifier: Apache-2.0 */
/* Feature control, fixed control-register bits, VMXON and VMXOFF of one CPU. */
#include "hv/vmx_on.h"
#include "hv/cpu.h"
#include "hv/fixup.h"
#include "hv/x86.h"

#define CPUID_ECX_VMX    BIT32(5)
#define FEATURE_LOCK     BIT(0)
#define FEATURE_VMX      BIT(2) /* outside SMX */
#define PROC_SECONDARY   BIT32(31)
#define SEC_EPT          BIT32(1)
#define SEC_UNRESTRICTED BIT32(7)
#define VMX_REVISION(b)  ((u32)(b)&0x7fffffff)

/* Firmware that left MSR 0x3A unlocked leaves the choice to us; the emulators' BIOS does so on the other
 * CPUs. */
static bool feature_control_ok(void)
{
	u64 v;

	if (!rdmsr_safe(MSR_FEATURE_CONTROL, &v))
		return false;
	if (!(v & FEATURE_LOCK))
		wrmsr_safe(MSR_FEATURE_CONTROL, v | FEATURE_LOCK | FEATURE_VMX);
	rdmsr_safe(MSR_FEATURE_CONTROL, &v);
	return (v & FEATURE_LOCK) && (v & FEATURE_VMX);
}

/* Secondary controls that may be 1; the MSR exists only when the primary controls say so. */
static u32 secondary_allowed(void)
{
	if (!(rdmsr(MSR_VMX_PROC_CTLS) >> 32 & PROC_SECONDARY))
		return 0;
	return (u32)(rdmsr(MSR_VMX_SEC_CTLS) >> 32);
}

const char *vmx_refusal(void)
{
	if (!(cpuid(1, 0).ecx & CPUID_ECX_VMX))
		return "this CPU has no VMX";
	if (!feature_control_ok())
		return "VMX is locked off in MSR 0x3A (firmware)";
	if (!(secondary_allowed() & SEC_EPT))
		return "this CPU's VMX has no EPT";
	if (!(secondary_allowed() & SEC_UNRESTRICTED))
		return "this CPU's VMX has no unrestricted guest";
	return NULL;
}

/* SDM "Restrictions on VMX Operation": some control-register bits are fixed while VMX is on. */
static void set_fixed_bits(void)
{
	u64 cr0 = (read_cr0() | rdmsr(MSR_VMX_CR0_FIXED0)) & rdmsr(MSR_VMX_CR0_FIXED1);
	u64 cr4 = (read_cr4() | CR4_VMXE | rdmsr(MSR_VMX_CR4_FIXED0)) & rdmsr(MSR_VMX_CR4_FIXED1);

	write_cr0(cr0);
	write_cr4(cr4);
}

bool vmx_on(void)
{
	struct cpu *c = this_cpu();
	u64 region = ptr_hpa(c->vmxon_page).v;
	bool failed;

	set_fixed_bits();
	*(u32 *)c->vmxon_page = VMX_REVISION(rdmsr(MSR_VMX_BASIC));
	asm volatile("vmxon %1" : "=@ccbe"(failed) : "m"(region) : "memory");
	c->vmx_root = !failed;
	return !failed;
}

void vmx_off(void)
{
	struct cpu *c = this_cpu();

	if (!c->vmx_root)
		return;
	asm volatile("vmxoff" : : : "cc", "memory");
	c->vmx_root = false;
	write_cr4(read_cr4() & ~CR4_VMXE);
}
