/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which instructions of an L2 exit to L1: some always, some by a control. Never may one be carried out as if
 * L1 had executed it (Xen c238ea3f4c, 6faff8f900). Reason, length and qualification are checked. SDM
 * "Instructions That Cause VM Exits".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: exits of instructions";

static u64 operand[2];
static u8 area[4096] __attribute__((aligned(64)));

#define L2(name, insn, ...)                                                                                  \
	static void l2_##name(void)                                                                          \
	{                                                                                                    \
		asm volatile(insn : : __VA_ARGS__ : "memory", "cc", "rbx");                                  \
	}

L2(cpuid, "cpuid", "a"(0), "c"(0), "d"(0))
L2(invd, "invd", "a"(0))
L2(wbinvd, "wbinvd", "a"(0))
L2(xsetbv, "xsetbv", "a"(1), "d"(0), "c"(0))
L2(vmcall, "vmcall", "a"(0x1d))
L2(vmclear, "vmclear %0", "m"(operand))
L2(vmlaunch, "vmlaunch", "a"(0))
L2(vmptrld, "vmptrld %0", "m"(operand))
L2(vmptrst, "vmptrst %0", "m"(operand))
L2(vmread, "vmread %%rax, %%rdx", "a"(0), "d"(0))
L2(vmresume, "vmresume", "a"(0))
L2(vmwrite, "vmwrite %%rax, %%rdx", "a"(0), "d"(0))
L2(vmxoff, "vmxoff", "a"(0))
L2(vmxon, "vmxon %0", "m"(operand))
L2(invept, "invept %0, %%rax", "m"(operand), "a"(2ul))
L2(invvpid, "invvpid %0, %%rax", "m"(operand), "a"(2ul))
L2(hlt, "hlt", "a"(0))
L2(invlpg, "invlpg (%%rax)", "a"(0x123000))
L2(rdpmc, "rdpmc", "c"(0))
L2(rdtsc, "rdtsc", "a"(0), "d"(0))
L2(rdtscp, "rdtscp", "a"(0), "d"(0), "c"(0))
L2(mov_to_cr3, "mov %%rax, %%cr3", "a"(read_cr3()))
L2(mov_from_cr3, "mov %%cr3, %%rax", "a"(0))
L2(mov_to_cr8, "mov %%rax, %%cr8", "a"(0ul))
L2(mov_from_cr8, "mov %%cr8, %%rax", "a"(0))
L2(mov_dr, "mov %%dr3, %%rax", "a"(0))
L2(mov_to_dr, "mov %%rax, %%dr2", "a"(0ul))
L2(pause, "pause", "a"(0))
L2(monitor, "monitor", "a"(area), "c"(0), "d"(0))
L2(mwait, "mwait", "a"(0), "c"(0))
L2(sgdt, "sgdt %0", "m"(area))
L2(sidt, "sidt %0", "m"(area))
L2(sldt, "sldt %%ax", "a"(0))
L2(str, "str %%ax", "a"(0))
L2(rdrand, "rdrand %%rax", "a"(0))
L2(rdseed, "rdseed %%rax", "a"(0))
L2(invpcid, "invpcid (%0), %%rax", "r"(operand), "a"(2ul))
/* Prefixes that mean nothing there: a segment, an operand size, an address size. */
L2(cpuid_prefixed, ".byte 0x2e, 0x66, 0x67, 0x48\n\tcpuid", "a"(0), "c"(0), "d"(0))
L2(rdtsc_prefixed, ".byte 0x66, 0x36, 0x3e\n\trdtsc", "a"(0), "d"(0))
L2(hlt_prefixed, ".byte 0x66, 0x67\n\thlt", "a"(0))
L2(invlpg_prefixed, ".byte 0x66, 0x48\n\tinvlpg (%%rax)", "a"(0x123000))
L2(mov_to_cr3_prefixed, ".byte 0x3e, 0x66\n\tmov %%rax, %%cr3", "a"(read_cr3()))
L2(pause_prefixed, ".byte 0x2e, 0x67\n\tpause", "a"(0))

