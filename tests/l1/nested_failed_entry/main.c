/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a failed entry leaves alone and what it does not. Early failures (7, 8) change one field and the
 * flags; late ones (33, 34) load host state and write reason and qualification only; the launch state stays
 * clear. SDM "VM-Entry Failures During or After Loading Guest State" (Linux 4f350c6dbcb9).
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: failed entries";

static void l2_cpuid(void)
{
	cpuid(0, 0);
	l2_call(1);
}

static void l2_leave(void)
{
	l2_call(1);
}

/* A first exit that fills the exit fields with something to keep: an EPT violation or an I/O exit. */
static void fill_exit_fields(void)
{
	struct vm_result r;

	l2_prepare(l2_cpuid);
	r = l2_launch();
	expect_exit("first-exit", r, EXIT_CPUID);
	vmclear(l2_vmcs());
	vmptrld(l2_vmcs());
}

static struct vm_result fresh(u32 field, u64 value, bool resume)
{
	vmwrite(field, value);
	return resume ? l2_resume() : l2_launch();
}

static void early(const char *name, u32 field, u64 bad, u32 error)
{
	u64 good, reason, rip, length;
	struct vm_result r;
	char text[48];

	fill_exit_fields();
	good = vmread(field);
	reason = vmread(VMCS_EXIT_REASON);
	rip = vmread(VMCS_GUEST_RIP);
	length = vmread(VMCS_EXIT_INSN_LEN);
	r = fresh(field, bad, false);
	expect_fail(name, r, FAILED(VMFAIL_VALID(error)));
	format_text(text, sizeof(text), "%s-keeps-exit-fields", name);
	expect_true(text, vmread(VMCS_EXIT_REASON) == reason && vmread(VMCS_GUEST_RIP) == rip &&
				  vmread(VMCS_EXIT_INSN_LEN) == length);
	r = fresh(field, good, false);
	format_text(text, sizeof(text), "%s-then-launches", name);
	expect_exit(text, r, EXIT_CPUID);
}

static void late(const char *name, u32 field, u64 bad, u32 reason, u64 qualification)
{
	u64 good, rip, length;
	struct vm_result r;
	char text[48];

	fill_exit_fields();
	good = vmread(field);
	rip = vmread(VMCS_GUEST_RIP);
	length = vmread(VMCS_EXIT_INSN_LEN);
	r = fresh(field, bad, false);
	expect_exit(name, r, EXIT_ENTRY_FAILED | reason);
	format_text(text, sizeof(text), "%s-qualification", name);
	expect_eq(text, r.qual, qualification);
	format_text(text, sizeof(text), "%s-keeps-length", name);
	expect_eq(text, vmread(VMCS_EXIT_INSN_LEN), length);
	format_text(text, sizeof(text), "%s-keeps-guest-rip", name);
	expect_eq(text, r.rip, rip);
	format_text(text, sizeof(text), "%s-host-limits", name);
	expect_eq(text, sgdt().limit, 0xffff);
	r = l2_resume();
	format_text(text, sizeof(text), "%s-not-launched", name);
	expect_fail(text, r, FAILED(VMFAIL_VALID(5)));
	r = fresh(field, good, false);
	format_text(text, sizeof(text), "%s-then-launches", name);
	expect_exit(text, r, EXIT_CPUID);
}

/* The event of a failed entry is neither delivered nor lost: its valid bit stays until an entry succeeds. */
static volatile u32 hits;

static void on_event(struct regs *r)
{
	(void)r;
	hits++;
}

static void event_of_failed_entry(void)
{
	struct vm_result r;
	u64 other;

	trap_handle(0x58, on_event);
	l2_prepare(l2_leave);
	vmwrite(VMCS_GUEST_RFLAGS, RFLAGS_IF | 2);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | 0x58);
	vmcs_clear_bits(VMCS_GUEST_CR4, CR4_VMXE);
	r = l2_launch();
	expect_exit("event-failed-entry", r, EXIT_ENTRY_FAILED | EXIT_BAD_GUEST);
	expect_eq("event-still-valid", vmread(VMCS_ENTRY_INTR_INFO), INTR_VALID | 0x58);
	expect_eq("event-not-delivered", hits, 0);
	other = vmcs_alloc();
	l2_prepare_in(other, l2_leave);
	r = l2_launch();
	expect_true("event-not-in-other-vmcs", l2_called(&r, 1) && hits == 0);
	vmptrld(l2_vmcs());
	vmcs_set_bits(VMCS_GUEST_CR4, CR4_VMXE);
	l2_set_entry(l2_leave);
	r = l2_launch();
	expect_true("event-delivered-later", l2_called(&r, 1) && hits == 1);
	trap_handle(0x58, NULL);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	early("bad-control", VMCS_CR3_TARGET_COUNT, 1000, 7);
	early("bad-host", VMCS_HOST_CR0, 0, 8);
	late("bad-guest", VMCS_GUEST_RFLAGS, 0, EXIT_BAD_GUEST, 0);
	late("bad-link", VMCS_LINK_POINTER, 0x123, EXIT_BAD_GUEST, 4);
	event_of_failed_entry();
}
