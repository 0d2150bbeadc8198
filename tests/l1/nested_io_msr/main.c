/* SPDX-License-Identifier: Apache-2.0 */
/*
 * I/O and MSR bitmaps: an exit exactly when a bit of an accessed port or of the MSR is set; wide accesses,
 * the end of the port space, and what the bitmaps do not cover. SDM "I/O-Bitmap Addresses", "MSR-Bitmap
 * Address".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: I/O and MSR bitmaps";

static u8 *io_a, *io_b;
static volatile u16 port;
static volatile u32 msr, size;
static u64 msr_value;

static void l2_in(void)
{
	if (size == 1)
		inb(port);
	else if (size == 2)
		inw(port);
	else
		inl(port);
}

static void l2_out(void)
{
	outb(port, 0);
}

static u8 buffer[16];

static void l2_ins(void)
{
	void *to = buffer;
	u64 n = 2;

	asm volatile("rep insb" : "+D"(to), "+c"(n) : "d"(port) : "memory");
}

static void l2_rdmsr(void)
{
	msr_value = rdmsr(msr);
}

static void l2_wrmsr(void)
{
	wrmsr(msr, msr_value);
}

static struct vm_result run_io(l2_fn *fn, u16 p, u32 bytes)
{
	port = p;
	size = bytes;
	l2_prepare(fn);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_IO_BITMAPS);
	vmwrite(VMCS_IO_BITMAP_A, addr_of(io_a));
	vmwrite(VMCS_IO_BITMAP_B, addr_of(io_b));
	return l2_launch();
}

static void set_port(u16 p)
{
	memset(io_a, 0, PAGE_SIZE);
	memset(io_b, 0, PAGE_SIZE);
	(p < 0x8000 ? io_a : io_b)[p % 0x8000 / 8] = (u8)(1u << p % 8);
}

struct io_case {
	const char *name;
	u16 bit, port;
	u32 size;
	bool exits;
};

static const struct io_case io_cases[] = {
	{"io-exact", 0x80, 0x80, 1, true},          {"io-below", 0x80, 0x7f, 1, false},
	{"io-above", 0x80, 0x81, 1, false},         {"io-word-touches", 0x81, 0x80, 2, true},
	{"io-word-misses", 0x82, 0x80, 2, false},   {"io-dword-touches", 0x83, 0x80, 4, true},
	{"io-dword-misses", 0x84, 0x80, 4, false},  {"io-end-of-a", 0x7fff, 0x7fff, 1, true},
	{"io-start-of-b", 0x8000, 0x8000, 1, true}, {"io-a-into-b", 0x8000, 0x7fff, 2, true},
	{"io-last-port", 0xffff, 0xffff, 1, true},  {"io-wraps", 0x80, 0xffff, 2, true},
	{"io-dword-wraps", 0x80, 0xfffd, 4, true},
};

static void io_bitmaps(void)
{
	struct vm_result r;
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(io_cases); i++) {
		const struct io_case *c = &io_cases[i];

		set_port(c->bit);
		r = run_io(l2_in, c->port, c->size);
		expect_eq(c->name, l2_outcome(&r), c->exits ? EXIT_IO : EXIT_VMCALL);
		if (!c->exits)
			continue;
		format_text(name, sizeof(name), "%s-qualification", c->name);
		expect_eq(name, r.qual, (u64)c->port << 16 | 8 | (c->size - 1));
	}
	set_port(0x80);
	r = run_io(l2_out, 0x80, 1);
	expect_eq("io-out-qualification", r.qual & ~0x40ul, 0x800000);
	r = run_io(l2_ins, 0x80, 1);
	expect_exit("io-rep-insb", r, EXIT_IO);
	expect_eq("io-rep-insb-qualification", r.qual, 0x800038);
	expect_eq("io-rep-insb-address", r.gla, addr_of(buffer));
	expect_eq("io-rep-insb-nothing-done", l2_regs()->rcx, 2);
}

/* "Unconditional I/O exiting" is ignored when bitmaps are in use. */
static void unconditional(void)
{
	struct vm_result r;

	set_port(0x81);
	port = 0x80;
	size = 1;
	l2_prepare(l2_in);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_IO);
	r = l2_launch();
	expect_exit("io-unconditional", r, EXIT_IO);
	l2_prepare(l2_in);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_IO | PROC_IO_BITMAPS);
	vmwrite(VMCS_IO_BITMAP_A, addr_of(io_a));
	vmwrite(VMCS_IO_BITMAP_B, addr_of(io_b));
	r = l2_launch();
	expect_done("io-unconditional-ignored", r);
}

