/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an L1 that is a hypervisor: its VMX instructions, and the way from its L2 to it and back. */
#include "bench.h"
#include "evmcs.h"
#include "hyperv.h"
#include "l2.h"

#define PAIR_EXITS 32

extern const u8 bench_exit_plain[], bench_exit_pair[], bench_exit_clean[], bench_exit_dirty[];
extern u64 bench_pair[2], bench_turn;
extern u8 *bench_evmcs;
extern volatile u32 bench_left;

static u64 this_vmcs, other_vmcs;
static struct inv_desc by_ept, by_vpid = {1, 0};
static volatile u64 l2_best;

static void op_vmread(void)
{
	u64 v;

	asm volatile("vmread %1, %0" : "=r"(v) : "r"((u64)VMCS_HOST_RIP) : "cc", "memory");
}

/* What most exit handlers read: the field for which VMCS shadowing was made. */
static void op_vmread_hot(void)
{
	u64 v;

	asm volatile("vmread %1, %0" : "=r"(v) : "r"((u64)VMCS_GUEST_RIP) : "cc", "memory");
}

/* Another value each time: one that is there already may be cheaper. */
static void op_vmwrite(void)
{
	static u64 value;

	asm volatile("vmwrite %0, %1" : : "r"(value++), "r"((u64)VMCS_HOST_SYSENTER_ESP) : "cc", "memory");
}

static void op_vmptrld_pair(void)
{
	asm volatile("vmptrld %0" : : "m"(other_vmcs) : "cc", "memory");
	asm volatile("vmptrld %0" : : "m"(this_vmcs) : "cc", "memory");
}

static void op_vmclear(void)
{
	asm volatile("vmclear %0" : : "m"(other_vmcs) : "cc", "memory");
}

static void op_vmclear_current(void)
{
	asm volatile("vmclear %0; vmptrld %0" : : "m"(this_vmcs) : "cc", "memory");
}

static void op_invept(void)
{
	asm volatile("invept %0, %1" : : "m"(by_ept), "r"(1ul) : "cc", "memory");
}

static void op_invvpid(void)
{
	asm volatile("invvpid %0, %1" : : "m"(by_vpid), "r"(1ul) : "cc", "memory");
}

static void op_cpuid(void)
{
	asm volatile("cpuid" : : : "rax", "rbx", "rcx", "rdx", "memory");
}

static void op_in(void)
{
	inb(0x71);
}

void rows_vmx(void)
{
	l2_prepare(op_cpuid);
	this_vmcs = l2_vmcs();
	other_vmcs = vmcs_alloc();
	by_ept.a = ept_pointer(l2_ept());
	vmclear(other_vmcs);
	MEASURE("vmread", op_vmread);
	MEASURE("vmread-hot", op_vmread_hot);
	MEASURE("vmwrite", op_vmwrite);
	MEASURE("vmptrld-pair", op_vmptrld_pair);
	MEASURE("vmclear", op_vmclear);
	MEASURE("vmclear-current", op_vmclear_current);
	MEASURE("invept", op_invept);
	if (proc2_has(PROC2_VPID))
		MEASURE("invvpid", op_invvpid);
}

static void l2_cpuids(void)
{
	l2_best = best_of(op_cpuid);
}

static void l2_ports(void)
{
	l2_best = best_of(op_in);
}

static void l2_cpuid_forever(void)
{
	for (;;)
		op_cpuid();
}

/* L2 measures itself and calls when it has done. */
static void row_of_l2(const char *name, struct vm_result r)
{
	if (l2_called(&r, L2_DONE))
		row(name, l2_best, ROUNDS);
	else
		expect_done(name, r);
}

static void prepare(l2_fn *fn, const u8 *handler)
{
	l2_prepare(fn);
	if (handler)
		vmwrite(VMCS_HOST_RIP, addr_of(handler));
}

static void start_of_pair(u32 i)
{
	struct vm_result r;

	bench_pair[i] = vmcs_alloc();
	l2_prepare_in(bench_pair[i], l2_cpuid_forever);
	if (proc2_has(PROC2_VPID)) {
		vmcs_set_bits(VMCS_PROC2_CTL, PROC2_VPID);
		vmwrite(VMCS_VPID, 2 + i);
	}
	r = l2_launch();
	expect_exit("pair-starts", r, EXIT_CPUID);
	l2_skip(&r);
	vmwrite(VMCS_HOST_RIP, addr_of(bench_exit_pair));
}

/* Each exit is answered by resuming the other L2. Both stand in the same loop, so they may share registers.
 */
static void alternate(void)
{
	u64 best = ~0ull;

	start_of_pair(0);
	start_of_pair(1);
	for (u32 b = 0; b < BATCHES; b++) {
		u64 start;

		vmptrld(bench_pair[0]);
		bench_turn = 0;
		bench_left = PAIR_EXITS;
		start = rdtsc();
		l2_enter_raw(true);
		start = rdtsc() - start;
		best = start < best ? start : best;
	}
	expect_eq("pair-alternated", bench_left, 0);
	row("l2-cpuid-two-vmcs", best, PAIR_EXITS);
	vmclear(bench_pair[0]);
	vmclear(bench_pair[1]);
}

void rows_round_trip(void)
{
	prepare(l2_cpuids, bench_exit_plain);
	row_of_l2("l2-cpuid", l2_launch());
	prepare(l2_ports, NULL);
	row_of_l2("l2-exit-kept", l2_launch());
	alternate();
}

static void enlightened(const char *name, const u8 *handler, u32 control)
{
	ev_off();
	prepare(l2_cpuids, handler);
	ev_fill(bench_evmcs);
	vmclear(l2_vmcs());
	*ev_word(bench_evmcs, EV_CONTROL) = control;
	row_of_l2(name, ev_enter(bench_evmcs, false));
	vmclear((u64)bench_evmcs); /* it stays active until then, and KVM lets no VMPTRLD through meanwhile */
}

static void op_vmcall(void)
{
	u64 number = 0xfff, result;

	asm volatile("vmcall" : "=a"(result), "+c"(number) : : "rdx", "r8", "memory");
}

void rows_hyperv(void)
{
	if (!hv_available() || !vmx_available())
		return;
	hv_start();
	MEASURE("vmcall", op_vmcall);
	/* A guest of Hyper-V has no VMCS shadowing: the price of a plain VMCS without it. */
	prepare(l2_cpuids, bench_exit_plain);
	row_of_l2("l2-cpuid-no-shadowing", l2_launch());
	bench_evmcs = page_alloc();
	enlightened("l2-cpuid-evmcs-dirty", bench_exit_dirty, 0);
	enlightened("l2-cpuid-evmcs-clean", bench_exit_clean, 0);
	enlightened("l2-cpuid-evmcs-clean-emsr", bench_exit_clean, EV_CONTROL_MSR_BITMAP);
	ev_off();
}
