/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CR0 and CR4 masks and shadows: what L2 reads, which writes exit, what is saved. L0's own bits must never
 * show (Xen ef17e127c4, Linux eeadf9e7558c). SDM "Guest/Host Masks and Read Shadows for CR0 and CR4".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: control register masks";

static volatile u64 value, seen;

static void l2_read_cr0(void)
{
	seen = read_cr0();
}

static void l2_read_cr4(void)
{
	seen = read_cr4();
}

static void l2_write_cr0(void)
{
	write_cr0(value);
	seen = read_cr0();
}

static void l2_write_cr4(void)
{
	write_cr4(value);
	seen = read_cr4();
}

static void l2_clts(void)
{
	asm volatile("clts");
	seen = read_cr0();
}

static void l2_lmsw(void)
{
	asm volatile("lmsw %w0" : : "r"((u32)value));
	seen = read_cr0();
}

static struct vm_result run(l2_fn *fn, u64 cr0_mask, u64 cr0_shadow, u64 cr4_mask, u64 cr4_shadow)
{
	seen = 0;
	l2_prepare(fn);
	vmwrite(VMCS_CR0_GUEST_HOST_MASK, cr0_mask);
	vmwrite(VMCS_CR0_READ_SHADOW, cr0_shadow);
	vmwrite(VMCS_CR4_GUEST_HOST_MASK, cr4_mask);
	vmwrite(VMCS_CR4_READ_SHADOW, cr4_shadow);
	return l2_launch();
}

static void reads(void)
{
	u64 cr0 = read_cr0(), cr4 = read_cr4();
	struct vm_result r;

	r = run(l2_read_cr0, 0, ~0ul, 0, ~0ul);
	expect_done("cr0-read-run", r);
	expect_eq("cr0-no-mask-reads-real", seen, cr0);
	run(l2_read_cr0, ~0ul, 0x80000031 | CR0_TS, 0, 0);
	expect_eq("cr0-full-mask-reads-shadow", seen, 0x80000031 | CR0_TS);
	run(l2_read_cr0, CR0_TS | CR0_NE, CR0_TS, 0, 0);
	expect_eq("cr0-mixed-read", seen, (cr0 & ~CR0_NE) | CR0_TS);
	run(l2_read_cr4, 0, 0, 0, ~0ul);
	expect_eq("cr4-no-mask-reads-real", seen, cr4);
	run(l2_read_cr4, 0, 0, CR4_VMXE, 0);
	expect_eq("cr4-vmxe-hidden", seen, cr4 & ~CR4_VMXE);
	run(l2_read_cr4, 0, 0, ~0ul, CR4_PAE | CR4_PGE | CR4_SMEP);
	expect_eq("cr4-full-mask-reads-shadow", seen, CR4_PAE | CR4_PGE | CR4_SMEP);
}

static void cr0_writes(void)
{
	u64 cr0 = read_cr0();
	struct vm_result r;

	value = cr0 | CR0_TS;
	r = run(l2_write_cr0, CR0_AM, 0, 0, 0);
	expect_done("cr0-unowned-bit", r);
	expect_eq("cr0-unowned-bit-reads", seen, (cr0 & ~CR0_AM) | CR0_TS);
	expect_eq("cr0-unowned-bit-saved", vmread(VMCS_GUEST_CR0), cr0 | CR0_TS);
	r = run(l2_write_cr0, CR0_TS, 0, 0, 0);
	expect_exit("cr0-owned-bit-exits", r, EXIT_CR);
	expect_eq("cr0-owned-bit-qualification", r.qual & 0x3f, 0);
	expect_eq("cr0-owned-bit-not-written", vmread(VMCS_GUEST_CR0), cr0);
	r = run(l2_write_cr0, CR0_TS, CR0_TS, 0, 0);
	expect_done("cr0-owned-bit-as-shadow", r);
	expect_eq("cr0-owned-bit-keeps-real", vmread(VMCS_GUEST_CR0) & CR0_TS, 0);
}

static void cr4_writes(void)
{
	u64 cr4 = read_cr4();
	struct vm_result r;

	value = cr4 | CR4_PGE;
	r = run(l2_write_cr4, 0, 0, CR4_VMXE, CR4_VMXE);
	expect_done("cr4-unowned-bit", r);
	expect_eq("cr4-unowned-bit-saved", vmread(VMCS_GUEST_CR4), cr4 | CR4_PGE);
	value = cr4 & ~CR4_VMXE;
	r = run(l2_write_cr4, 0, 0, CR4_VMXE, 0);
	expect_done("cr4-vmxe-as-shadow", r);
	expect_eq("cr4-vmxe-kept-real", vmread(VMCS_GUEST_CR4) & CR4_VMXE, CR4_VMXE);
	r = run(l2_write_cr4, 0, 0, CR4_VMXE, CR4_VMXE);
	expect_exit("cr4-owned-bit-exits", r, EXIT_CR);
	expect_eq("cr4-owned-bit-qualification", r.qual & 0x3f, 4);
	value = cr4 ^ CR4_TSD;
	r = run(l2_write_cr4, 0, 0, ~0ul, cr4);
	expect_exit("cr4-all-owned", r, EXIT_CR);
}

