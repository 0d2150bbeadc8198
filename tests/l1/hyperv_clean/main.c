/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each clean field of the enlightened VMCS: a change with the bit cleared is seen, one with the bit standing
 * may be seen or not, and a wrong value is refused or not looked at, never run. TLFS "Enlightened VMCS",
 * "Clean Fields".
 */
#include "evmcs.h"
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: clean fields one by one";

#define DONE        1u
#define PORT        0x2f0u /* no device: reads all ones */
#define PAT_RESET   0x0007040600070406ull
#define PAT_OF_L2   0x0606060606060606ull
#define WINDOW      0x3f000000ull
#define OLD         0x1111u
#define NEW         0x2222u
#define FLUSH_SPACE 0x02ull
#define SHIFT       BIT(50) /* of the TSC */
#define MARK        0x1234000ull
#define CS_OF_L2    0x48u
#define AC          BIT(18)
#define TS          BIT(3)

static u8 *page, *io_bitmap, *msr_bitmap;
static u64 other_root;

/* What L2 finds; each exit that a change of controls brings comes at a step of its own. */
static volatile struct {
	u64 tsc, cr0, pat, sysenter_cs, window, flush;
	u32 injected;
} found;

static u64 flush_call(void)
{
	u64 rax = ~0ull, rcx = FLUSH_SPACE, rdx = 0xfffffff000ull;

	asm volatile("vmcall" : "+a"(rax), "+c"(rcx) : "d"(rdx) : "r8", "r9", "r10", "r11", "memory", "cc");
	return rax;
}

static void l2_looks(void)
{
	for (;;) {
		inb(PORT);
		rdmsr(MSR_KERNEL_GS_BASE);
		found.tsc = rdtsc();
		sidt();
		asm volatile(TRY("ud2") : : : "memory");
		found.cr0 = read_cr0();
		found.pat = rdmsr(MSR_PAT);
		found.sysenter_cs = rdmsr(MSR_SYSENTER_CS);
		found.window = *(volatile u64 *)WINDOW;
		found.flush = flush_call(); /* L1's while L0 is not asked to do it */
		asm volatile("vmcall" : : "a"(DONE), "c"(0ull) : "memory"); /* no code that L0 would take */
	}
}

static void on_injected(struct regs *r)
{
	(void)r;
	found.injected = 1;
}

/* --- what shows the value of a group --- */

static u64 exit_of(const struct vm_result *r)
{
	return r->reason;
}

static u64 tsc_of(const struct vm_result *r)
{
	(void)r;
	return found.tsc >= SHIFT;
}

static u64 cr0_of(const struct vm_result *r)
{
	(void)r;
	return found.cr0 & TS;
}

static u64 pat_of(const struct vm_result *r)
{
	(void)r;
	return found.pat;
}

static u64 sysenter_of(const struct vm_result *r)
{
	(void)r;
	return found.sysenter_cs;
}

static u64 window_of(const struct vm_result *r)
{
	(void)r;
	return found.window;
}

static u64 injected_of(const struct vm_result *r)
{
	(void)r;
	return found.injected;
}

static u64 rflags_of(const struct vm_result *r)
{
	(void)r;
	return ev_read(page, VMCS_GUEST_RFLAGS) & AC;
}

static u64 guest_fs_of(const struct vm_result *r)
{
	(void)r;
	return ev_read(page, VMCS_GUEST_FS_BASE);
}

static u64 host_fs_of(const struct vm_result *r)
{
	(void)r;
	return rdmsr(MSR_FS_BASE);
}

static u64 host_sysenter_of(const struct vm_result *r)
{
	(void)r;
	return rdmsr(MSR_SYSENTER_CS);
}

/* Not L1's call any more, or still. */
static u64 call_of(const struct vm_result *r)
{
	(void)r;
	return l2_regs()->rcx == FLUSH_SPACE;
}

/* --- one group after the other --- */

#define BAD_CONTROL FAILED(VMFAIL_VALID(7))
#define BAD_HOST    FAILED(VMFAIL_VALID(8))
#define BAD_GUEST   (EXIT_ENTRY_FAILED | EXIT_BAD_GUEST)

struct change {
	u32 field;
	u64 value;
	bool add; /* to what is there, bit by bit */
};

