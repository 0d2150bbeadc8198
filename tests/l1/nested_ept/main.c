/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's EPT rules its L2: permissions, page sizes, violation qualification, widening without INVEPT, narrowing
 * with it, misconfigurations, and that L1's tables are left alone. SDM "EPT Violations", "EPT
 * Misconfigurations".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: EPT";

#define FINAL (EPT_Q_LINEAR | EPT_Q_FINAL)

static volatile u64 *page;
static u64 gpa;
static volatile u64 l2_value;

static void l2_read(void)
{
	l2_value = *page;
}

static void l2_write(void)
{
	*page = 0x1234;
}

static void l2_write_twice(void)
{
	page[0] = 1;
	l2_call(1);
	page[1] = 2;
}

static void l2_execute(void)
{
	((void (*)(void))(uintptr_t)page)();
}

static u64 *entry(void)
{
	return ept_entry(l2_ept(), gpa, PAGE_SIZE);
}

static struct vm_result start(l2_fn *fn, u64 flags)
{
	*entry() = flags ? gpa | flags : 0;
	if (proc2_has(PROC2_EPT))
		invept(1, ept_pointer(l2_ept()));
	l2_prepare(fn);
	return l2_launch();
}

struct access {
	const char *name;
	l2_fn *fn;
	u64 flags;
	u64 qual; /* of the violation; 0: none is expected */
};

static const struct access accesses[] = {
	{"read-none", l2_read, 0, EPT_Q_READ},
	{"write-none", l2_write, 0, EPT_Q_WRITE},
	{"fetch-none", l2_execute, 0, EPT_Q_FETCH},
	{"read-r", l2_read, EPT_R | EPT_WB, 0},
	{"write-r", l2_write, EPT_R | EPT_WB, EPT_Q_WRITE | EPT_Q_R},
	{"fetch-r", l2_execute, EPT_R | EPT_WB, EPT_Q_FETCH | EPT_Q_R},
	{"write-rw", l2_write, EPT_R | EPT_W | EPT_WB, 0},
	{"fetch-rw", l2_execute, EPT_R | EPT_W | EPT_WB, EPT_Q_FETCH | EPT_Q_R | EPT_Q_W},
	{"fetch-rx", l2_execute, EPT_R | EPT_X | EPT_WB, 0},
	{"write-rx", l2_write, EPT_R | EPT_X | EPT_WB, EPT_Q_WRITE | EPT_Q_R | EPT_Q_X},
	{"read-rwx", l2_read, EPT_RWX | EPT_WB, 0},
};

static void check_access(const struct access *a)
{
	struct vm_result r;
	char name[48];

	*page = 0xc3; /* ret */
	r = start(a->fn, a->flags);
	if (!a->qual) {
		expect_done(a->name, r);
		return;
	}
	expect_exit(a->name, r, EXIT_EPT_VIOLATION);
	format_text(name, sizeof(name), "%s-qualification", a->name);
	expect_eq(name, r.qual & 0x1ff, a->qual | FINAL);
	format_text(name, sizeof(name), "%s-addresses", a->name);
	expect_true(name, (r.gpa & ~4095ul) == gpa && (r.gla & ~4095ul) == addr_of(page));
}

static void execute_only(void)
{
	static const struct access x[] = {{"fetch-x", l2_execute, EPT_X | EPT_WB, 0},
					  {"read-x", l2_read, EPT_X | EPT_WB, EPT_Q_READ | EPT_Q_X}};

	if (!(rdmsr(MSR_VMX_EPT_VPID_CAP) & EPT_CAP_EXEC_ONLY)) {
		skip("execute-only", "not offered");
		return;
	}
	check_access(&x[0]);
	check_access(&x[1]);
}

/* SDM "Caching of Information": adding permissions needs no INVEPT, the access is retried with the new entry.
 */
static void widening(void)
{
	struct vm_result r = start(l2_write, 0);

	expect_exit("widen-first-violation", r, EXIT_EPT_VIOLATION);
	*entry() = gpa | EPT_R | EPT_WB;
	r = l2_resume();
	expect_exit("widen-to-r", r, EXIT_EPT_VIOLATION);
	expect_eq("widen-to-r-qualification", r.qual & 0x3f, EPT_Q_WRITE | EPT_Q_R);
	*entry() = gpa | EPT_R | EPT_W | EPT_WB;
	r = l2_resume();
	expect_done("widen-to-rw", r);
	expect_eq("widen-value", *page, 0x1234);
}

static void narrowing(void)
{
	struct vm_result r = start(l2_write_twice, EPT_RWX | EPT_WB);

	expect_true("narrow-first-write", l2_called(&r, 1));
	*entry() = gpa | EPT_R | EPT_WB;
	invept(1, ept_pointer(l2_ept()));
	r = l2_run_past(&r);
	expect_exit("narrow-second-write", r, EXIT_EPT_VIOLATION);
	expect_eq("narrow-not-written", page[1], 0);
	*entry() = 0;
	invept(2, 0);
	r = l2_resume();
	expect_exit("unmap-after-narrow", r, EXIT_EPT_VIOLATION);
	expect_eq("unmap-qualification", r.qual & 0x3f, EPT_Q_WRITE);
}

