/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enlightened VMCS: entry without VMPTRLD, both version words, exits in the page, page switches, clean
 * fields, VMREAD and VMWRITE, the ends of a page's life, and the controls that are not offered. TLFS
 * "Enlightened VMCS".
 */
#include "evmcs.h"
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: enlightened VMCS";

#define FIRST  0x11
#define SECOND 0x22

static u8 *e_page, *f_page;
static volatile u64 seen;

static void l2_calls(void)
{
	for (;;) {
		l2_call(FIRST);
		l2_call(SECOND);
	}
}

static void l2_reads_msr(void)
{
	for (;;) {
		seen = rdmsr(MSR_KERNEL_GS_BASE);
		l2_call(FIRST);
	}
}

/* A page ready for VMLAUNCH; the plain VMCS it was made from is left behind cleared. */
static void prepare(u8 *page, l2_fn *fn)
{
	ev_off();
	l2_prepare(fn);
	ev_fill(page);
	vmclear(l2_vmcs());
}

static bool called(const struct vm_result *r, u64 number)
{
	return l2_called(r, number);
}

static void entry(void)
{
	struct vm_result r;

	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	expect_true("enters-without-vmptrld", called(&r, FIRST));
	expect_eq("clean-fields-set", *ev_clean(e_page) & EV_CLEAN_ALL, EV_CLEAN_ALL);
	expect_eq("exit-reason-in-page", r.reason, EXIT_VMCALL);
	expect_eq("insn-length-in-page", r.insn_len, 3);
	r = ev_resume_past(e_page, &r);
	expect_true("resumes", called(&r, SECOND));
	r = ev_enter(e_page, false);
	expect_true("launch-again-is-no-error", called(&r, SECOND));
}

static void versions(void)
{
	static const struct {
		const char *name;
		u32 word;
	} bad[] = {{"version-0", 0}, {"version-2", 2}, {"version-shadow-bit", 0x80000001}};
	struct vm_result r;

	prepare(e_page, l2_calls);
	*ev_word(e_page, EV_VERSION) = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	r = ev_enter(e_page, false);
	expect_true("version-vmx-basic", called(&r, FIRST));
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		prepare(e_page, l2_calls);
		*ev_word(e_page, EV_VERSION) = bad[i].word;
		r = ev_enter(e_page, false);
		expect_fail(bad[i].name, r, FAILED(VMFAIL_INVALID));
	}
}

static void bad_pages(void)
{
	struct vm_result r;

	prepare(e_page, l2_calls);
	ev_activate(e_page);
	hv_assist()->current_nested_vmcs = 0xfffffff000;
	expect_true("page-outside", l2_enter_raw(false) & RFLAGS_CF);
	hv_assist()->current_nested_vmcs = addr_of(e_page) + 8;
	expect_true("page-misaligned", l2_enter_raw(false) & RFLAGS_CF);
	hv_assist()->current_nested_vmcs = vmx_region();
	expect_true("page-is-vmxon-region", l2_enter_raw(false) & RFLAGS_CF);
	hv_assist()->current_nested_vmcs = 0;
	expect_true("no-page-no-vmcs", l2_enter_raw(false) & RFLAGS_CF);
	r = ev_enter(e_page, false);
	expect_true("good-page-after-bad-ones", called(&r, FIRST));
}

static void switches(void)
{
	struct vm_result e, f;

	prepare(e_page, l2_calls);
	prepare(f_page, l2_calls);
	e = ev_enter(e_page, false);
	l2_regs()->rdi = addr_of((const void *)(uintptr_t)l2_calls);
	f = ev_enter(f_page, false);
	expect_true("first-of-both", called(&e, FIRST) && f.reason == EXIT_VMCALL);
	/* All clean bits stand, as L0 set them, but the page is another: what changed is seen all the same.
	 */
	ev_write_quietly(e_page, VMCS_GUEST_RFLAGS, 2 | BIT(18));
	ev_write_quietly(e_page, VMCS_GUEST_FS_BASE, 0x12345000);
	e = ev_resume_past(e_page, &e);
	expect_eq("back-to-first", e.reason, EXIT_VMCALL);
	expect_eq("basic-group-read", ev_read(e_page, VMCS_GUEST_RFLAGS) & BIT(18), BIT(18));
	expect_eq("segments-read", ev_read(e_page, VMCS_GUEST_FS_BASE), 0x12345000);
	f = ev_resume_past(f_page, &f);
	expect_eq("back-to-second", f.reason, EXIT_VMCALL);
}