struct row {
	const char *name;
	l2_fn *fn;
	u32 reason, length;
	u32 field; /* the control word that decides, 0 when the exit is unconditional */
	u64 bits;  /* its bits */
	u64 qual;
	u64 enable; /* secondary controls without which the instruction is #UD */
	bool runs;  /* harmless to carry out when the control is 0 */
};

static const struct row rows[] = {
	{"cpuid", l2_cpuid, EXIT_CPUID, 2, 0, 0, 0, 0, false},
	{"invd", l2_invd, EXIT_INVD, 2, 0, 0, 0, 0, false},
	{"xsetbv", l2_xsetbv, EXIT_XSETBV, 3, 0, 0, 0, 0, false},
	{"vmcall", l2_vmcall, EXIT_VMCALL, 3, 0, 0, 0, 0, false},
	{"vmclear", l2_vmclear, EXIT_VMCLEAR, 0, 0, 0, 1, 0, false},
	{"vmlaunch", l2_vmlaunch, EXIT_VMLAUNCH, 3, 0, 0, 0, 0, false},
	{"vmptrld", l2_vmptrld, EXIT_VMPTRLD, 0, 0, 0, 1, 0, false},
	{"vmptrst", l2_vmptrst, EXIT_VMPTRST, 0, 0, 0, 1, 0, false},
	{"vmread", l2_vmread, EXIT_VMREAD, 3, 0, 0, 0, 0, false},
	{"vmresume", l2_vmresume, EXIT_VMRESUME, 3, 0, 0, 0, 0, false},
	{"vmwrite", l2_vmwrite, EXIT_VMWRITE, 3, 0, 0, 0, 0, false},
	{"vmxoff", l2_vmxoff, EXIT_VMXOFF, 3, 0, 0, 0, 0, false},
	{"vmxon", l2_vmxon, EXIT_VMXON, 0, 0, 0, 1, 0, false},
	{"invept", l2_invept, EXIT_INVEPT, 0, 0, 0, 1, 0, false},
	{"invvpid", l2_invvpid, EXIT_INVVPID, 0, 0, 0, 1, 0, false},
	{"hlt", l2_hlt, EXIT_HLT, 1, VMCS_PROC_CTL, PROC_HLT, 0, 0, false},
	{"invlpg", l2_invlpg, EXIT_INVLPG, 3, VMCS_PROC_CTL, PROC_INVLPG, 0x123000, 0, true},
	{"rdpmc", l2_rdpmc, EXIT_RDPMC, 2, VMCS_PROC_CTL, PROC_RDPMC, 0, 0, false},
	{"rdtsc", l2_rdtsc, EXIT_RDTSC, 2, VMCS_PROC_CTL, PROC_RDTSC, 0, 0, true},
	{"rdtscp", l2_rdtscp, EXIT_RDTSCP, 3, VMCS_PROC_CTL, PROC_RDTSC, 0, PROC2_RDTSCP, true},
	{"mov-to-cr3", l2_mov_to_cr3, EXIT_CR, 3, VMCS_PROC_CTL, PROC_CR3_LOAD, 0x003, 0, true},
	{"mov-from-cr3", l2_mov_from_cr3, EXIT_CR, 3, VMCS_PROC_CTL, PROC_CR3_STORE, 0x013, 0, true},
	{"mov-to-cr8", l2_mov_to_cr8, EXIT_CR, 4, VMCS_PROC_CTL, PROC_CR8_LOAD, 0x008, 0, true},
	{"mov-from-cr8", l2_mov_from_cr8, EXIT_CR, 4, VMCS_PROC_CTL, PROC_CR8_STORE, 0x018, 0, true},
	{"mov-from-dr3", l2_mov_dr, EXIT_DR, 3, VMCS_PROC_CTL, PROC_MOV_DR, 0x13, 0, true},
	{"mov-to-dr2", l2_mov_to_dr, EXIT_DR, 3, VMCS_PROC_CTL, PROC_MOV_DR, 0x02, 0, true},
	{"pause", l2_pause, EXIT_PAUSE, 2, VMCS_PROC_CTL, PROC_PAUSE, 0, 0, true},
	{"monitor", l2_monitor, EXIT_MONITOR, 3, VMCS_PROC_CTL, PROC_MONITOR, 0, 0, false},
	{"mwait", l2_mwait, EXIT_MWAIT, 3, VMCS_PROC_CTL, PROC_MWAIT, 0, 0, false},
	{"wbinvd", l2_wbinvd, EXIT_WBINVD, 2, VMCS_PROC2_CTL, PROC2_WBINVD, 0, 0, true},
	{"sgdt", l2_sgdt, EXIT_GDTR_IDTR, 0, VMCS_PROC2_CTL, PROC2_DESC_TABLE, 1, 0, true},
	{"sidt", l2_sidt, EXIT_GDTR_IDTR, 0, VMCS_PROC2_CTL, PROC2_DESC_TABLE, 1, 0, true},
	{"sldt", l2_sldt, EXIT_LDTR_TR, 0, VMCS_PROC2_CTL, PROC2_DESC_TABLE, 0, 0, true},
	{"str", l2_str, EXIT_LDTR_TR, 0, VMCS_PROC2_CTL, PROC2_DESC_TABLE, 0, 0, true},
	{"rdrand", l2_rdrand, EXIT_RDRAND, 4, VMCS_PROC2_CTL, PROC2_RDRAND, 0, 0, true},
	{"rdseed", l2_rdseed, EXIT_RDSEED, 4, VMCS_PROC2_CTL, PROC2_RDSEED, 0, 0, true},
	{"prefixed-cpuid", l2_cpuid_prefixed, EXIT_CPUID, 6, 0, 0, 0, 0, false},
	{"prefixed-rdtsc", l2_rdtsc_prefixed, EXIT_RDTSC, 5, VMCS_PROC_CTL, PROC_RDTSC, 0, 0, true},
	{"prefixed-hlt", l2_hlt_prefixed, EXIT_HLT, 3, VMCS_PROC_CTL, PROC_HLT, 0, 0, false},
	{"prefixed-invlpg", l2_invlpg_prefixed, EXIT_INVLPG, 5, VMCS_PROC_CTL, PROC_INVLPG, 0x123000, 0,
	 true},
	{"prefixed-mov-to-cr3", l2_mov_to_cr3_prefixed, EXIT_CR, 5, VMCS_PROC_CTL, PROC_CR3_LOAD, 0x003, 0,
	 true},
	{"prefixed-pause", l2_pause_prefixed, EXIT_PAUSE, 4, VMCS_PROC_CTL, PROC_PAUSE, 0, 0, true},
	{"invpcid", l2_invpcid, EXIT_INVPCID, 0, VMCS_PROC_CTL, PROC_INVLPG, 0, PROC2_INVPCID, true},
};

