/* SPDX-License-Identifier: Apache-2.0 */
/* EPT violations that become L2's own #VE: what the information area says, and each condition under which the
 * violation exits instead. SDM "Virtualization Exceptions". */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: virtualization exceptions";

#define VEC_VE     20
#define GPA        (24ul << 20)
#define SUPPRESS   BIT(63)
#define READ_QUAL  (EPT_Q_READ | EPT_Q_LINEAR | EPT_Q_FINAL)
#define WRITE_QUAL (EPT_Q_WRITE | EPT_Q_LINEAR | EPT_Q_FINAL)

static struct ve_info {
	u32 reason, busy;
	u64 qual, linear, phys;
	u16 index;
} * area;

static struct ve_info seen;
static volatile u32 exceptions;
static u64 *entry;

/* In L2, which shares L1's memory: makes the page usable and lets the instruction run again. */
static void on_ve(struct regs *r)
{
	(void)r;
	exceptions++;
	seen = *area;
	*entry = GPA | EPT_RWX | EPT_WB;
	area->busy = 0;
}

static void l2_read(void)
{
	(void)*(volatile u64 *)ptr_to(GPA + 8);
}

static void l2_write(void)
{
	*(volatile u64 *)ptr_to(GPA + 16) = 1;
}

static struct vm_result run(l2_fn *fn, u64 leaf)
{
	exceptions = 0;
	*entry = leaf;
	memset(area, 0, PAGE_SIZE);
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VE);
	vmwrite(VMCS_VE_INFO, addr_of(area));
	vmwrite(VMCS_EPTP_INDEX, 7);
	invept(2, 0);
	return l2_launch();
}

static void converted(void)
{
	struct vm_result r = run(l2_read, 0);

	expect_done("absent-page", r);
	expect_eq("absent-page-exceptions", exceptions, 1);
	expect_eq("reason", seen.reason, EXIT_EPT_VIOLATION);
	expect_eq("busy", seen.busy, 0xffffffff);
	expect_eq("qualification", seen.qual, READ_QUAL);
	expect_eq("linear", seen.linear, GPA + 8);
	expect_eq("physical", seen.phys, GPA + 8);
	expect_eq("eptp-index", seen.index, 7);
	r = run(l2_write, GPA | EPT_R | EPT_WB);
	expect_done("read-only-page", r);
	expect_eq("read-only-page-exceptions", exceptions, 1);
	expect_eq("read-only-page-qualification", seen.qual, WRITE_QUAL | EPT_Q_R);
}

static void exits_instead(void)
{
	struct vm_result r = run(l2_read, SUPPRESS);

	expect_exit("suppressed", r, EXIT_EPT_VIOLATION);
	r = run(l2_write, GPA | EPT_R | EPT_WB | SUPPRESS);
	expect_exit("suppressed-in-leaf", r, EXIT_EPT_VIOLATION);
	expect_eq("suppressed-leaves-area", area->reason, 0);

	run(l2_read, SUPPRESS);
	*entry = 0;
	area->busy = 1;
	r = l2_resume();
	expect_exit("area-busy", r, EXIT_EPT_VIOLATION);
	expect_eq("area-busy-unchanged", area->busy, 1);
	vmcs_clear_bits(VMCS_PROC2_CTL, PROC2_VE);
	area->busy = 0;
	r = l2_resume();
	expect_exit("control-off", r, EXIT_EPT_VIOLATION);

	run(l2_read, SUPPRESS);
	*entry = 0;
	vmcs_set_bits(VMCS_EXCEPTION_BITMAP, BIT(VEC_VE));
	r = l2_resume();
	expect_exit("intercepted", r, EXIT_EXCEPTION);
	expect_eq("intercepted-vector", r.intr_info, INTR_VALID | INTR_EXCEPTION | VEC_VE);
	expect_eq("intercepted-area", area->busy, 0xffffffff);
	expect_eq("no-exception-in-l2", exceptions, 0);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_VE | PROC2_EPT)) {
		skip("virtualization-exceptions", "not offered");
		return;
	}
	area = page_alloc();
	entry = ept_entry(l2_ept(), GPA, PAGE_SIZE);
	trap_handle(VEC_VE, on_ve);
	converted();
	exits_instead();
}
