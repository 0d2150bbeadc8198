/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bundled demo: says what it runs on, starts an L2 under its own EPT, lets the L2 print, and lists what
 * exits cost. Costs are the smallest TSC difference over batches; under Bochs a tick is one retired
 * instruction of any level.
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "Nidus demo";

#define BATCHES     8
#define ROUNDS      32
#define TOUCH_PAGES 128

typedef void op_fn(void);

static u64 scratch_vmcs, other_vmcs;
static struct inv_desc flush;

static void facts(void)
{
	char vendor[13] = {0};
	struct cpuid id = cpuid(0, 0);
	u64 basic, cap;

	memcpy(vendor, &id.ebx, 4);
	memcpy(vendor + 4, &id.edx, 4);
	memcpy(vendor + 8, &id.ecx, 4);
	print("\n  Hello from L1: %u CPU(s), %lu MiB of RAM, %s family %u model %u\n", cpu_count,
	      (boot_ram_bytes() + PAGE_2M / 4) >> 20, vendor, cpuid(1, 0).eax >> 8 & 15,
	      (cpuid(1, 0).eax >> 4 & 15) | (cpuid(1, 0).eax >> 12 & 0xf0));
	if (!cpu_has_vmx())
		return;
	basic = rdmsr(MSR_VMX_BASIC);
	cap = proc2_has(PROC2_EPT) ? rdmsr(MSR_VMX_EPT_VPID_CAP) : 0;
	print("  VMX revision %x:%s%s%s%s%s%s%s%s%s\n", (u32)basic & 0x7fffffff,
	      proc2_has(PROC2_EPT) ? " EPT" : "", cap & EPT_CAP_2M ? " 2M" : "",
	      cap & EPT_CAP_1G ? " 1G" : "", cap & EPT_CAP_AD ? " A/D" : "",
	      proc2_has(PROC2_VPID) ? " VPID" : "", proc2_has(PROC2_UNRESTRICTED) ? " unrestricted" : "",
	      proc2_has(PROC2_SHADOW) ? " VMCS-shadowing" : "", proc2_has(PROC2_PML) ? " PML" : "",
	      ctl_has(VMCS_PIN_CTL, PIN_TIMER) ? " preemption-timer" : "");
}

/* L2 has no console of its own: it writes to port 0xe9 and L1 catches each byte. */
static void l2_greets(void)
{
	for (const char *p = "Hello from L2, in 64-bit mode under L1's own EPT"; *p; p++)
		outb(0xe9, (u8)*p);
}

static void run_greeting(void)
{
	char line[80];
	u32 used = 0;
	struct vm_result r;

	l2_prepare(l2_greets);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_IO);
	r = l2_launch();
	while (r.reason == EXIT_IO && used + 1 < sizeof(line)) {
		line[used++] = (char)l2_regs()->rax;
		r = l2_run_past(&r);
	}
	line[used] = 0;
	print("  %s (%u exits)\n\n", line, used + 1);
	expect_done("l2-said-hello", r);
}

static void row(const char *level, const char *name, u64 ticks)
{
	print("  | %-3s | %-28s | %10lu |\n", level, name, ticks);
}

static void measure(const char *level, const char *name, op_fn *op)
{
	u64 best = ~0ull;

	op();
	for (u32 b = 0; b < BATCHES; b++) {
		u64 start = rdtsc();

		for (u32 i = 0; i < ROUNDS; i++)
			op();
		start = rdtsc() - start;
		best = start < best ? start : best;
	}
	row(level, name, best / ROUNDS);
}

static void op_cpuid(void)
{
	cpuid(0, 0);
}

static void op_rdmsr(void)
{
	rdmsr(MSR_APIC_BASE);
}

static void op_wrmsr(void)
{
	wrmsr(MSR_TSC_AUX, 1);
}

static void op_in(void)
{
	inb(0x71);
}

static void op_out(void)
{
	outb(0x80, 0);
}

static void op_mmio(void)
{
	lapic_read(APIC_VERSION);
}

static void op_vmread(void)
{
	u64 v;

	asm volatile("vmread %1, %0" : "=r"(v) : "r"((u64)VMCS_GUEST_RIP) : "cc");
}

static void op_vmwrite(void)
{
	asm volatile("vmwrite %0, %1" : : "r"(0ull), "r"((u64)VMCS_GUEST_PENDING_DEBUG) : "cc", "memory");
}

static void op_vmptrld(void)
{
	asm volatile("vmptrld %0" : : "m"(other_vmcs) : "cc", "memory");
	asm volatile("vmptrld %0" : : "m"(scratch_vmcs) : "cc", "memory");
}

static void op_vmclear(void)
{
	asm volatile("vmclear %0" : : "m"(other_vmcs) : "cc", "memory");
}