static void l2_is_undefined(void)
{
	for (;;) {
		asm volatile(TRY("ud2") : : : "memory");
		l2_call(FIRST);
	}
}

/* A change with its clean bit cleared is seen. */
static void cleared(void)
{
	struct vm_result r;

	prepare(e_page, l2_is_undefined);
	r = ev_enter(e_page, false);
	expect_true("undefined-is-l2s", called(&r, FIRST));
	ev_write(e_page, VMCS_EXCEPTION_BITMAP, BIT(VEC_UD));
	r = ev_resume_past(e_page, &r);
	expect_exit("exception-bitmap-seen", r, EXIT_EXCEPTION);
	r.insn_len = 2;
	r = ev_resume_past(e_page, &r);
	expect_true("goes-on", called(&r, FIRST));
	expect_eq("clean-again", *ev_clean(e_page) & EV_CLEAN_ALL, EV_CLEAN_ALL);
	ev_write(e_page, VMCS_GUEST_RFLAGS, 2 | BIT(18));
	r = ev_resume_past(e_page, &r);
	expect_eq("rflags-seen", ev_read(e_page, VMCS_GUEST_RFLAGS) & BIT(18), BIT(18));
	ev_write(e_page, VMCS_HOST_CR4, read_cr4() & ~CR4_PGE);
	r.insn_len = 2;
	r = ev_resume_past(e_page, &r);
	expect_eq("host-state-seen", read_cr4() & CR4_PGE, 0);
}

/* One left standing: old or new, but never what a check would have refused. */
static void left_standing(void)
{
	struct vm_result r;

	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	ev_write_quietly(e_page, VMCS_PROC2_CTL, ~0ull);
	ev_write_quietly(e_page, VMCS_HOST_CR0, 0);
	ev_write_quietly(e_page, VMCS_HOST_CR4, 0);
	ev_write_quietly(e_page, VMCS_GUEST_CR0, 0x80000000);
	ev_write_quietly(e_page, VMCS_GUEST_CS_AR, 0x1ffff);
	ev_write_quietly(e_page, VMCS_EPTP, ~0ull);
	r = ev_resume_past(e_page, &r);
	expect_true("old-values-run", called(&r, SECOND));
	*ev_clean(e_page) = 0;
	ev_write_quietly(e_page, VMCS_HOST_CR0, 0);
	r = ev_enter(e_page, true);
	expect_true("new-values-are-checked", r.kind == VM_FAIL && r.fail != VMFAIL_INVALID);
}

static void failed_entry(void)
{
	struct vm_result r;

	prepare(e_page, l2_calls);
	ev_write(e_page, VMCS_LINK_POINTER, 0);
	r = ev_enter(e_page, false);
	expect_eq("failed-entry-reason", r.reason, EXIT_ENTRY_FAILED | EXIT_BAD_GUEST);
	ev_write_quietly(e_page, VMCS_LINK_POINTER, ~0ull);
	r = ev_enter(e_page, true);
	expect_true("repaired", called(&r, FIRST));
}

static void vmread_vmwrite(void)
{
	struct vm_result r;
	u64 value = 0;

	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	expect_eq("vmread", vmread_try(VMCS_EXIT_REASON, &value), VM_OK);
	expect_eq("vmread-value", value, EXIT_VMCALL);
	ev_write(e_page, VMCS_GUEST_RIP, 0x123456);
	vmread_try(VMCS_GUEST_RIP, &value);
	expect_eq("vmread-is-the-page", value, 0x123456);
	expect_eq("vmread-no-such-field", vmread_try(0x482e, &value), VMFAIL_VALID(12));
	expect_eq("vmread-error-in-page", ev_read(e_page, VMCS_INSN_ERROR), 12);
	expect_eq("vmwrite", vmwrite_try(VMCS_GUEST_RIP, 1), VMFAIL_INVALID);
	ev_write(e_page, VMCS_GUEST_RIP, r.rip);
	r = ev_resume_past(e_page, &r);
	expect_true("vmread-changed-nothing", called(&r, SECOND));
}

static bool holds(const u8 *page, u8 byte)
{
	for (u32 i = 0; i < PAGE_SIZE; i++)
		if (page[i] != byte)
			return false;
	return true;
}

