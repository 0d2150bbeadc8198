/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flushes of an L2: its own calls done by L0 (direct virtual flush), and L1's calls for pages it changed in
 * its EPT. An old translation is made first, then changed without any instruction that would flush. TLFS
 * "Direct Virtual Flush", "Nested Virtualization".
 */
#include "evmcs.h"
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: flushes of L2";

#define FLUSH_SPACE     0x02ull
#define FLUSH_LIST      0x03ull
#define FLUSH_SPACE_EX  0x13ull
#define FLUSH_LIST_EX   0x14ull
#define SPIN_WAIT       0x08ull
#define FLUSH_GPA_SPACE 0xafull
#define FLUSH_GPA_LIST  0xb0ull

#define TRAP_AFTER_FLUSH 0x10000031u

#define WINDOW 0x3f000000ull /* linear and L2-physical, by 4 KiB pages */
#define OLD    0x1111u
#define NEW    0x2222u

static u8 *e_page;
static u32 *partition;
static u64 *frames[2], *input;
static volatile u64 control, argument, result, seen;

static u64 vmcall3(u64 rcx, u64 rdx)
{
	u64 rax = 0;

	asm volatile("vmcall" : "+a"(rax), "+c"(rcx) : "d"(rdx) : "r8", "r9", "r10", "r11", "memory", "cc");
	return rax;
}

static u64 look(void)
{
	return *(volatile u64 *)WINDOW;
}

/* Makes the old translation, changes it, calls, looks. */
static void l2_flushes(void)
{
	u64 *entry = page_entry(WINDOW);

	*entry = addr_of(frames[0]) | PTE_RAM;
	invlpg(WINDOW);
	look();
	*entry = addr_of(frames[1]) | PTE_RAM;
	result = vmcall3(control, argument);
	seen = look();
	for (;;) /* with no call code that L0 would take for itself */
		asm volatile("vmcall" : : "a"(L2_DONE), "c"(0ull) : "memory");
}

static void l2_looks(void)
{
	for (;;) {
		seen = look();
		l2_call(L2_DONE);
	}
}

static void prepare_vp(u8 *page, u32 vp, l2_fn *fn, u32 evmcs_control, u32 features)
{
	ev_off();
	l2_prepare(fn);
	ev_fill(page);
	vmclear(l2_vmcs());
	*ev_word(page, EV_CONTROL) = evmcs_control;
	*ev_word(page, EV_VM_ID) = 7;
	*ev_word(page, EV_VP_ID) = vp;
	*(volatile u64 *)(void *)(page + EV_PARTITION_ASSIST) = addr_of(partition);
	hv_assist()->nested_features = features;
}

static void prepare(l2_fn *fn, u32 evmcs_control, u32 features)
{
	prepare_vp(e_page, 0, fn, evmcs_control, features);
}

static void set6(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	const u64 words[] = {a, b, c, d, e, f};

	for (u32 i = 0; i < ARRAY_SIZE(words); i++)
		input[i] = words[i];
	argument = addr_of(input);
}

static void set(u64 a, u64 b, u64 c, u64 d)
{
	set6(a, b, c, d, 0, 0);
}

static struct vm_result run(u64 call, u32 evmcs_control, u32 features)
{
	control = call;
	result = seen = ~0ull;
	prepare(l2_flushes, evmcs_control, features);
	return ev_enter(e_page, false);
}

static void not_allowed(void)
{
	struct vm_result r;

	set(0, 3, 0, 0);
	r = run(FLUSH_SPACE, 0, 1);
	expect_exit("not-by-evmcs", r, EXIT_VMCALL);
	expect_eq("not-by-evmcs-it-is-the-flush", l2_regs()->rcx, FLUSH_SPACE);
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 0);
	expect_eq("not-by-assist-page", l2_outcome(&r) == EXIT_VMCALL && l2_regs()->rcx == FLUSH_SPACE, 1);
	r = run(SPIN_WAIT, EV_CONTROL_NESTED_FLUSH, 1);
	expect_eq("other-call", l2_outcome(&r) == EXIT_VMCALL && l2_regs()->rcx == SPIN_WAIT, 1);
}