static const struct group {
	const char *name;
	struct change good, bad;
	u64 (*of)(const struct vm_result *r);
	u64 old, new, refusal;
} groups[] = {
	/* clang-format off */
	{ "msr-bitmap", { VMCS_MSR_BITMAP, 0, false }, { VMCS_MSR_BITMAP, 1, false },
	  exit_of, EXIT_VMCALL, EXIT_RDMSR, BAD_CONTROL },
	{ "io-bitmap", { VMCS_IO_BITMAP_A, 0, false }, { VMCS_IO_BITMAP_A, 1, false },
	  exit_of, EXIT_VMCALL, EXIT_IO, BAD_CONTROL },
	{ "control-grp2", { VMCS_TSC_OFFSET, SHIFT, false }, { VMCS_VIRTUAL_APIC, 1, false },
	  tsc_of, 0, 1, BAD_CONTROL },
	{ "control-grp1", { VMCS_PROC2_CTL, PROC2_DESC_TABLE, true }, { VMCS_PIN_CTL, PIN_VNMI, true },
	  exit_of, EXIT_VMCALL, EXIT_GDTR_IDTR, BAD_CONTROL },
	{ "control-proc", { VMCS_PROC_CTL, PROC_RDTSC, true }, { VMCS_PROC_CTL, PROC_NMI_WINDOW, true },
	  exit_of, EXIT_VMCALL, EXIT_RDTSC, BAD_CONTROL },
	{ "control-event", { VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXCEPTION | VEC_BR, false },
	  { VMCS_ENTRY_INTR_INFO, INTR_VALID | BIT(8), false }, injected_of, 0, 1, BAD_CONTROL },
	{ "control-entry", { VMCS_ENTRY_CTL, ENTRY_LOAD_PAT, true }, { VMCS_ENTRY_CTL, ENTRY_SMM, true },
	  pat_of, PAT_RESET, PAT_OF_L2, BAD_CONTROL },
	{ "control-excpn", { VMCS_EXCEPTION_BITMAP, BIT(VEC_UD), false },
	  { VMCS_EXCEPTION_BITMAP, BIT(VEC_UD), false }, exit_of, EXIT_VMCALL, EXIT_EXCEPTION, EXIT_EXCEPTION },
	{ "crdr", { VMCS_CR0_READ_SHADOW, TS, false }, { VMCS_GUEST_CR0, 0x80000000, false },
	  cr0_of, 0, TS, BAD_GUEST },
	{ "control-xlat", { VMCS_EPTP, 0, false }, { VMCS_EPTP, 7, false },
	  window_of, OLD, NEW, BAD_CONTROL },
	{ "guest-basic", { VMCS_GUEST_RFLAGS, 2 | AC, false }, { VMCS_GUEST_RFLAGS, 0, false },
	  rflags_of, 0, AC, BAD_GUEST },
	{ "guest-grp1", { VMCS_GUEST_SYSENTER_CS, CS_OF_L2, false },
	  { VMCS_GUEST_SYSENTER_EIP, BIT(60), false }, sysenter_of, 0, CS_OF_L2, BAD_GUEST },
	{ "guest-grp2", { VMCS_GUEST_FS_BASE, MARK, false }, { VMCS_GUEST_CS_AR, 0x1ffff, false },
	  guest_fs_of, 0, MARK, BAD_GUEST },
	{ "host-pointer", { VMCS_HOST_FS_BASE, MARK, false }, { VMCS_HOST_GDTR_BASE, BIT(60), false },
	  host_fs_of, 0, MARK, BAD_HOST },
	{ "host-grp1", { VMCS_HOST_SYSENTER_CS, CS_OF_L2, false }, { VMCS_HOST_CR4, 0, false },
	  host_sysenter_of, 0, CS_OF_L2, BAD_HOST },
	/* clang-format on */
};

/* Addresses are known only when the program runs. */
static u64 value_of(const struct change *c)
{
	if (c->value)
		return c->add ? ev_read(page, c->field) | c->value : c->value;
	switch (c->field) {
	case VMCS_MSR_BITMAP:
		return addr_of(msr_bitmap);
	case VMCS_IO_BITMAP_A:
		return addr_of(io_bitmap);
	case VMCS_EPTP:
		return ept_pointer(other_root);
	default:
		return 0;
	}
}

static void prepare(void)
{
	ev_off();
	l2_prepare(l2_looks);
	ev_fill(page);
	vmclear(l2_vmcs());
	ev_write(page, VMCS_PROC_CTL,
		 ev_read(page, VMCS_PROC_CTL) | PROC_IO_BITMAPS | PROC_TSC_OFFSET | PROC_TPR_SHADOW);
	ev_write(page, VMCS_IO_BITMAP_A, addr_of(io_bitmap) + PAGE_SIZE);
	ev_write(page, VMCS_IO_BITMAP_B, addr_of(io_bitmap) + PAGE_SIZE);
	ev_write(page, VMCS_VIRTUAL_APIC, addr_of(io_bitmap) + 2 * PAGE_SIZE);
	ev_write(page, VMCS_TSC_OFFSET, 0);
	ev_write(page, VMCS_GUEST_PAT, PAT_OF_L2);
	ev_write(page, VMCS_CR0_GUEST_HOST_MASK, TS);
	wrmsr(MSR_PAT, PAT_RESET);
	wrmsr(MSR_FS_BASE, 0);
	wrmsr(MSR_SYSENTER_CS, 0);
}

