/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions that a hypervisor emulates must end like real ones: single-step trap right behind them, STI
 * blocking gone, RIP advanced once whatever prefixes they carry, and a fault where the next instruction
 * cannot be. SDM "RFLAGS.TF", "STI".
 */
#include "l1.h"

const char test_title[] = "end of emulated instructions";

#define STEPS 8

static volatile u32 steps;
static volatile u64 step_rip[STEPS], step_dr6[STEPS];

static void on_debug(struct regs *r)
{
	if (steps < STEPS) {
		step_rip[steps] = r->rip;
		step_dr6[steps] = read_dr6();
	}
	steps = steps + 1;
	write_dr6(0xffff0ff0);
}

/* Runs one instruction with TF set, RAX and RCX as given; the value is the address right behind it. */
#define STEP(insn, rax, rcx)                                                                                 \
	({                                                                                                   \
		u64 behind_, a_ = (rax), c_ = (rcx);                                                         \
                                                                                                             \
		steps = 0;                                                                                   \
		asm volatile("lea 773f(%%rip), %0\n\t"                                                       \
			     "pushf\n\torl $0x100, (%%rsp)\n\tpopf\n\t" insn                                 \
			     "\n773:\tpushf\n\tandl $~0x100, (%%rsp)\n\tpopf"                                \
			     : "=&r"(behind_), "+a"(a_), "+c"(c_)                                            \
			     :                                                                               \
			     : "rbx", "rdx", "memory", "cc");                                                \
		behind_;                                                                                     \
	})

static void check_step(const char *name, u64 behind)
{
	char text[48];

	format_text(text, sizeof(text), "step-%s-rip", name);
	expect_eq(text, step_rip[0], behind);
	format_text(text, sizeof(text), "step-%s-bs", name);
	expect_eq(text, step_dr6[0] & 0x4000, 0x4000);
	format_text(text, sizeof(text), "step-%s-count", name);
	expect_eq(text, steps, 4); /* the instruction, pushf, andl, popf */
}

static void single_step(void)
{
	trap_handle(VEC_DB, on_debug);
	check_step("nop", STEP("nop", 0, 0));
	check_step("cpuid", STEP("cpuid", 0, 0));
	check_step("rdmsr", STEP("rdmsr", 0, MSR_APIC_BASE));
	check_step("in", STEP("inb $0x71, %%al", 0, 0));
	check_step("out", STEP("outb %%al, $0x80", 0, 0));
	check_step("mmio", STEP("mov (%%rcx), %%eax", 0, 0xfee00030));
	check_step("mov-cr0", STEP("mov %%rax, %%cr0", read_cr0(), 0));
	trap_handle(VEC_DB, NULL);
}

static volatile u64 interrupted_rip;

static void on_ipi(struct regs *r)
{
	interrupted_rip = r->rip;
	lapic_eoi();
}

/* STI blocks for one instruction; when that one is emulated, the interrupt comes right behind it. */
static void sti_shadow(void)
{
	u64 behind;
	u32 a = 0, c = 0;

	trap_handle(0x52, on_ipi);
	lapic_ipi(0, ICR_SELF | ICR_ASSERT | 0x52);
	asm volatile("lea 774f(%%rip), %0\n\tsti\n\tcpuid\n774:\tnop\n\tnop\n\tcli"
		     : "=&r"(behind), "+a"(a), "+c"(c)
		     :
		     : "rbx", "rdx", "memory");
	expect_eq("sti-shadow-ends-behind-cpuid", interrupted_rip, behind);
	interrupted_rip = 0;
	lapic_ipi(0, ICR_SELF | ICR_ASSERT | 0x52);
	asm volatile("lea 775f(%%rip), %0\n\tsti\n\tinb $0x71, %%al\n775:\tnop\n\tnop\n\tcli"
		     : "=&r"(behind), "+a"(a)
		     :
		     : "memory");
	expect_eq("sti-shadow-ends-behind-in", interrupted_rip, behind);
}

/* An interrupt that an emulated instruction raises comes behind the single-step trap, not instead of it. */
static void step_into_interrupt(void)
{
	u64 behind;

	trap_handle(VEC_DB, on_debug);
	interrupted_rip = 0;
	asm volatile("sti");
	behind = STEP("movl %%eax, (%%rcx)", ICR_SELF | ICR_ASSERT | 0x52, 0xfee00000 + APIC_ICR);
	asm volatile("cli");
	trap_handle(VEC_DB, NULL);
	expect_eq("step-into-interrupt", step_rip[0], behind);
	expect_eq("step-into-interrupt-taken", interrupted_rip, behind);
}

/* HLT with TF set ends at once, by its trap, and does not wait for the timer. */
static void step_over_hlt(void)
{
	u64 behind;

	trap_handle(VEC_DB, on_debug);
	interrupted_rip = 0;
	lapic_write(APIC_TIMER_DIVIDE, 0xb);
	lapic_write(APIC_LVT_TIMER, 0x52);
	lapic_write(APIC_TIMER_INITIAL, 10000000);
	asm volatile("sti");
	behind = STEP("hlt", 0, 0);
	asm volatile("cli");
	lapic_write(APIC_LVT_TIMER, LVT_MASKED);
	trap_handle(VEC_DB, NULL);
	expect_eq("step-hlt-rip", step_rip[0], behind);
	expect_eq("step-hlt-not-woken-by-interrupt", interrupted_rip, 0);
}

static void prefixes(void)
{
	u64 a = 0, b, c = 0, d;

	asm volatile(".byte 0x66, 0x2e, 0x3e\n\tcpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	expect_eq("prefixed-cpuid", a, cpuid(0, 0).eax);
	asm volatile(".byte 0x66, 0x66, 0x48, 0x0f, 0x32" : "=a"(a), "=d"(d) : "c"(MSR_APIC_BASE));
	expect_eq("prefixed-rdmsr", (u32)a, (u32)rdmsr(MSR_APIC_BASE));
}

/* The last bytes below the canonical hole: CPUID ends exactly at the hole, so the next fetch must fault, in
 * the guest. */
static volatile u64 hole_fault_rip, hole_error;
static u64 hole_return;

static void on_gp(struct regs *r)
{
	hole_fault_rip = r->rip;
	hole_error = r->error;
	r->rip = hole_return;
}

static void canonical_hole(void)
{
	u8 *code = page_alloc();
	u64 last_page = 0x00007ffffffff000;
	u32 a = 0, c = 0;

	code[4094] = 0x0f; /* cpuid */
	code[4095] = 0xa2;
	page_map(last_page, addr_of(code), PTE_RAM);
	trap_handle(VEC_GP, on_gp);
	asm volatile("lea 776f(%%rip), %%rbx\n\tmov %%rbx, %0\n\tjmp *%3\n776:"
		     : "=m"(hole_return), "+a"(a), "+c"(c)
		     : "r"(last_page + 4094)
		     : "rbx", "rdx", "memory");
	trap_handle(VEC_GP, NULL);
	expect_eq("hole-faults-at-next", hole_fault_rip, last_page + 4096);
	expect_eq("hole-error-code", hole_error, 0);
}

void test_main(void)
{
	lapic_enable();
	single_step();
	sti_shadow();
	step_into_interrupt();
	step_over_hlt();
	prefixes();
	canonical_hole();
}
