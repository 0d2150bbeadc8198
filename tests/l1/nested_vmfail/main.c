/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad operands of VMX instructions: the VMfail number of each, memory faults of the operand, and the flags of
 * success. SDM "Conventions" of the VMX instruction reference, "VM-Instruction Error Numbers".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: VMfail numbers";

#define ALU_FLAGS 0x8d5

static u64 vmcs_a, vmcs_b;

static u64 with_word(u32 word)
{
	u64 page = vmcs_alloc();

	*(u32 *)ptr_to(page) = word;
	return page;
}

static void vmxon_rules(void)
{
	u32 revision = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	u64 good = vmcs_alloc();

	vmx_enable();
	write_cr0(read_cr0() & ~CR0_NE);
	expect_eq("vmxon-without-ne", vmxon(good), GP);
	write_cr0(read_cr0() | CR0_NE);
	expect_eq("vmxon-misaligned", vmxon(good + 8), VMFAIL_INVALID);
	expect_eq("vmxon-too-wide", vmxon(good | BIT(phys_bits())), VMFAIL_INVALID);
	expect_eq("vmxon-bad-revision", vmxon(with_word(revision + 1)), VMFAIL_INVALID);
	expect_eq("vmxon-shadow-bit", vmxon(with_word(revision | 1u << 31)), VMFAIL_INVALID);
	expect_eq("vmxon-good", vmxon(vmx_region()), VM_OK);
	expect_eq("vmxon-twice-no-vmcs", vmxon(good), VMFAIL_INVALID);
	expect_eq("make-current", vmptrld(vmcs_a), VM_OK);
	expect_eq("vmxon-twice", vmxon(good), VMFAIL_VALID(15));
}

static void pointer_rules(void)
{
	u32 revision = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	u64 pointer = 0, shadow = with_word(revision | 1u << 31);

	expect_eq("vmclear-misaligned", vmclear(vmcs_b + 4), VMFAIL_VALID(2));
	expect_eq("vmclear-too-wide", vmclear(BIT(phys_bits())), VMFAIL_VALID(2));
	expect_eq("vmclear-vmxon-region", vmclear(vmx_region()), VMFAIL_VALID(3));
	expect_eq("vmclear-wrong-revision-is-fine", vmclear(with_word(revision + 1)), VM_OK);
	expect_eq("vmptrld-misaligned", vmptrld(vmcs_b + 4), VMFAIL_VALID(9));
	expect_eq("vmptrld-too-wide", vmptrld(vmcs_b | BIT(phys_bits())), VMFAIL_VALID(9));
	expect_eq("vmptrld-vmxon-region", vmptrld(vmx_region()), VMFAIL_VALID(10));
	expect_eq("vmptrld-wrong-revision", vmptrld(with_word(revision + 1)), VMFAIL_VALID(11));
	if (!proc2_has(PROC2_SHADOW))
		expect_eq("vmptrld-shadow", vmptrld(shadow), VMFAIL_VALID(11));
	else
		expect_eq("vmptrld-shadow", vmptrld(shadow), VM_OK);
	vmptrld(vmcs_a);
	vmptrld(vmcs_b + 4);
	vmptrst(&pointer);
	expect_eq("failure-keeps-current", pointer, vmcs_a);
	expect_eq("vmclear-of-other", vmclear(vmcs_b), VM_OK);
	vmptrst(&pointer);
	expect_eq("vmclear-of-other-keeps-current", pointer, vmcs_a);
}

static u32 vmptrld_at(u64 address)
{
	trap_forget();
	asm volatile(TRY("vmptrld (%0)") : : "r"(address) : "memory", "cc");
	return trap_last();
}

static u32 vmptrst_at(u64 address)
{
	trap_forget();
	asm volatile(TRY("vmptrst (%0)") : : "r"(address) : "memory", "cc");
	return trap_last();
}

/* RBP as base makes it a stack operand, and leaves the stack usable for the fault. */
static u32 vmptrld_stack(u64 address)
{
	trap_forget();
	asm volatile("mov %%rbp, %%rbx\n\tmov %0, %%rbp\n\t" TRY("vmptrld (%%rbp)") "mov %%rbx, %%rbp"
		     :
		     : "r"(address)
		     : "rbx", "memory", "cc");
	return trap_last();
}