/* The assist page goes elsewhere, or nowhere: what it named is L1's alone. */
static void assist_written(const char *name, u64 value)
{
	u64 stored = 0;
	char text[48];

	prepare(f_page, l2_calls);
	ev_enter(f_page, false);
	vmwrite_try(VMCS_GUEST_RIP, 1);
	memset(f_page, 0x5a, PAGE_SIZE);
	wrmsr(HV_MSR_ASSIST, value);
	format_text(text, sizeof(text), "%s-no-vmcs", name);
	expect_eq(text, vmread_try(VMCS_GUEST_RIP, &stored), VMFAIL_INVALID);
	format_text(text, sizeof(text), "%s-writes-nothing", name);
	expect_true(text, holds(f_page, 0x5a));
	wrmsr(HV_MSR_ASSIST, addr_of((const void *)(uintptr_t)hv_assist()) | 1);
}

/* After each of these the page is L1's alone. */
static void ends(void)
{
	u64 plain, stored = 0;
	struct vm_result r;

	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	memset(e_page, 0x5a, PAGE_SIZE);
	expect_eq("vmclear", vmclear(addr_of(e_page)), VM_OK);
	expect_true("vmclear-writes-nothing", holds(e_page, 0x5a));
	expect_eq("vmclear-never-used", vmclear(addr_of(f_page)), VM_OK);

	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	prepare(f_page, l2_calls);
	memset(e_page, 0x5a, PAGE_SIZE);
	r = ev_enter(f_page, false);
	vmwrite_try(VMCS_GUEST_RIP, 1);
	expect_true("switch-writes-nothing", r.reason == EXIT_VMCALL && holds(e_page, 0x5a));

	assist_written("assist-off", 0);
	assist_written("assist-moved", addr_of(page_alloc()) | 1);

	prepare(e_page, l2_calls);
	ev_enter(e_page, false);
	memset(e_page, 0x5a, PAGE_SIZE);
	vmxoff();
	expect_true("vmxoff-writes-nothing", holds(e_page, 0x5a));
	vmx_start();

	ev_off();
	l2_prepare(l2_calls);
	plain = l2_vmcs();
	r = l2_launch();
	expect_true("plain-while-off", called(&r, FIRST));
	ev_fill(e_page);
	*ev_clean(e_page) = 0;
	r = ev_resume_past(e_page, &r);
	expect_true("enlightened-beside-plain", called(&r, SECOND));
	vmptrst(&stored);
	expect_eq("vmptrst-is-the-plain-one", stored, plain);
	ev_off();
	expect_eq("off-goes-back-to-plain", l2_enter_raw(true), 0);
	vmclear(plain);
}

/* A page given up is like any other: it becomes a plain VMCS, and an enlightened one again. */
static void reused(void)
{
	struct vm_result r;

	prepare(e_page, l2_calls);
	ev_enter(e_page, false);
	ev_off();
	vmclear(addr_of(e_page));
	memset(e_page, 0, PAGE_SIZE);
	*ev_word(e_page, EV_VERSION) = (u32)rdmsr(MSR_VMX_BASIC) & 0x7fffffff;
	l2_prepare_in(addr_of(e_page), l2_calls);
	r = l2_launch();
	expect_true("reused-as-plain", called(&r, FIRST));
	r = l2_run_past(&r);
	expect_true("reused-as-plain-resumes", called(&r, SECOND));
	vmclear(addr_of(e_page));
	prepare(e_page, l2_calls);
	r = ev_enter(e_page, false);
	expect_true("enlightened-again", called(&r, FIRST));
	expect_eq("enlightened-again-clean", *ev_clean(e_page) & EV_CLEAN_ALL, EV_CLEAN_ALL);
}

/* Enlightened MSR bitmap: a bit set without telling may be seen late, one that was told must be seen. */
static void msr_bitmap(void)
{
	struct vm_result r;
	u8 *reads = l2_msr_bitmap() + 1024;
	u32 bit = MSR_KERNEL_GS_BASE & 0x1fff;

	memset(l2_msr_bitmap(), 0, PAGE_SIZE);
	prepare(e_page, l2_reads_msr);
	*ev_word(e_page, EV_CONTROL) = EV_CONTROL_MSR_BITMAP;
	r = ev_enter(e_page, false);
	expect_true("msr-let-through", called(&r, FIRST));
	r = ev_resume_past(e_page, &r);
	expect_true("msr-again", called(&r, FIRST));
	reads[bit / 8] |= (u8)(1u << bit % 8);
	*ev_clean(e_page) &= ~(u32)BIT(EV_MSR_BITMAP);
	r = ev_resume_past(e_page, &r);
	expect_exit("msr-bitmap-told", r, EXIT_RDMSR);
	reads[bit / 8] = 0;
	*ev_word(e_page, EV_CONTROL) = 0;
	*ev_clean(e_page) &= ~(u32)BIT(EV_ENLIGHTENMENTS);
	r = ev_enter(e_page, true);
	expect_true("msr-bitmap-without-promise", called(&r, FIRST));
}

