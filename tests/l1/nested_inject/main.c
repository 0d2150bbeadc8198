/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events into L2: injection of every type, the exception bitmap and its page-fault filter, events that an
 * exit interrupts, and that an injected event is used up. SDM "Event Injection", "Exceptions", "Information
 * for VM Exits During Event Delivery".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: event injection";

static volatile u32 hits, last_vector;
static volatile u64 last_error, last_rip;

/* L2 shares the IDT, so the handler runs in L2. It leaves faults behind by skipping the instruction that L1
 * told it. */
static volatile u64 skip_bytes;

static void on_event(struct regs *r)
{
	hits++;
	last_vector = (u32)r->vector;
	last_error = r->error;
	last_rip = r->rip;
	r->rip += skip_bytes;
	if (r->vector >= 0x20)
		lapic_eoi();
}

static void l2_nop(void)
{
	asm volatile("nop; nop; nop");
}

static struct vm_result inject(u32 info, u32 error, u32 length)
{
	struct vm_result r;

	hits = 0;
	last_error = 0;
	l2_prepare(l2_nop);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | info);
	vmwrite(VMCS_ENTRY_ERROR_CODE, error);
	vmwrite(VMCS_ENTRY_INSN_LEN, length);
	if ((info & 0x700) == INTR_EXTERNAL)
		vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	r = l2_launch();
	return r;
}

struct injection {
	const char *name;
	u32 info, error, length;
};

static const struct injection injections[] = {
	{"external-51", INTR_EXTERNAL | 0x51, 0, 0},
	{"nmi", INTR_NMI | 2, 0, 0},
	{"de", INTR_EXCEPTION | VEC_DE, 0, 0},
	{"ud", INTR_EXCEPTION | VEC_UD, 0, 0},
	{"gp", INTR_EXCEPTION | INTR_ERROR_CODE | VEC_GP, 0x1234, 0},
	{"pf", INTR_EXCEPTION | INTR_ERROR_CODE | VEC_PF, 0x7, 0},
	{"soft-int-52", INTR_SOFT_INT | 0x52, 0, 2},
	{"bp", INTR_SOFT_EXC | VEC_BP, 0, 1},
	{"of", INTR_SOFT_EXC | VEC_OF, 0, 1},
	{"privileged-db", INTR_PRIV_SOFT | VEC_DB, 0, 1},
};

static void inject_all(void)
{
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(injections); i++) {
		const struct injection *j = &injections[i];
		struct vm_result r;
		u64 start;

		trap_handle(j->info & 0xff, on_event);
		skip_bytes = 0;
		r = inject(j->info, j->error, j->length);
		start = vmread(VMCS_ENTRY_INTR_INFO);
		format_text(name, sizeof(name), "inject-%s", j->name);
		expect_done(name, r);
		format_text(name, sizeof(name), "inject-%s-once", j->name);
		expect_eq(name, hits << 8 | last_vector, 1u << 8 | (j->info & 0xff));
		format_text(name, sizeof(name), "inject-%s-error", j->name);
		expect_eq(name, last_error, j->error);
		format_text(name, sizeof(name), "inject-%s-used-up", j->name);
		expect_eq(name, start & INTR_VALID, 0);
		trap_handle(j->info & 0xff, NULL);
	}
}

/* A software event's return address is behind the instruction whose length L1 gave. */
static void software_rip(void)
{
	trap_handle(0x52, on_event);
	inject(INTR_SOFT_INT | 0x52, 0, 2);
	vmwrite(VMCS_GUEST_RIP, 0);
	expect_ne("soft-int-return-address", last_rip, 0);
	l2_prepare(l2_nop);
	last_rip = 0;
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_SOFT_INT | 0x52);
	vmwrite(VMCS_ENTRY_INSN_LEN, 3);
	expect_eq("before-injection", last_rip, 0);
	{
		u64 rip = vmread(VMCS_GUEST_RIP);

		vmwrite(VMCS_GUEST_RIP, rip - 3);
		l2_launch();
		expect_eq("return-address-adds-length", last_rip, rip);
	}
	trap_handle(0x52, NULL);
}

static void l2_ud(void)
{
	asm volatile("ud2");
}

static void l2_bp(void)
{
	asm volatile("int3");
}

static void l2_gp(void)
{
	asm volatile("mov %0, %%cr4" : : "r"(BIT(63)));
}

static void l2_de(void)
{
	asm volatile("xor %%eax, %%eax; xor %%edx, %%edx; div %%eax" : : : "eax", "edx");
}

static volatile u64 *unmapped;

static void l2_pf_read(void)
{
	asm volatile("mov (%0), %%rax" : : "r"(unmapped) : "rax");
}

static void l2_pf_write(void)
{
	asm volatile("movq $0, (%0)" : : "r"(unmapped) : "memory");
}

struct exception {
	const char *name;
	l2_fn *fn;
	u32 vector, info, error, length;
};

static const struct exception exceptions[] = {
	{"de", l2_de, VEC_DE, INTR_EXCEPTION, 0, 2},
	{"ud", l2_ud, VEC_UD, INTR_EXCEPTION, 0, 2},
	{"bp", l2_bp, VEC_BP, INTR_SOFT_EXC, 0, 0},
	{"gp", l2_gp, VEC_GP, INTR_EXCEPTION | INTR_ERROR_CODE, 0, 3},
	{"pf", l2_pf_read, VEC_PF, INTR_EXCEPTION | INTR_ERROR_CODE, 0, 3},
};

