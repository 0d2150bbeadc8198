/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two CPUs in their L2s answer each other's interrupt many thousand times, by exits with and without
 * acknowledge and straight in L2: one that is lost between the levels stops the game. SDM "External
 * Interrupts".
 */
#include "l1.h"
#include "l2.h"

const char test_title[] = "nested: interrupts between two CPUs";

#define VECTOR   0x55
#define CPUS     2
#define EACH     4000u  /* exchanges of each kind, two interrupts each; three kinds */
#define MORE     16667u /* with the word `long` */
#define PATIENCE 20000000u

enum kind { NO_ACK, ACK, DIRECT };

static volatile u32 hits[CPUS], known[CPUS]; /* interrupts taken, and those that receive() has seen */
static volatile u32 answered[CPUS];
static volatile bool ready;
static u32 each = EACH;

static void send(u32 cpu)
{
	lapic_ipi(cpus[cpu].apic_id, ICR_ASSERT | VECTOR);
}

static void on_interrupt(struct regs *r)
{
	(void)r;
	hits[cpu_index()]++;
	lapic_eoi();
}

/* An exit takes it away; it comes to an end only when it is forgotten. */
static void l2_spin(void)
{
	for (;;) {
		for (u32 i = 0; i < PATIENCE; i++)
			cpu_pause();
		l2_call(0);
	}
}

/* Waits for one that is taken here: then `known` changes in between only. */
static void l2_wait(void)
{
	u32 self = cpu_index();

	for (;;) {
		for (u32 i = 0; i < PATIENCE && hits[self] == known[self]; i++)
			cpu_pause();
		l2_call(hits[self] - known[self]);
	}
}

/* One interrupt for this CPU. False: it did not come, or came another way. */
static bool receive(enum kind kind)
{
	u32 self = cpu_index();
	struct vm_result r = l2_run();

	if (kind == DIRECT) {
		if (!l2_called(&r, 1))
			return false;
		l2_skip(&r);
	} else if (r.kind != VM_EXIT || r.reason != EXIT_EXT_INT) {
		return false;
	} else if (kind == ACK) {
		hits[self]++;
		lapic_eoi();
	} else {
		sti_nop_cli();
	}
	known[self]++;
	return hits[self] == known[self];
}

static void prepare(enum kind kind)
{
	l2_prepare(kind == DIRECT ? l2_wait : l2_spin);
	vmwrite(VMCS_GUEST_RFLAGS, 2 | RFLAGS_IF);
	if (kind != DIRECT)
		vmcs_set_bits(VMCS_PIN_CTL, PIN_EXT_INT);
	if (kind == ACK)
		vmcs_set_bits(VMCS_EXIT_CTL, EXIT_ACK_INT);
}

static void answer(u64 kind)
{
	cli();
	lapic_enable();
	prepare((enum kind)kind);
	answered[1] = 0;
	ready = true;
	while (answered[1] < each && receive((enum kind)kind)) {
		answered[1]++;
		send(0);
	}
}

static void play(const char *name, enum kind kind)
{
	char text[48];

	prepare(kind);
	answered[0] = 0;
	ready = false;
	cpu_run(1, answer, kind);
	while (!ready)
		cpu_pause();
	do
		send(1);
	while (receive(kind) && ++answered[0] < each);
	cpu_wait(1);
	expect_eq(name, answered[0], each);
	format_text(text, sizeof(text), "%s-other-side", name);
	expect_eq(text, answered[1], each);
}

void test_main(void)
{
	if (!vmx_available() || !vmx_start())
		return;
	if (!expect_eq("cpus-online", cpu_start_all(), CPUS))
		return;
	if (boot_option("long"))
		each = MORE;
	lapic_enable();
	trap_handle(VECTOR, on_interrupt);
	play("no-ack", NO_ACK);
	play("ack", ACK);
	play("direct", DIRECT);
}