static void not_offered(void)
{
	static const struct {
		const char *name;
		u32 field;
		u64 bits;
	} cases[] = {
		{"no-preemption-timer", VMCS_PIN_CTL, PIN_TIMER},
		{"no-posted-interrupts", VMCS_PIN_CTL, PIN_POSTED},
		{"no-save-timer", VMCS_EXIT_CTL, EXIT_SAVE_TIMER},
		{"no-exit-perf", VMCS_EXIT_CTL, EXIT_LOAD_PERF},
		{"no-entry-perf", VMCS_ENTRY_CTL, ENTRY_LOAD_PERF},
		{"no-apic-access", VMCS_PROC2_CTL, PROC2_APIC_ACCESS},
		{"no-apic-registers", VMCS_PROC2_CTL, PROC2_APIC_REG},
		{"no-interrupt-delivery", VMCS_PROC2_CTL, PROC2_VID},
		{"no-ple", VMCS_PROC2_CTL, PROC2_PLE},
		{"no-vmfunc", VMCS_PROC2_CTL, PROC2_VMFUNC},
		{"no-shadowing", VMCS_PROC2_CTL, PROC2_SHADOW},
		{"no-pml", VMCS_PROC2_CTL, PROC2_PML},
		{"no-ve", VMCS_PROC2_CTL, PROC2_VE},
		{"no-pt-conceal", VMCS_PROC2_CTL, BIT(19)},
		{"no-pt-guest-addresses", VMCS_PROC2_CTL, BIT(24)},
		{"no-tsc-scaling", VMCS_PROC2_CTL, PROC2_TSC_SCALING},
		{"no-notify", VMCS_PROC2_CTL, BIT(31)},
		{"no-tertiary", VMCS_PROC_CTL, BIT(17)},
		{"no-exit-pt", VMCS_EXIT_CTL, BIT(25)},
		{"no-entry-pt", VMCS_ENTRY_CTL, BIT(18)},
	};
	static const struct {
		const char *name;
		u32 field, plain, exact;
	} pairs[] = {
		{"pin-msrs", VMCS_PIN_CTL, MSR_VMX_PIN, MSR_VMX_TRUE_PIN},
		{"proc-msrs", VMCS_PROC_CTL, MSR_VMX_PROC, MSR_VMX_TRUE_PROC},
		{"exit-msrs", VMCS_EXIT_CTL, MSR_VMX_EXIT, MSR_VMX_TRUE_EXIT},
		{"entry-msrs", VMCS_ENTRY_CTL, MSR_VMX_ENTRY, MSR_VMX_TRUE_ENTRY},
		{"proc2-msr", VMCS_PROC2_CTL, MSR_VMX_PROC2, MSR_VMX_PROC2},
	};
	u64 functions = 0;
	struct vm_result r;

	for (u32 i = 0; i < ARRAY_SIZE(pairs); i++) {
		u64 hidden = 0;

		for (u32 k = 0; k < ARRAY_SIZE(cases); k++)
			hidden |= cases[k].field == pairs[i].field ? cases[k].bits : 0;
		expect_eq(pairs[i].name, (rdmsr(pairs[i].plain) | rdmsr(pairs[i].exact)) >> 32 & hidden, 0);
	}
	try_rdmsr(MSR_VMX_VMFUNC, &functions);
	expect_eq("no-functions", functions, 0);
	for (u32 i = 0; i < ARRAY_SIZE(cases); i++) {
		prepare(e_page, l2_calls);
		ev_write(e_page, cases[i].field, ev_read(e_page, cases[i].field) | cases[i].bits);
		r = ev_enter(e_page, false);
		expect_fail(cases[i].name, r, FAILED(VMFAIL_VALID(7)));
	}
}

void test_main(void)
{
	if (hv_available() && vmx_available()) {
		hv_start();
		e_page = page_alloc();
		f_page = page_alloc();
		entry();
		versions();
		bad_pages();
		switches();
		cleared();
		left_standing();
		failed_entry();
		vmread_vmwrite();
		ends();
		reused();
		msr_bitmap();
		not_offered();
		ev_off();
	}
	report_done();
}