static void memory_operands(void)
{
	u64 *page = pages_alloc(2, PAGE_SIZE);
	u64 at = addr_of(page), va = 0x5000000000, pointer = 0;

	expect_eq("operand-not-canonical", vmptrld_at(0x0000800000000000), GP);
	expect_eq("operand-not-present", vmptrld_at(va), FAULT(VEC_PF, 0));
	expect_eq("operand-cr2", trap_cr2(), va);
	page_map(va, at, PTE_P | PTE_U);
	expect_eq("store-to-read-only", vmptrst_at(va), FAULT(VEC_PF, 3));
	expect_eq("store-not-present", vmptrst_at(va + PAGE_SIZE), FAULT(VEC_PF, 2));
	*page = vmcs_b;
	expect_eq("load-from-read-only", vmptrld_at(va), 0);
	vmptrst(&pointer);
	expect_eq("loaded", pointer, vmcs_b);
	page_map(va, at, PTE_RAM);
	page_map(va + PAGE_SIZE, at + PAGE_SIZE, PTE_RAM);
	*(u64 *)ptr_to(va + PAGE_SIZE - 4) = vmcs_a;
	expect_eq("operand-over-two-pages", vmptrld_at(va + PAGE_SIZE - 4), 0);
	vmptrst(&pointer);
	expect_eq("loaded-over-two-pages", pointer, vmcs_a);
	expect_eq("stack-operand-not-canonical", vmptrld_stack(0x0000800000000000), FAULT(VEC_SS, 0));
}

/* An operand at a place that was used before: what the tables say now counts. RSP as base too. */
static void operands_again(void)
{
	u64 *page = pages_alloc(2, PAGE_SIZE), va = 0x5000010000, pointer = 0;

	page[0] = vmcs_a;
	page[PAGE_SIZE / 8] = vmcs_b;
	page_map(va, addr_of(page), PTE_RAM);
	expect_eq("first-time", vmptrld_at(va), 0);
	expect_eq("second-time", vmptrld_at(va), 0);
	page_map(va, addr_of(page) + PAGE_SIZE, PTE_RAM);
	invlpg(va);
	expect_eq("page-moved", vmptrld_at(va), 0);
	vmptrst(&pointer);
	expect_eq("loaded-from-new-page", pointer, vmcs_b);
	page_map(va, addr_of(page), 0);
	invlpg(va);
	expect_eq("page-gone", vmptrld_at(va), FAULT(VEC_PF, 0));
	page_map(va, addr_of(page), PTE_RAM);
	expect_eq("page-back", vmptrld_at(va), 0);
	page[0] = vmcs_b;
	expect_eq("value-changed", vmptrld_at(va), 0);
	vmptrst(&pointer);
	expect_eq("loaded-new-value", pointer, vmcs_b);
	asm volatile("push %0\n\tvmptrld (%%rsp)\n\tvmptrld (%%rsp)\n\tpop %0"
		     :
		     : "r"(vmcs_a)
		     : "cc", "memory");
	vmptrst(&pointer);
	expect_eq("loaded-from-stack", pointer, vmcs_a);
}

/* FS and GS have a base in 64-bit mode, the others have none; scaled index and negative displacement. */
static void addressing(void)
{
	u64 table[4] = {0, 0, vmcs_b, 0}, pointer = 0;

	wrmsr(MSR_GS_BASE, addr_of(table));
	asm volatile("vmptrld %%gs:16" : : : "cc", "memory");
	vmptrst(&pointer);
	expect_eq("gs-base", pointer, vmcs_b);
	vmptrld(vmcs_a);
	asm volatile("vmptrld -8(%0,%1,8)" : : "r"(table), "r"(3ul) : "cc", "memory");
	vmptrst(&pointer);
	expect_eq("scaled-index", pointer, vmcs_b);
	vmptrld(vmcs_a);
	asm volatile(".byte 0x67\n\tvmptrld 16(%0)"
		     :
		     : "a"(addr_of(table) | 0xdead00000000)
		     : "cc", "memory");
	vmptrst(&pointer);
	expect_eq("address-size-32", pointer, vmcs_b);
	vmptrld(vmcs_a);
	wrmsr(MSR_GS_BASE, 0);
}