/* CLTS exits if TS is owned and 1 in the shadow; owned and 0 it does nothing. */
static void clts_and_lmsw(void)
{
	u64 cr0 = read_cr0();
	struct vm_result r;

	r = run(l2_clts, CR0_TS, CR0_TS, 0, 0);
	expect_exit("clts-exits", r, EXIT_CR);
	expect_eq("clts-qualification", r.qual & 0x3f, 0x20);
	r = run(l2_clts, CR0_TS, 0, 0, 0);
	expect_done("clts-shadow-clear", r);
	l2_prepare(l2_clts);
	vmwrite(VMCS_GUEST_CR0, cr0 | CR0_TS);
	r = l2_launch();
	expect_done("clts-unowned", r);
	expect_eq("clts-unowned-cleared", vmread(VMCS_GUEST_CR0) & CR0_TS, 0);
	l2_prepare(l2_clts);
	vmwrite(VMCS_GUEST_CR0, cr0 | CR0_TS);
	vmwrite(VMCS_CR0_GUEST_HOST_MASK, CR0_TS);
	r = l2_launch();
	expect_done("clts-owned-shadow-clear", r);
	expect_eq("clts-owned-keeps-real", vmread(VMCS_GUEST_CR0) & CR0_TS, CR0_TS);

	value = (cr0 & 0xffff) | CR0_TS;
	r = run(l2_lmsw, CR0_TS, 0, 0, 0);
	expect_exit("lmsw-owned-bit", r, EXIT_CR);
	expect_eq("lmsw-qualification", r.qual & 0x7f, 0x30);
	expect_eq("lmsw-source", r.qual >> 16 & 0xffff, value & 0xffff);
	r = run(l2_lmsw, CR0_NE, 0, 0, 0);
	expect_done("lmsw-unowned", r);
	expect_eq("lmsw-unowned-ts", seen & CR0_TS, CR0_TS);
}

static void l2_bad_cr4(void)
{
	l2_call(try_write_cr4(read_cr4() & ~CR4_VMXE));
}

static void l2_bad_cr0(void)
{
	l2_call(try_write_cr0(read_cr0() & ~CR0_NE));
}

/* VMX fixed bits that L2 owns itself: #GP in L2, no exit. */
static void fixed_bits(void)
{
	struct vm_result r;

	r = run(l2_bad_cr4, 0, 0, 0, 0);
	expect_true("l2-vmxe-fixed", l2_called(&r, GP));
	r = run(l2_bad_cr0, 0, 0, 0, 0);
	expect_true("l2-ne-fixed", l2_called(&r, GP));
}

static void l2_load_cr3(void)
{
	write_cr3(value);
}

static void cr3_targets(void)
{
	u64 cr3 = read_cr3();
	struct vm_result r;

	value = cr3;
	l2_prepare(l2_load_cr3);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_CR3_LOAD);
	vmwrite(VMCS_CR3_TARGET_COUNT, 1);
	vmwrite(VMCS_CR3_TARGET_VALUE_0, cr3);
	r = l2_launch();
	expect_done("cr3-target-match", r);
	l2_prepare(l2_load_cr3);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_CR3_LOAD);
	vmwrite(VMCS_CR3_TARGET_COUNT, 1);
	vmwrite(VMCS_CR3_TARGET_VALUE_0, cr3 + 0x1000);
	r = l2_launch();
	expect_exit("cr3-target-other", r, EXIT_CR);
	l2_prepare(l2_load_cr3);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_CR3_LOAD);
	vmwrite(VMCS_CR3_TARGET_COUNT, 0);
	vmwrite(VMCS_CR3_TARGET_VALUE_0, cr3);
	r = l2_launch();
	expect_exit("cr3-target-not-counted", r, EXIT_CR);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	reads();
	cr0_writes();
	cr4_writes();
	clts_and_lmsw();
	fixed_bits();
	if ((rdmsr(MSR_VMX_MISC) >> 16 & 0x1ff) > 0)
		cr3_targets();
}
