/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that hypervisors use around every exit, which may be kept where no exit is needed to reach them:
 * they must be those of the current VMCS all the same, whatever happened to it since. SDM "VMREAD",
 * "VMWRITE", "VMCLEAR".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: the fields of the hot path";

static const u32 written[] = {
	VMCS_GUEST_RIP,       VMCS_GUEST_RSP,        VMCS_GUEST_RFLAGS,   VMCS_GUEST_INTERRUPTIBILITY,
	VMCS_ENTRY_INTR_INFO, VMCS_ENTRY_ERROR_CODE, VMCS_ENTRY_INSN_LEN, VMCS_PROC_CTL,
	VMCS_TPR_THRESHOLD,   VMCS_PREEMPTION_TIMER};

#define VALUE(i, salt) (0x1000 * ((u64)(i) + 1) + (salt))

static void write_all(u64 salt)
{
	for (u32 i = 0; i < ARRAY_SIZE(written); i++)
		vmwrite(written[i], VALUE(i, salt));
}

static u32 wrong(u64 salt)
{
	u32 n = 0;

	for (u32 i = 0; i < ARRAY_SIZE(written); i++)
		n += vmread(written[i]) != VALUE(i, salt);
	return n;
}

static void each_vmcs_has_its_own(void)
{
	u64 a = vmcs_alloc(), b = vmcs_alloc();

	expect_eq("clear-a", vmclear(a), VM_OK);
	expect_eq("clear-b", vmclear(b), VM_OK);
	vmptrld(a);
	write_all(1);
	vmptrld(b);
	write_all(2);
	expect_eq("second", wrong(2), 0);
	vmptrld(a);
	expect_eq("first-again", wrong(1), 0);
	vmclear(b);
	expect_eq("other-cleared", wrong(1), 0);
	vmclear(a);
	vmptrld(b);
	expect_eq("second-loaded-again", wrong(2), 0);
	vmptrld(a);
	expect_eq("first-loaded-again", wrong(1), 0);
	vmclear(a);
	vmclear(b);
}

static void none_is_current(void)
{
	u64 value = 0;

	expect_eq("read-without-vmcs", vmread_try(VMCS_GUEST_RIP, &value), VMFAIL_INVALID);
	expect_eq("write-without-vmcs", vmwrite_try(VMCS_GUEST_RIP, 1), VMFAIL_INVALID);
	vmxoff();
	expect_eq("read-after-vmxoff", vmread_try(VMCS_GUEST_RIP, &value), UD);
	expect_eq("write-after-vmxoff", vmwrite_try(VMCS_GUEST_RIP, 1), UD);
	vmx_start();
	expect_eq("read-after-vmxon", vmread_try(VMCS_GUEST_RIP, &value), VMFAIL_INVALID);
}

static void l2_cpuid_and_call(void)
{
	asm volatile("mov $0x1234, %%edx; cpuid" : : "a"(0) : "rbx", "rcx", "rdx", "memory");
	l2_call(7);
}

/* What an exit says is there, and what L1 writes the next entry takes. */
static void exits_and_entries(void)
{
	struct vm_result r;
	u64 rip;

	l2_prepare(l2_cpuid_and_call);
	r = l2_launch();
	expect_exit("first-exit", r, EXIT_CPUID);
	expect_eq("length", vmread(VMCS_EXIT_INSN_LEN), 2);
	expect_eq("entry-info-invalid", vmread(VMCS_ENTRY_INTR_INFO) & INTR_VALID, 0);
	rip = vmread(VMCS_GUEST_RIP);
	vmwrite(VMCS_GUEST_RIP, rip + 2);
	expect_eq("rip-reads-back", vmread(VMCS_GUEST_RIP), rip + 2);
	r = l2_resume();
	expect_eq("went-on", l2_called(&r, 7), 1);
	/* The same exit again from another place: nothing of the last one may be left. */
	vmwrite(VMCS_GUEST_RIP, rip);
	r = l2_resume();
	expect_exit("again", r, EXIT_CPUID);
	expect_eq("again-length", r.insn_len, 2);
	expect_eq("again-rip", r.rip, rip);
}

static void injection(void)
{
	struct vm_result r;

	l2_prepare(l2_cpuid_and_call);
	vmcs_set_bits(VMCS_EXCEPTION_BITMAP, BIT(VEC_GP));
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | INTR_ERROR_CODE | VEC_GP);
	vmwrite(VMCS_ENTRY_ERROR_CODE, 0x5678);
	vmwrite(VMCS_GUEST_RSP, 0x8000000000000000); /* no stack: delivery ends in #SS, then #DF */
	vmcs_set_bits(VMCS_EXCEPTION_BITMAP, BIT(VEC_SS));
	r = l2_launch();
	expect_exit("delivery-exits", r, EXIT_EXCEPTION);
	expect_eq("idt-info", vmread(VMCS_IDT_INFO), INTR_VALID | INTR_EXCEPTION | INTR_ERROR_CODE | VEC_GP);
	expect_eq("idt-error", vmread(VMCS_IDT_ERROR), 0x5678);
}

/* An entry that is refused leaves what L1 wrote. */
static void refused_entry(void)
{
	struct vm_result r;

	l2_prepare(l2_cpuid_and_call);
	vmwrite(VMCS_GUEST_RFLAGS, 0);
	vmwrite(VMCS_GUEST_RSP, 0x4242);
	r = l2_launch();
	expect_exit("bad-flags", r, EXIT_BAD_GUEST | EXIT_ENTRY_FAILED);
	expect_eq("flags-kept", vmread(VMCS_GUEST_RFLAGS), 0);
	expect_eq("rsp-kept", vmread(VMCS_GUEST_RSP), 0x4242);
	vmwrite(VMCS_PIN_CTL, 0xffffffff);
	vmwrite(VMCS_GUEST_RSP, 0x4343);
	r = l2_launch();
	expect_fail("bad-controls", r, FAILED(VMFAIL_VALID(7)));
	expect_eq("rsp-kept-again", vmread(VMCS_GUEST_RSP), 0x4343);
}

/* VMX_MISC bit 29: then exit information can be written, and reads as written. */
static void writable_information(void)
{
	l2_prepare(l2_cpuid_and_call);
	if (!(rdmsr(MSR_VMX_MISC) & BIT(29))) {
		skip("information-written", "VMX_MISC bit 29");
		return;
	}
	vmwrite(VMCS_EXIT_REASON, 0x77);
	vmwrite(VMCS_EXIT_QUAL, 0x123456789abc);
	expect_eq("information-written", vmread(VMCS_EXIT_REASON), 0x77);
	expect_eq("qualification-written", vmread(VMCS_EXIT_QUAL), 0x123456789abc);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	each_vmcs_has_its_own();
	none_is_current();
	exits_and_entries();
	injection();
	refused_entry();
	writable_information();
}