static void direct(void)
{
	struct vm_result r;

	set(0, 3, 0, WINDOW);
	*partition = 0;
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 1);
	expect_done("direct-space", r);
	expect_eq("direct-space-result", result, HV_SUCCESS);
	expect_eq("direct-space-fresh", seen, NEW);
	r = run(FLUSH_LIST | HV_REPS(1), EV_CONTROL_NESTED_FLUSH, 1);
	expect_done("direct-list", r);
	expect_eq("direct-list-result", result, HV_REPS(1));
	expect_eq("direct-list-fresh", seen, NEW);
	set(0, BIT(9), 0, 0);
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 1);
	expect_done("direct-bad-flags", r);
	expect_eq("direct-bad-flags-status", result, HV_INVALID_PARAMETER);
	argument += 4;
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 1);
	expect_eq("direct-misaligned", result, HV_INVALID_ALIGNMENT);
	argument = 0xfffffff000ull;
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 1);
	expect_eq("direct-outside-of-l2", result, HV_INVALID_PARAMETER);
	r = run(FLUSH_LIST, EV_CONTROL_NESTED_FLUSH, 1);
	expect_eq("direct-no-reps", result, HV_INVALID_INPUT);
}

static void locked(void)
{
	struct vm_result r;

	set(0, 3, 0, 0);
	*partition = 1;
	r = run(FLUSH_SPACE, EV_CONTROL_NESTED_FLUSH, 1);
	expect_eq("locked-exit-reason", r.reason, TRAP_AFTER_FLUSH);
	expect_eq("locked-result-in-rax", l2_regs()->rax, HV_SUCCESS);
	r = ev_enter(e_page, true);
	expect_done("locked-goes-on-behind-it", r);
	expect_eq("locked-fresh", seen, NEW);
	*partition = 0;
}

/* --- the other VP of the L2, on the other CPU --- */

static volatile u32 reader_outcome;

/* Leaves L2 for nothing that would flush. */
static void l2_reads(void)
{
	cpu_answer(look);
}

/* As l2_flushes, but it is the other VP that has the old translation. */
static void l2_flushes_other(void)
{
	u64 *entry = page_entry(WINDOW);

	*entry = addr_of(frames[0]) | PTE_RAM;
	vmcall3(control, argument);
	cpu_ask();
	*entry = addr_of(frames[1]) | PTE_RAM;
	result = vmcall3(control, argument);
	seen = cpu_ask();
	for (;;)
		asm volatile("vmcall" : : "a"(L2_DONE), "c"(0ull) : "memory");
}

static void other_vp(u64 vp)
{
	u8 *page = page_alloc();
	struct vm_result r;

	vmx_start();
	prepare_vp(page, (u32)vp, l2_reads, EV_CONTROL_NESTED_FLUSH, 1);
	r = ev_enter(page, false);
	reader_outcome = l2_called(&r, L2_DONE);
	ev_off();
}

static struct vm_result other_case(u64 call)
{
	control = call;
	result = seen = ~0ull;
	prepare(l2_flushes_other, EV_CONTROL_NESTED_FLUSH, 1);
	return ev_enter(e_page, false);
}

static void other_flushed(const char *name, u64 call, u64 want)
{
	struct vm_result r = other_case(call);
	char text[48];

	expect_done(name, r);
	format_text(text, sizeof(text), "%s-result", name);
	expect_eq(text, result, want);
	format_text(text, sizeof(text), "%s-fresh-there", name);
	expect_eq(text, seen, NEW);
}