/* A first entry to the end of L2's round: both calls of it. */
static struct vm_result first(void)
{
	struct vm_result r;

	prepare();
	r = ev_enter(page, false);
	if (r.kind == VM_EXIT && r.reason == EXIT_VMCALL)
		r = ev_resume_past(page, &r);
	found.injected = 0;
	return r;
}

/* From the end of one round to the flush call of the next, or to where a change makes it stop; what is seen
 * of the group there, or how the entry failed. */
static u64 next(const struct group *g, const struct vm_result *r)
{
	struct vm_result now = ev_resume_past(page, r);

	return now.kind == VM_FAIL || now.reason & EXIT_ENTRY_FAILED ? l2_outcome(&now) : g->of(&now);
}

static void report_group(const struct group *g, const char *what, bool ok, u64 got)
{
	char text[48];

	format_text(text, sizeof(text), "%s-%s", g->name, what);
	report_range(text, __FILE__, __LINE__, ok, got, g->new, "or the old for");
}

static void check(const struct group *g)
{
	struct vm_result r = first();
	u64 got;

	report_group(g, "round", l2_called(&r, DONE), l2_outcome(&r));
	got = next(g, &r);
	report_group(g, "before", got == g->old, got);

	r = first();
	ev_write(page, g->good.field, value_of(&g->good));
	got = next(g, &r);
	report_group(g, "told", got == g->new, got);

	r = first();
	ev_write_quietly(page, g->good.field, value_of(&g->good));
	got = next(g, &r);
	report_group(g, "not-told", got == g->old || got == g->new, got);

	r = first();
	ev_write(page, g->bad.field, value_of(&g->bad));
	got = next(g, &r);
	report_group(g, "bad-told", got == g->refusal, got);

	r = first();
	ev_write_quietly(page, g->bad.field, value_of(&g->bad));
	got = next(g, &r);
	report_group(g, "bad-not-told", got == g->old || got == g->refusal, got);
}

/* The group of what is no VMCS field: who serves L2's flush call. */
static void enlightenments(void)
{
	static const struct group g = {.name = "enlightenments", .of = call_of, .old = 1, .new = 0};
	u64 *partition = page_alloc(), got;
	struct vm_result r = first();

	hv_assist()->nested_features = 1;
	*(volatile u64 *)(void *)(page + EV_PARTITION_ASSIST) = addr_of(partition);
	*ev_word(page, EV_CONTROL) = EV_CONTROL_NESTED_FLUSH;
	got = next(&g, &r);
	report_group(&g, "not-told", got <= 1, got);
	r = first();
	*(volatile u64 *)(void *)(page + EV_PARTITION_ASSIST) = addr_of(partition);
	*ev_word(page, EV_CONTROL) = EV_CONTROL_NESTED_FLUSH;
	*ev_clean(page) &= ~(u32)BIT(EV_ENLIGHTENMENTS);
	got = next(&g, &r);
	report_group(&g, "told", got == 0, got);
	expect_eq("enlightenments-l0-answers", HV_STATUS(found.flush), HV_INVALID_PARAMETER);
	hv_assist()->nested_features = 0;
}

static void make_pages(void)
{
	u64 *new = page_alloc(), *old = page_alloc();

	page = page_alloc();
	io_bitmap =
		pages_alloc(3, PAGE_SIZE); /* one that wants the port, one that wants none, a virtual APIC */
	io_bitmap[PORT / 8] = 0xff;
	msr_bitmap = page_alloc();
	memset(msr_bitmap, 0xff, PAGE_SIZE);
	*old = OLD;
	*new = NEW;
	*ept_entry(l2_ept(), WINDOW, PAGE_SIZE) = addr_of(old) | EPT_RWX | EPT_WB;
	other_root = ept_identity(BIT(32), PAGE_2M);
	*ept_entry(other_root, WINDOW, PAGE_SIZE) = addr_of(new) | EPT_RWX | EPT_WB;
}

void test_main(void)
{
	if (hv_available() && vmx_available()) {
		hv_start();
		make_pages();
		trap_handle(VEC_BR, on_injected);
		for (u32 i = 0; i < ARRAY_SIZE(groups); i++)
			check(&groups[i]);
		enlightenments();
		ev_off();
	}
	report_done();
}