static void op_invept(void)
{
	asm volatile("invept %0, %1" : : "m"(flush), "r"(1ul) : "cc", "memory");
}

/* One exit and one resume; RIP moves on as any hypervisor would do it. */
static void op_round_trip(void)
{
	u64 rip, length;

	l2_enter_raw(true);
	asm volatile("vmread %1, %0" : "=r"(rip) : "r"((u64)VMCS_GUEST_RIP) : "cc");
	asm volatile("vmread %1, %0" : "=r"(length) : "r"((u64)VMCS_EXIT_INSN_LEN) : "cc");
	asm volatile("vmwrite %0, %1" : : "r"(rip + length), "r"((u64)VMCS_GUEST_RIP) : "cc", "memory");
}

static void l2_cpuid_loop(void)
{
	for (;;)
		cpuid(0, 0);
}

static void l2_rdmsr_loop(void)
{
	for (;;)
		rdmsr(MSR_APIC_BASE);
}

static void l2_out_loop(void)
{
	for (;;)
		outb(0x80, 0);
}

static void l2_vmcall_loop(void)
{
	for (;;)
		l2_call(1);
}

static void measure_l2(const char *name, l2_fn *loop)
{
	struct vm_result r;

	l2_prepare(loop);
	memset(l2_msr_bitmap(), 0xff, 4096);
	vmcs_set_bits(VMCS_PROC_CTL, PROC_IO);
	r = l2_launch();
	if (r.kind != VM_EXIT) {
		expect_exit(name, r, EXIT_CPUID);
		return;
	}
	l2_skip(&r);
	measure("L2", name, op_round_trip);
}

static volatile u8 *touched;

static void l2_touch(void)
{
	for (u64 i = 0;; i++)
		touched[i % TOUCH_PAGES * PAGE_SIZE] = 1;
}

/* L2 writes to a page that L1 has not mapped; L1 maps it and resumes. Each page costs one violation and one
 * refill. */
static void measure_violation(void)
{
	u64 root = l2_ept(), best = ~0ull;
	struct vm_result r;

	touched = pages_alloc(TOUCH_PAGES, PAGE_SIZE);
	for (u64 i = 0; i < TOUCH_PAGES; i++)
		*ept_entry(root, addr_of(touched) + i * PAGE_SIZE, PAGE_SIZE) = 0;
	invept(1, ept_pointer(root));
	invept(1, ept_pointer(root)); /* earlier L2s may have used them */
	l2_prepare(l2_touch);
	r = l2_launch();
	for (u32 i = 0; i < TOUCH_PAGES - 1 && r.reason == EXIT_EPT_VIOLATION; i++) {
		u64 start, gpa = r.gpa & ~4095ull;

		start = rdtsc();
		*ept_entry(root, gpa, PAGE_SIZE) = gpa | EPT_RWX | EPT_WB;
		l2_enter_raw(true);
		r.gpa = vmread(VMCS_GUEST_PHYSICAL);
		r.reason = (u32)vmread(VMCS_EXIT_REASON);
		start = rdtsc() - start;
		best = start < best ? start : best;
	}
	row("L2", "first write to a 4K page", best);
}

static void table(void)
{
	print("  | who | operation                    |      ticks |\n  "
	      "|-----|------------------------------|-----------:|\n");
	measure("L1", "cpuid", op_cpuid);
	measure("L1", "rdmsr APIC_BASE", op_rdmsr);
	measure("L1", "wrmsr TSC_AUX", op_wrmsr);
	measure("L1", "in 0x71", op_in);
	measure("L1", "out 0x80", op_out);
	measure("L1", "read of an APIC register", op_mmio);
}

static void nested_table(void)
{
	scratch_vmcs = l2_vmcs();
	other_vmcs = vmcs_alloc();
	flush.a = ept_pointer(l2_ept());
	vmclear(other_vmcs);
	measure("L1", "vmread", op_vmread);
	measure("L1", "vmwrite", op_vmwrite);
	measure("L1", "vmptrld, two of them", op_vmptrld);
	measure("L1", "vmclear", op_vmclear);
	if (proc2_has(PROC2_EPT))
		measure("L1", "invept, one context", op_invept);
	measure_l2("cpuid round trip", l2_cpuid_loop);
	measure_l2("rdmsr round trip", l2_rdmsr_loop);
	measure_l2("out round trip", l2_out_loop);
	measure_l2("vmcall round trip", l2_vmcall_loop);
	if (proc2_has(PROC2_EPT))
		measure_violation();
}

void test_main(void)
{
	facts();
	if (!vmx_available())
		return;
	run_greeting();
	table();
	nested_table();
	print("\n");
}