static void others(void)
{
	struct vm_result r;

	cpu_run(1, other_vp, 65);
	set(0, 3, 0, WINDOW);
	other_flushed("other-vp-all", FLUSH_SPACE, HV_SUCCESS);
	set6(0, 2, 0, 2, 2, 0);
	other_flushed("other-vp-set", FLUSH_SPACE_EX | HV_VARIABLE(1), HV_SUCCESS);
	set6(0, 2, 0, 2, 2, WINDOW);
	other_flushed("other-vp-set-list", FLUSH_LIST_EX | HV_VARIABLE(1) | HV_REPS(1), HV_REPS(1));
	set6(0, 2, 1, 0, 0, 0);
	other_flushed("other-vp-set-all", FLUSH_SPACE_EX, HV_SUCCESS);
	set(0, 2, 1, WINDOW); /* only itself: what the other reads is its own affair */
	r = other_case(FLUSH_SPACE);
	expect_done("own-vp", r);
	expect_eq("own-vp-result", result, HV_SUCCESS);
	expect_true("own-vp-other-reads", seen == OLD || seen == NEW);
	set6(0, 2, 0, 3, 1, 0);
	r = other_case(FLUSH_SPACE_EX | HV_VARIABLE(1));
	expect_eq("other-vp-bank-missing", result, HV_INVALID_INPUT);
	cpu_dismiss(1);
	expect_true("other-vp-ends", reader_outcome);
}

/* --- L1's EPT --- */

static void point_ept(u32 i)
{
	u64 *entry = ept_entry(l2_ept(), WINDOW, PAGE_SIZE);

	*entry = (*entry & ~0xffffffffff000ull) | addr_of(frames[i]);
}

static void mapping_case(const char *name, u64 call)
{
	struct vm_result r;
	char text[48];

	point_ept(0);
	invept(1, ept_pointer(l2_ept()));
	prepare(l2_looks, 0, 0);
	r = ev_enter(e_page, false);
	format_text(text, sizeof(text), "%s-old", name);
	expect_eq(text, seen, OLD);
	point_ept(1);
	/* A processor may show either; Nidus keeps what it has made until it is told, which is what the call
	 * is for. */
	r = ev_resume_past(e_page, &r);
	format_text(text, sizeof(text), "%s-stale", name);
	expect_eq(text, seen, OLD);
	expect_eq(name, hv_call(call, addr_of(input), 0), call & HV_REPS(0xfff));
	r = ev_resume_past(e_page, &r);
	format_text(text, sizeof(text), "%s-fresh", name);
	expect_eq(text, seen, NEW);
}

static void mapping(void)
{
	*page_entry(WINDOW) = WINDOW | PTE_RAM;
	invlpg(WINDOW);
	set(ept_pointer(l2_ept()), 0, WINDOW, 0);
	mapping_case("mapping-space", FLUSH_GPA_SPACE);
	mapping_case("mapping-list", FLUSH_GPA_LIST | HV_REPS(1));
	set(l2_ept(), 0, (WINDOW & ~0x1fffffull) | BIT(11), 0);
	mapping_case("mapping-large", FLUSH_GPA_LIST | HV_REPS(1));
	set(l2_ept(), 0, ~0ull, WINDOW - PAGE_SIZE + 1);
	mapping_case("mapping-second-element", FLUSH_GPA_LIST | HV_REPS(2));
	set(l2_ept(), 1, WINDOW, 0);
	expect_eq("mapping-bad-flags", HV_STATUS(hv_call(FLUSH_GPA_SPACE, addr_of(input), 0)),
		  HV_INVALID_PARAMETER);
	expect_eq("mapping-list-bad-flags",
		  HV_STATUS(hv_call(FLUSH_GPA_LIST | HV_REPS(1), addr_of(input), 0)), HV_INVALID_PARAMETER);
	set(0x123000, 0, WINDOW, 0);
	expect_eq("mapping-unknown-root", HV_STATUS(hv_call(FLUSH_GPA_SPACE, addr_of(input), 0)), HV_SUCCESS);
}

void test_main(void)
{
	if (hv_available() && vmx_available()) {
		hv_start();
		vmx_start();
		e_page = page_alloc();
		partition = page_alloc();
		input = page_alloc();
		for (u32 i = 0; i < 2; i++) {
			frames[i] = page_alloc();
			*frames[i] = i ? NEW : OLD;
		}
		not_allowed();
		direct();
		locked();
		if (cpu_start_all() > 1)
			others();
		mapping();
		ev_off();
	}
	report_done();
}