static void prepare(const struct row *row, bool control)
{
	l2_prepare(row->fn);
	vmcs_set_bits(VMCS_GUEST_CR4, CR4_OSXSAVE);
	if (row->enable)
		vmcs_set_bits(VMCS_PROC2_CTL, row->enable);
	if (!row->field)
		return;
	if (control)
		vmcs_set_bits(row->field, row->bits);
	else
		vmcs_clear_bits(row->field, row->bits);
}

/* Displacements of memory operands depend on the compiler: 1 in the table stands for "not checked". */
static void with_control(const struct row *row)
{
	struct vm_result r;
	char name[48];

	prepare(row, true);
	r = l2_launch();
	format_text(name, sizeof(name), "%s-exits", row->name);
	expect_exit(name, r, row->reason);
	format_text(name, sizeof(name), "%s-length", row->name);
	if (row->length)
		expect_eq(name, r.insn_len, row->length);
	else
		expect_near(name, r.insn_len, 3, 11);
	format_text(name, sizeof(name), "%s-qualification", row->name);
	if (row->qual != 1 && row->reason != EXIT_INVPCID)
		expect_eq(name, row->reason == EXIT_MWAIT ? r.qual & ~1ul : r.qual, row->qual);
	if (row->reason == EXIT_VMCALL) {
		format_text(name, sizeof(name), "%s-is-ours", row->name);
		expect_eq(name, l2_regs()->rax, 0x1d);
	}
}