static void flags_of_success(void)
{
	u64 flags;

	asm volatile("pushf\n\torq $0x8d5, (%%rsp)\n\tpopf\n\tvmptrld %1\n\tpushf\n\tpop %0"
		     : "=&r"(flags)
		     : "m"(vmcs_a)
		     : "cc", "memory");
	expect_eq("success-clears-flags", flags & ALU_FLAGS, 0);
	asm volatile("pushf\n\torq $0x8d5, (%%rsp)\n\tpopf\n\tvmclear %1\n\tpushf\n\tpop %0"
		     : "=&r"(flags)
		     : "m"(*(u64[]){vmcs_b + 1})
		     : "cc", "memory");
	expect_eq("failvalid-sets-zf-only", flags & ALU_FLAGS, RFLAGS_ZF);
	vmclear(vmcs_a);
	asm volatile("pushf\n\torq $0x8d5, (%%rsp)\n\tpopf\n\tvmlaunch\n\tpushf\n\tpop %0"
		     : "=&r"(flags)
		     :
		     : "cc", "memory");
	expect_eq("failinvalid-sets-cf-only", flags & ALU_FLAGS, RFLAGS_CF);
	vmptrld(vmcs_a);
}

static void invalidation(void)
{
	u64 good = ept_pointer(l2_ept());

	if (proc2_has(PROC2_EPT)) {
		expect_eq("invept-type-0", invept(0, good), VMFAIL_VALID(28));
		expect_eq("invept-single", invept(1, good), VM_OK);
		expect_eq("invept-all", invept(2, 0), VM_OK);
		expect_eq("invept-type-3", invept(3, good), VMFAIL_VALID(28));
		expect_eq("invept-type-huge", invept(~0ul, good), VMFAIL_VALID(28));
		expect_eq("invept-bad-memory-type", invept(1, (good & ~7ul) | 2), VMFAIL_VALID(28));
		expect_eq("invept-bad-walk-length", invept(1, good & ~0x38ul), VMFAIL_VALID(28));
		expect_eq("invept-reserved-bit", invept(1, good | BIT(10)), VMFAIL_VALID(28));
		expect_eq("invept-too-wide", invept(1, good | BIT(phys_bits())), VMFAIL_VALID(28));
	}
	if (proc2_has(PROC2_VPID)) {
		expect_eq("invvpid-address", invvpid(0, 1, 0x1000), VM_OK);
		expect_eq("invvpid-single", invvpid(1, 1, 0), VM_OK);
		expect_eq("invvpid-all", invvpid(2, 0, 0), VM_OK);
		expect_eq("invvpid-retaining", invvpid(3, 1, 0), VM_OK);
		expect_eq("invvpid-type-4", invvpid(4, 1, 0), VMFAIL_VALID(28));
		expect_eq("invvpid-0-address", invvpid(0, 0, 0x1000), VMFAIL_VALID(28));
		expect_eq("invvpid-0-single", invvpid(1, 0, 0), VMFAIL_VALID(28));
		expect_eq("invvpid-0-retaining", invvpid(3, 0, 0), VMFAIL_VALID(28));
		expect_eq("invvpid-reserved", invvpid(1, 0x10001, 0), VMFAIL_VALID(28));
		expect_eq("invvpid-not-canonical", invvpid(0, 1, 0x0000800000000000), VMFAIL_VALID(28));
	}
}

/* SDM "VM Entries": blocking by MOV SS forbids VM entry; blocking by STI does not. */
static void mov_ss(void)
{
	u64 flags;

	l2_prepare_in(vmcs_a, NULL);
	asm volatile("mov %%ss, %%eax\n\tmov %%eax, %%ss\n\tvmlaunch\n\tpushf\n\tpop %0"
		     : "=&r"(flags)
		     :
		     : "rax", "cc", "memory");
	expect_eq("mov-ss-flags", flags & ALU_FLAGS, RFLAGS_ZF);
	expect_eq("mov-ss-error", vmread(VMCS_INSN_ERROR), 26);
	vmclear(vmcs_a);
	asm volatile("mov %%ss, %%eax\n\tmov %%eax, %%ss\n\tvmlaunch\n\tpushf\n\tpop %0"
		     : "=&r"(flags)
		     :
		     : "rax", "cc", "memory");
	expect_eq("mov-ss-without-vmcs", flags & ALU_FLAGS, RFLAGS_CF);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	vmcs_a = vmcs_alloc();
	vmcs_b = vmcs_alloc();
	vmxon_rules();
	pointer_rules();
	memory_operands();
	operands_again();
	addressing();
	flags_of_success();
	invalidation();
	mov_ss();
}