/* L2's page tables are behind EPT too: a page-walk access has bit 8 clear. */
static void walk_access(void)
{
	u64 pml4 = addr_of(page_pml4);
	u64 *e = ept_entry(l2_ept(), pml4, PAGE_SIZE), old = *e;
	struct vm_result r;

	*e = 0;
	invept(1, ept_pointer(l2_ept()));
	l2_prepare(l2_read);
	r = l2_launch();
	*e = old;
	expect_exit("walk-violation", r, EXIT_EPT_VIOLATION);
	expect_eq("walk-bit-8-clear", r.qual & FINAL, EPT_Q_LINEAR);
	expect_eq("walk-gpa", r.gpa & ~4095ul, pml4);
}

struct broken {
	const char *name;
	u64 bits;
};

static void misconfigured(void)
{
	static const struct broken kinds[] = {
		{"write-only", EPT_W | EPT_WB},           {"write-execute", EPT_W | EPT_X | EPT_WB},
		{"memory-type-2", EPT_RWX | 2ul << 3},    {"memory-type-3", EPT_RWX | 3ul << 3},
		{"memory-type-7", EPT_RWX | 7ul << 3},    {"too-wide", EPT_RWX | EPT_WB | BIT(51)},
		{"write-only-too-wide", EPT_W | BIT(51)},
	};

	for (u32 i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct vm_result r = start(l2_read, kinds[i].bits);
		char name[48];

		format_text(name, sizeof(name), "misconfig-%s", kinds[i].name);
		expect_exit(name, r, EXIT_EPT_MISCONFIG);
		format_text(name, sizeof(name), "misconfig-%s-gpa", kinds[i].name);
		expect_eq(name, r.gpa & ~4095ul, gpa);
	}
}

static void misconfigured_above(void)
{
	u64 *pde = ept_entry(l2_ept(), gpa, PAGE_2M), old = *pde;
	struct vm_result r;

	start(l2_read, EPT_RWX | EPT_WB);
	*pde = old | BIT(4); /* reserved in an entry that names a table */
	invept(1, ept_pointer(l2_ept()));
	l2_prepare(l2_read);
	r = l2_launch();
	expect_exit("misconfig-non-leaf", r, EXIT_EPT_MISCONFIG);
	*pde = (old & ~EPT_RWX) | EPT_W;
	invept(1, ept_pointer(l2_ept()));
	r = l2_run();
	expect_exit("misconfig-non-leaf-write-only", r, EXIT_EPT_MISCONFIG);
	*pde = (old & ~EPT_RWX) | EPT_R;
	invept(1, ept_pointer(l2_ept()));
	l2_prepare(l2_write);
	r = l2_launch();
	expect_exit("non-leaf-permission", r, EXIT_EPT_VIOLATION);
	expect_eq("non-leaf-permission-qualification", r.qual & 0x3f, EPT_Q_WRITE | EPT_Q_R);
	*pde = old;
	invept(1, ept_pointer(l2_ept()));
}

#define HOLES_RAM   (16ul << 20) /* from here on pages of RAM are written through the leaf */
#define HOLES_PAGES 20u
#define VGA_TEXT    0xb8000ul
#define NO_RAM      0x90000000ul /* between RAM and the devices */

/* Into pages all over RAM, then what is none. */
static void l2_over_holes(void)
{
	for (u64 i = 0; i < HOLES_PAGES; i++)
		*(volatile u64 *)ptr_to(HOLES_RAM + i * (PAGE_2M + PAGE_SIZE)) = 0xabc000 + i;
	l2_value = *(volatile u16 *)ptr_to(VGA_TEXT + 0xf00);
	l2_call(*(volatile u32 *)ptr_to(NO_RAM + 0x123450));
}

/* Leaves of 1 GiB that the machine below must take apart: RAM, the video hole, nothing. */
static void large_leaf_over_holes(u64 root)
{
	u32 wrong = 0, nothing = *(volatile u32 *)ptr_to(NO_RAM + 0x123450);
	struct vm_result r;

	l2_prepare(l2_over_holes);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	r = l2_launch();
	expect_true("1g-no-ram", l2_called(&r, nothing));
	expect_eq("1g-video-hole", l2_value, *(volatile u16 *)ptr_to(VGA_TEXT + 0xf00));
	for (u64 i = 0; i < HOLES_PAGES; i++)
		wrong += *(volatile u64 *)ptr_to(HOLES_RAM + i * (PAGE_2M + PAGE_SIZE)) != 0xabc000 + i;
	expect_eq("1g-scattered-writes", wrong, 0);
}