static void without_control(const struct row *row)
{
	struct vm_result r;
	char name[48];

	prepare(row, false);
	r = l2_launch();
	format_text(name, sizeof(name), "%s-does-not-exit", row->name);
	expect_done(name, r);
}

/* An instruction whose enabling control is 0 does not exist in L2: #UD there, no exit. */
static void l2_try_rdtscp(void)
{
	trap_forget();
	asm volatile(TRY("rdtscp") : : : "rax", "rdx", "rcx", "memory");
	l2_call(trap_last());
}

static void l2_try_invpcid(void)
{
	trap_forget();
	asm volatile(TRY("invpcid (%0), %1") : : "r"(operand), "r"(2ul) : "memory");
	l2_call(trap_last());
}

static void l2_try_xsaves(void)
{
	trap_forget();
	asm volatile(TRY("xsaves (%0)") : : "r"(area), "a"(0), "d"(0) : "memory");
	l2_call(trap_last());
}

static void l2_try_vmfunc(void)
{
	trap_forget();
	asm volatile(TRY("vmfunc") : : "a"(0), "c"(0) : "memory");
	l2_call(trap_last());
}

static void l2_try_getsec(void)
{
	trap_forget();
	asm volatile(TRY("getsec") : : "a"(0), "b"(0) : "memory");
	l2_call(trap_last());
}

static void undefined(const char *name, l2_fn *fn, u64 control)
{
	struct vm_result r;

	l2_prepare(fn);
	vmcs_set_bits(VMCS_GUEST_CR4, CR4_OSXSAVE);
	vmcs_clear_bits(VMCS_PROC2_CTL, control);
	r = l2_launch();
	expect_true(name, l2_called(&r, UD));
}

/* In ring 3 of L2 the VMX instructions exit as well; the CPL check comes after the exit. */
static void l2_ring3_body(void)
{
	asm volatile("vmxoff");
}

static void l2_ring3(void)
{
	user_run(l2_ring3_body);
}

static void in_ring3(void)
{
	struct vm_result r;

	l2_prepare(l2_ring3);
	r = l2_launch();
	expect_exit("ring3-vmxoff-exits", r, EXIT_VMXOFF);
}

/* What L1 leaves to L2 and the machine below carries out: it ends behind its last byte, whatever comes before
 * the first. */
static void l2_prefixed_run(void)
{
	u64 apic_base, at, behind, port = 0x71;

	asm volatile(".byte 0x66, 0x3e, 0x48\n\trdmsr\n\t"
		     "shl $32, %%rdx\n\tor %%rdx, %%rax"
		     : "=a"(apic_base)
		     : "c"(MSR_APIC_BASE)
		     : "rdx");
	asm volatile("lea 1f(%%rip), %0\n\tlea 2f(%%rip), %1\n1:\t.byte 0x2e, 0x67, 0x48\n\tin %%dx, %%al\n2:"
		     : "=&r"(at), "=&r"(behind)
		     : "d"(port)
		     : "rax");
	l2_call(apic_base << 8 | (behind - at));
}

static void prefixed(void)
{
	struct vm_result r;

	l2_prepare(l2_prefixed_run);
	r = l2_launch();
	expect_true("prefixed-run", l2_called(&r, rdmsr(MSR_APIC_BASE) << 8 | 4));
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		if ((row->field && !ctl_has(row->field, row->bits)) || !proc2_has(row->enable)) {
			skip(row->name, "control not offered");
			continue;
		}
		with_control(row);
		if (row->runs)
			without_control(row);
	}
	undefined("rdtscp-undefined", l2_try_rdtscp, PROC2_RDTSCP);
	undefined("invpcid-undefined", l2_try_invpcid, PROC2_INVPCID);
	undefined("xsaves-undefined", l2_try_xsaves, PROC2_XSAVES);
	undefined("vmfunc-undefined", l2_try_vmfunc, PROC2_VMFUNC);
	undefined("getsec-undefined", l2_try_getsec, 0);
	in_ring3();
	prefixed();
}
