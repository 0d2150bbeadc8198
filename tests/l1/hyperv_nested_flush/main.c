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
#define SPIN_WAIT       0x08ull
#define FLUSH_GPA_SPACE 0xafull
#define FLUSH_GPA_LIST  0xb0ull

#define TRAP_AFTER_FLUSH 0x10000031u
#define NESTED_FLUSH     BIT(0)

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

static void prepare(l2_fn *fn, u32 evmcs_control, u32 features)
{
	ev_off();
	l2_prepare(fn);
	ev_fill(e_page);
	vmclear(l2_vmcs());
	*ev_word(e_page, EV_CONTROL) = evmcs_control;
	*ev_word(e_page, EV_VM_ID) = 7;
	*(volatile u64 *)(void *)(e_page + EV_PARTITION_ASSIST) = addr_of(partition);
	hv_assist()->nested_features = features;
}

static void set(u64 a, u64 b, u64 c, u64 d)
{
	input[0] = a;
	input[1] = b;
	input[2] = c;
	input[3] = d;
	argument = addr_of(input);
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
	r = run(FLUSH_SPACE, NESTED_FLUSH, 0);
	expect_eq("not-by-assist-page", l2_outcome(&r) == EXIT_VMCALL && l2_regs()->rcx == FLUSH_SPACE, 1);
	r = run(SPIN_WAIT, NESTED_FLUSH, 1);
	expect_eq("other-call", l2_outcome(&r) == EXIT_VMCALL && l2_regs()->rcx == SPIN_WAIT, 1);
}

static void direct(void)
{
	struct vm_result r;

	set(0, 3, 0, WINDOW);
	*partition = 0;
	r = run(FLUSH_SPACE, NESTED_FLUSH, 1);
	expect_done("direct-space", r);
	expect_eq("direct-space-result", result, HV_SUCCESS);
	expect_eq("direct-space-fresh", seen, NEW);
	r = run(FLUSH_LIST | HV_REPS(1), NESTED_FLUSH, 1);
	expect_done("direct-list", r);
	expect_eq("direct-list-result", result, HV_REPS(1));
	expect_eq("direct-list-fresh", seen, NEW);
	set(0, BIT(9), 0, 0);
	r = run(FLUSH_SPACE, NESTED_FLUSH, 1);
	expect_done("direct-bad-flags", r);
	expect_eq("direct-bad-flags-status", result, HV_INVALID_PARAMETER);
	argument += 4;
	r = run(FLUSH_SPACE, NESTED_FLUSH, 1);
	expect_eq("direct-misaligned", result, HV_INVALID_ALIGNMENT);
	argument = 0xfffffff000ull;
	r = run(FLUSH_SPACE, NESTED_FLUSH, 1);
	expect_eq("direct-outside-of-l2", result, HV_INVALID_PARAMETER);
	r = run(FLUSH_LIST, NESTED_FLUSH, 1);
	expect_eq("direct-no-reps", result, HV_INVALID_INPUT);
}

static void locked(void)
{
	struct vm_result r;

	set(0, 3, 0, 0);
	*partition = 1;
	r = run(FLUSH_SPACE, NESTED_FLUSH, 1);
	expect_eq("locked-exit-reason", r.reason, TRAP_AFTER_FLUSH);
	expect_eq("locked-result-in-rax", l2_regs()->rax, HV_SUCCESS);
	r = ev_enter(e_page, true);
	expect_done("locked-goes-on-behind-it", r);
	expect_eq("locked-fresh", seen, NEW);
	*partition = 0;
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
		mapping();
		ev_off();
	}
	report_done();
}