static void exception_bitmap(void)
{
	char name[48];

	for (u32 i = 0; i < ARRAY_SIZE(exceptions); i++) {
		const struct exception *e = &exceptions[i];
		struct vm_result r;

		l2_prepare(e->fn);
		vmwrite(VMCS_EXCEPTION_BITMAP, BIT(e->vector));
		r = l2_launch();
		format_text(name, sizeof(name), "exception-exit-%s", e->name);
		expect_exit(name, r, EXIT_EXCEPTION);
		format_text(name, sizeof(name), "exception-info-%s", e->name);
		expect_eq(name, r.intr_info & ~0x1000u, INTR_VALID | e->info | e->vector);
		if (e->vector == VEC_BP)
			expect_eq("exception-length-bp", r.insn_len, 1);
		if (e->vector == VEC_PF)
			expect_eq("exception-qualification-pf", r.qual, addr_of(unmapped));

		/* Not in the bitmap: L2's own handler gets it, L1 nothing. */
		trap_handle(e->vector, on_event);
		skip_bytes = e->length;
		hits = 0;
		l2_prepare(e->fn);
		vmwrite(VMCS_EXCEPTION_BITMAP, (u32)~BIT(e->vector));
		r = l2_launch();
		trap_handle(e->vector, NULL);
		format_text(name, sizeof(name), "exception-in-l2-%s", e->name);
		expect_done(name, r);
		format_text(name, sizeof(name), "exception-in-l2-once-%s", e->name);
		expect_eq(name, hits, 1);
	}
}

/* Exit if bit 14 equals ((error & mask) == match). */
static void page_fault_filter(void)
{
	struct vm_result r;

	trap_handle(VEC_PF, on_event);
	skip_bytes = 3;
	l2_prepare(l2_pf_read);
	vmwrite(VMCS_EXCEPTION_BITMAP, BIT(VEC_PF));
	vmwrite(VMCS_PF_MASK, 2);
	vmwrite(VMCS_PF_MATCH, 2);
	r = l2_launch();
	expect_done("pf-read-filtered", r);
	l2_prepare(l2_pf_write);
	vmwrite(VMCS_EXCEPTION_BITMAP, BIT(VEC_PF));
	vmwrite(VMCS_PF_MASK, 2);
	vmwrite(VMCS_PF_MATCH, 2);
	r = l2_launch();
	expect_exit("pf-write-matches", r, EXIT_EXCEPTION);
	expect_eq("pf-write-error-code", r.intr_error, 2);
	l2_prepare(l2_pf_read);
	vmwrite(VMCS_PF_MASK, 2);
	vmwrite(VMCS_PF_MATCH, 2);
	r = l2_launch();
	expect_exit("pf-inverted-read", r, EXIT_EXCEPTION);
	trap_handle(VEC_PF, NULL);
}

/* The stack of the delivery is not in EPT: the exit says which event was under way; injecting it again
 * delivers it. */
static void interrupted_delivery(void)
{
	u64 stack_page = (l2_stack_top() - 8) & ~4095ul;
	u64 *e = ept_entry(l2_ept(), stack_page, PAGE_SIZE), old = *e;
	struct vm_result r;

	trap_handle(0x51, on_event);
	skip_bytes = 0;
	hits = 0;
	*e = 0;
	invept(2, 0);
	l2_prepare(l2_nop);
	vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	vmwrite(VMCS_ENTRY_INTR_INFO, INTR_VALID | INTR_EXTERNAL | 0x51);
	r = l2_launch();
	expect_exit("delivery-violation", r, EXIT_EPT_VIOLATION);
	expect_eq("delivery-idt-vectoring", r.idt_info, INTR_VALID | INTR_EXTERNAL | 0x51);
	expect_eq("delivery-not-yet", hits, 0);
	expect_eq("delivery-entry-info-cleared", vmread(VMCS_ENTRY_INTR_INFO) & INTR_VALID, 0);
	*e = old;
	vmwrite(VMCS_ENTRY_INTR_INFO, r.idt_info);
	r = l2_run();
	expect_done("redelivered", r);
	expect_eq("redelivered-once", hits, 1);
	expect_eq("no-vectoring-afterwards", r.idt_info & INTR_VALID, 0);
	trap_handle(0x51, NULL);
}

/* An exception while an exception is delivered, with the second one intercepted. */
static void exception_in_delivery(void)
{
	struct vm_result r;

	l2_prepare(l2_ud);
	vmwrite(VMCS_GUEST_IDTR_LIMIT, 16 * 6 - 1); /* no gate for #UD: #GP while it is delivered */
	vmwrite(VMCS_EXCEPTION_BITMAP, BIT(VEC_GP));
	r = l2_launch();
	expect_exit("nested-exception", r, EXIT_EXCEPTION);
	expect_eq("nested-exception-info", r.intr_info,
		  INTR_VALID | INTR_EXCEPTION | INTR_ERROR_CODE | VEC_GP);
	expect_eq("nested-exception-error", r.intr_error, VEC_UD * 8 + 3); /* IDT, EXT */
	expect_eq("nested-exception-vectoring", r.idt_info, INTR_VALID | INTR_EXCEPTION | VEC_UD);
	l2_prepare(l2_ud);
	vmwrite(VMCS_GUEST_IDTR_LIMIT, 0);
	r = l2_launch();
	expect_exit("triple-fault", r, EXIT_TRIPLE_FAULT);
}

void test_main(void)
{
	if (!vmx_available())
		return;
	lapic_enable();
	unmapped = ptr_to(0x5000000000);
	inject_all();
	software_rip();
	exception_bitmap();
	page_fault_filter();
	if (proc2_has(PROC2_EPT))
		interrupted_delivery();
	exception_in_delivery();
}