/* The same data through 4 KiB, 2 MiB and 1 GiB leaves, and a 4 KiB alias of another page. */
static void page_sizes(void)
{
	u64 big = gpa & ~(PAGE_2M - 1), root, other = addr_of(page_alloc());
	struct vm_result r;

	*page = 0xfeed;
	*(u64 *)ptr_to(other) = 0xbeef;
	root = ept_identity(BIT(32), PAGE_2M);
	l2_prepare(l2_read);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	r = l2_launch();
	expect_done("2m-leaf", r);
	expect_eq("2m-value", l2_value, 0xfeed);

	*ept_entry(root, gpa, PAGE_SIZE) = other | EPT_RWX | EPT_WB;
	invept(1, ept_pointer(root));
	l2_set_entry(l2_read);
	r = l2_run();
	expect_done("4k-alias", r);
	expect_eq("4k-alias-value", l2_value, 0xbeef);

	*ept_entry(root, big, PAGE_2M) = big | EPT_RWX | EPT_WB | EPT_LARGE;
	invept(1, ept_pointer(root));
	l2_set_entry(l2_read);
	r = l2_run();
	expect_done("2m-again", r);
	expect_eq("2m-again-value", l2_value, 0xfeed);

	if (!(rdmsr(MSR_VMX_EPT_VPID_CAP) & EPT_CAP_1G)) {
		skip("1g-leaf", "not offered");
		return;
	}
	root = ept_identity(BIT(32), PAGE_1G);
	vmwrite(VMCS_EPTP, ept_pointer(root));
	l2_set_entry(l2_read);
	r = l2_run();
	expect_done("1g-leaf", r);
	expect_eq("1g-value", l2_value, 0xfeed);
	large_leaf_over_holes(root);
}

/* Without A/D flags the CPU reads EPT entries and never writes them (Xen bab2bd8e22). */
static void tables_untouched(void)
{
	struct vm_result r = start(l2_write, EPT_RWX | EPT_WB);

	expect_done("untouched-run", r);
	expect_eq("leaf-untouched", *entry(), gpa | EPT_RWX | EPT_WB);
	expect_eq("pde-untouched", *ept_entry(l2_ept(), gpa, PAGE_2M) & (EPT_A | EPT_D), 0);
}

/* With the flags a page walk of L2 counts as a write of its tables, which it also reads. */
static void accessed_dirty_walk(void)
{
	u64 pml4 = addr_of(page_pml4);
	u64 *e = ept_entry(l2_ept(), pml4, PAGE_SIZE), old = *e;
	struct vm_result r;

	l2_prepare(l2_read);
	vmwrite(VMCS_EPTP, ept_pointer(l2_ept()) | EPTP_AD);
	*e = old & ~EPT_W;
	invept(2, 0);
	r = l2_launch();
	expect_exit("ad-walk-needs-write", r, EXIT_EPT_VIOLATION);
	expect_eq("ad-walk-qualification", r.qual & 0x1bf,
		  EPT_Q_READ | EPT_Q_WRITE | EPT_Q_R | EPT_Q_X | EPT_Q_LINEAR);
	*e = old & ~EPT_D;
	invept(2, 0);
	r = l2_run();
	expect_done("ad-walk-run", r);
	expect_eq("ad-walk-sets-d", *e & (EPT_A | EPT_D), EPT_A | EPT_D);
	*e = old;
}

static void accessed_dirty(void)
{
	struct vm_result r;

	if (!(rdmsr(MSR_VMX_EPT_VPID_CAP) & EPT_CAP_AD)) {
		skip("accessed-dirty", "not offered");
		return;
	}
	*entry() = gpa | EPT_RWX | EPT_WB;
	l2_prepare(l2_read);
	vmwrite(VMCS_EPTP, ept_pointer(l2_ept()) | EPTP_AD);
	invept(2, 0);
	r = l2_launch();
	expect_done("ad-read-run", r);
	expect_eq("ad-read-sets-a", *entry() & (EPT_A | EPT_D), EPT_A);
	l2_set_entry(l2_write);
	r = l2_run();
	expect_done("ad-write-run", r);
	expect_eq("ad-write-sets-d", *entry() & (EPT_A | EPT_D), EPT_A | EPT_D);
	*entry() &= ~(EPT_A | EPT_D);
	invept(1, ept_pointer(l2_ept()) | EPTP_AD);
	l2_set_entry(l2_write);
	r = l2_run();
	expect_done("ad-cleared-run", r);
	expect_eq("ad-set-again", *entry() & (EPT_A | EPT_D), EPT_A | EPT_D);
	accessed_dirty_walk();
}

void test_main(void)
{
	if (!vmx_available())
		return;
	if (!proc2_has(PROC2_EPT)) {
		skip("ept", "not offered");
		return;
	}
	page = ptr_to(24ul << 20); /* RAM far from this image, so that its 2 MiB entry can be broken */
	gpa = addr_of(page);
	vmx_start();
	for (u32 i = 0; i < ARRAY_SIZE(accesses); i++)
		check_access(&accesses[i]);
	execute_only();
	widening();
	*page = page[1] = 0;
	narrowing();
	walk_access();
	misconfigured();
	misconfigured_above();
	page_sizes();
	tables_untouched();
	accessed_dirty();
}