static void set_msr_bit(u32 index, bool write)
{
	u8 *map = l2_msr_bitmap() + (write ? 2048 : 0) + (index >= 0xc0000000 ? 1024 : 0);

	map[(index & 0x1fff) / 8] |= (u8)(1u << index % 8);
}

static struct vm_result run_msr(l2_fn *fn, u32 index)
{
	msr = index;
	l2_prepare(fn);
	return l2_launch();
}

struct msr_case {
	const char *name;
	u32 bit, index;
	bool write_bit, write;
	u32 reason;
};

static const struct msr_case msr_cases[] = {
	{"msr-read-set", MSR_SYSENTER_CS, MSR_SYSENTER_CS, false, false, EXIT_RDMSR},
	{"msr-read-other-set", MSR_SYSENTER_CS, MSR_SYSENTER_ESP, false, false, EXIT_VMCALL},
	{"msr-read-write-bit", MSR_SYSENTER_CS, MSR_SYSENTER_CS, true, false, EXIT_VMCALL},
	{"msr-write-set", MSR_SYSENTER_CS, MSR_SYSENTER_CS, true, true, EXIT_WRMSR},
	{"msr-write-read-bit", MSR_SYSENTER_CS, MSR_SYSENTER_CS, false, true, EXIT_VMCALL},
	{"msr-high-read-set", MSR_LSTAR, MSR_LSTAR, false, false, EXIT_RDMSR},
	{"msr-high-write-set", MSR_LSTAR, MSR_LSTAR, true, true, EXIT_WRMSR},
	{"msr-high-low-alias", MSR_LSTAR & 0x1fff, MSR_LSTAR, false, false, EXIT_VMCALL},
	{"msr-out-of-range-read", 0, 0x2000, true, false, EXIT_RDMSR},
	{"msr-out-of-range-write", 0, 0x40000000, true, true, EXIT_WRMSR},
};

static void msr_bitmaps(void)
{
	struct vm_result r;

	for (u32 i = 0; i < ARRAY_SIZE(msr_cases); i++) {
		const struct msr_case *c = &msr_cases[i];

		memset(l2_msr_bitmap(), 0, PAGE_SIZE);
		set_msr_bit(c->bit, c->write_bit);
		msr_value = c->write ? 0x10 : 0;
		r = run_msr(c->write ? l2_wrmsr : l2_rdmsr, c->index);
		expect_eq(c->name, l2_outcome(&r), c->reason);
		if (c->reason != EXIT_VMCALL && l2_regs()->rcx != c->index)
			expect_eq(c->name, l2_regs()->rcx, c->index);
	}
	memset(l2_msr_bitmap(), 0, PAGE_SIZE);
	msr = MSR_SYSENTER_CS;
	l2_prepare(l2_rdmsr);
	vmcs_clear_bits(VMCS_PROC_CTL, PROC_MSR_BITMAP);
	r = l2_launch();
	expect_exit("msr-no-bitmap-exits", r, EXIT_RDMSR);
	expect_eq("msr-length", r.insn_len, 2);
}

/* A pass-through MSR: L2's value is L2's; the change of the bitmap page counts at the next entry. */
static void pass_through(void)
{
	struct vm_result r;

	wrmsr(MSR_KERNEL_GS_BASE, 0x1111);
	msr_value = 0x2222;
	r = run_msr(l2_wrmsr, MSR_KERNEL_GS_BASE);
	expect_done("pass-through-write", r);
	expect_eq("pass-through-l1-sees-it", rdmsr(MSR_KERNEL_GS_BASE), 0x2222);
	r = run_msr(l2_rdmsr, MSR_KERNEL_GS_BASE);
	expect_eq("pass-through-read", msr_value, 0x2222);
	set_msr_bit(MSR_KERNEL_GS_BASE, false);
	l2_set_entry(l2_rdmsr);
	r = l2_run();
	expect_exit("bit-set-between-entries", r, EXIT_RDMSR);
	memset(l2_msr_bitmap(), 0, PAGE_SIZE);
	l2_set_entry(l2_rdmsr);
	r = l2_run();
	expect_done("bit-cleared-between-entries", r);
	wrmsr(MSR_KERNEL_GS_BASE, 0);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	io_a = page_alloc();
	io_b = page_alloc();
	io_bitmaps();
	unconditional();
	msr_bitmaps();
	pass_through();
}
