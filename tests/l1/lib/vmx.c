/* SPDX-License-Identifier: Apache-2.0 */
/* VMX instructions, capability look-up and VMXON. SDM "VMX Instruction Reference" and "VMX Capability
 * Reporting Facility". */
#include "vmx.h"
#include "cpu.h"
#include "page.h"
#include "print.h"
#include "report.h"

static u64 vmxon_region[MAX_CPUS];
static u32 vmx_life[MAX_CPUS]; /* 1 + the CPU's number of starts while it is in VMX operation, else 0 */

/* ZF and CF are only looked at when the instruction did not fault; VMfail's number comes from the VMCS. */
static u32 outcome(bool carry, bool zero)
{
	u64 error = 0;

	if (trap_last())
		return trap_last();
	if (carry)
		return VMFAIL_INVALID;
	if (!zero)
		return VM_OK;
	asm volatile("vmread %1, %0" : "=r"(error) : "r"((u64)VMCS_INSN_ERROR) : "cc");
	return VMFAIL_VALID(error);
}

#define VMX_ASM(insn, ...)                                                                                   \
	({                                                                                                   \
		bool carry_, zero_;                                                                          \
                                                                                                             \
		trap_forget();                                                                               \
		asm volatile(TRY(insn) : "=@ccc"(carry_), "=@ccz"(zero_) : __VA_ARGS__ : "memory");          \
		outcome(carry_, zero_);                                                                      \
	})

u32 vmxon(u64 region)
{
	u32 result = VMX_ASM("vmxon %2", "m"(region));

	if (result == VM_OK)
		vmx_life[cpu_index()] = 1 + this_cpu()->starts;
	return result;
}

u32 vmxoff(void)
{
	bool carry, zero;

	trap_forget();
	asm volatile(TRY("vmxoff") : "=@ccc"(carry), "=@ccz"(zero) : : "memory");
	if (trap_last())
		return trap_last();
	if (!carry && !zero)
		vmx_life[cpu_index()] = 0;
	return carry ? VMFAIL_INVALID : zero ? VMFAIL_VALID(0) : VM_OK;
}

u32 vmclear(u64 vmcs)
{
	return VMX_ASM("vmclear %2", "m"(vmcs));
}

u32 vmptrld(u64 vmcs)
{
	return VMX_ASM("vmptrld %2", "m"(vmcs));
}

u32 vmptrst(u64 *vmcs)
{
	return VMX_ASM("vmptrst (%2)", "r"(vmcs));
}

u32 vmread_try(u64 field, u64 *value)
{
	bool carry, zero;
	u64 v = value ? *value : 0;

	trap_forget();
	asm volatile(TRY("vmread %3, %2") : "=@ccc"(carry), "=@ccz"(zero), "+r"(v) : "r"(field) : "memory");
	if (value)
		*value = v;
	return outcome(carry, zero);
}

u32 vmwrite_try(u64 field, u64 value)
{
	return VMX_ASM("vmwrite %3, %2", "r"(field), "r"(value));
}

u32 invept(u64 type, u64 eptp)
{
	struct inv_desc d = {eptp, 0};

	return VMX_ASM("invept (%3), %2", "r"(type), "r"(&d), "m"(d));
}

u32 invvpid(u64 type, u64 vpid, u64 address)
{
	struct inv_desc d = {vpid, address};

	return VMX_ASM("invvpid (%3), %2", "r"(type), "r"(&d), "m"(d));
}

u32 vmcall(u64 rax)
{
	return VMX_ASM("vmcall", "a"(rax));
}

static void must(u32 result, const char *what, u32 field)
{
	if (result == VM_OK)
		return;
	print("FAIL %s-%x vmx.c:0 got %x want 0\nDONE 1 checks, 1 failed\n", what, field, result);
	machine_exit(2);
}

u64 vmread(u32 field)
{
	u64 v = 0;

	must(vmread_try(field, &v), "vmread", field);
	return v;
}

void vmwrite(u32 field, u64 value)
{
	must(vmwrite_try(field, value), "vmwrite", field);
}

void vmcs_set_bits(u32 field, u64 bits)
{
	vmwrite(field, vmread(field) | bits);
}

void vmcs_clear_bits(u32 field, u64 bits)
{
	vmwrite(field, vmread(field) & ~bits);
}

static u64 ctl_msr(u32 field)
{
	bool exact = rdmsr(MSR_VMX_BASIC) & BIT(55);

	switch (field) {
	case VMCS_PIN_CTL:
		return rdmsr(exact ? MSR_VMX_TRUE_PIN : MSR_VMX_PIN);
	case VMCS_PROC_CTL:
		return rdmsr(exact ? MSR_VMX_TRUE_PROC : MSR_VMX_PROC);
	case VMCS_EXIT_CTL:
		return rdmsr(exact ? MSR_VMX_TRUE_EXIT : MSR_VMX_EXIT);
	case VMCS_ENTRY_CTL:
		return rdmsr(exact ? MSR_VMX_TRUE_ENTRY : MSR_VMX_ENTRY);
	default:
		return rdmsr(MSR_VMX_PROC) >> 63 ? rdmsr(MSR_VMX_PROC2) : 0;
	}
}

u32 ctl_must(u32 field)
{
	return (u32)ctl_msr(field);
}

u32 ctl_may(u32 field)
{
	return (u32)(ctl_msr(field) >> 32);
}

bool ctl_has(u32 field, u64 bits)
{
	return (ctl_may(field) & bits) == bits;
}

bool proc2_has(u64 bits)
{
	return ctl_has(VMCS_PROC2_CTL, bits);
}

bool vmx_available(void)
{
	u64 control;

	if (!cpu_has_vmx()) {
		skip("vmx", "this CPU has no VMX");
		return false;
	}
	control = rdmsr(MSR_FEATURE_CONTROL);
	if ((control & 1) && !(control & 4)) {
		skip("vmx", "VMX is locked off in IA32_FEATURE_CONTROL");
		return false;
	}
	return true;
}

void vmx_enable(void)
{
	u64 control = rdmsr(MSR_FEATURE_CONTROL);

	if (!(control & 1))
		wrmsr(MSR_FEATURE_CONTROL, control | 5);
	write_cr0(read_cr0() | CR0_NE);
	write_cr4(read_cr4() | CR4_VMXE);
}

u64 vmcs_alloc(void)
{
	u32 *region = page_alloc();

	*region = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	return addr_of(region);
}

u64 vmx_region(void)
{
	u32 cpu = cpu_index();

	if (!vmxon_region[cpu])
		vmxon_region[cpu] = vmcs_alloc();
	return vmxon_region[cpu];
}

bool vmx_start(void)
{
	if (vmx_life[cpu_index()] == 1 + this_cpu()->starts)
		return true;
	vmx_enable();
	return vmxon(vmx_region()) == VM_OK;
}
