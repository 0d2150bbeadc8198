/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random VMCSs that are nearly valid: what becomes of VMLAUNCH must be the same on every machine. A line "OUT
 * first hashes" has three digits for each case of a batch; the driver compares them between the bare machine
 * and Nidus. Words of the command line: seed=N; case=N (several) for these cases alone and in full.
 */
#include "random.h"

const char test_title[] = "nested: random VMCSs";

#define CASES 5000
#define BATCH 50

struct outcome {
	u32 fail, reason, intr_info, intr_error, idt_info, idt_error, insn_len;
	u64 qual, rip, gla, gpa;
};

static u64 state;

/* splitmix64. */
u64 rng(void)
{
	u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void rng_start(u64 seed, u32 number)
{
	state = seed << 32 ^ number;
	state = rng();
}

static bool from_instruction(u32 reason)
{
	switch (reason) {
	case EXIT_TASK_SWITCH ... EXIT_WRMSR:
	case EXIT_MWAIT ... EXIT_PAUSE:
	case EXIT_GDTR_IDTR ... EXIT_LDTR_TR:
	case EXIT_INVEPT ... EXIT_RDTSCP:
	case EXIT_INVVPID ... EXIT_XSETBV:
	case EXIT_RDRAND ... EXIT_RDSEED:
	case EXIT_XSAVES ... EXIT_XRSTORS:
		return true;
	default:
		return false;
	}
}

/* The qualification is the displacement of a memory operand; with a register Bochs leaves what it decoded
 * there before. SDM "Exit Qualification" and "VM-Exit Instruction-Information Field". */
static bool register_operand(const struct vm_result *r)
{
	bool may = r->reason == EXIT_VMREAD || r->reason == EXIT_VMWRITE || r->reason == EXIT_LDTR_TR;

	return may && r->insn_info & BIT(10);
}

/* Only what the manual defines for the exit. An entry that fails leaves the other fields alone (Q9); in real
 * mode no exception has an error code, which Bochs forgets. */
static struct outcome outcome_of(const struct vm_result *r)
{
	struct outcome o = {.fail = r->fail, .reason = r->reason};

	if (r->kind != VM_EXIT)
		return (struct outcome){.fail = r->fail};
	o.qual = r->qual;
	if (r->reason & EXIT_ENTRY_FAILED)
		return o;
	o.rip = r->rip;
	if (r->reason == EXIT_EXCEPTION)
		o.intr_info =
			vmread(VMCS_GUEST_CR0) & CR0_PE ? r->intr_info : r->intr_info & (u32)~INTR_ERROR_CODE;
	if (o.intr_info & INTR_ERROR_CODE)
		o.intr_error = r->intr_error;
	o.idt_info = r->idt_info & INTR_VALID ? r->idt_info : 0;
	if (o.idt_info & INTR_ERROR_CODE)
		o.idt_error = r->idt_error;
	if (register_operand(r))
		o.qual = 0;
	if (from_instruction(r->reason))
		o.insn_len = r->insn_len;
	if (r->reason == EXIT_EPT_VIOLATION || r->reason == EXIT_EPT_MISCONFIG)
		o.gpa = r->gpa;
	/* Q45: of a walk of L2's tables, which is a write with flags, Bochs does not say that it reads too.
	 */
	if (r->reason == EXIT_EPT_VIOLATION && r->qual & EPT_Q_WRITE && !(r->qual & EPT_Q_FINAL))
		o.qual &= ~EPT_Q_READ;
	if (r->reason == EXIT_EPT_VIOLATION && r->qual & EPT_Q_LINEAR)
		o.gla = r->gla;
	return o;
}

static struct outcome run_case(u64 seed, u32 number, bool show)
{
	enum mode mode;
	struct vm_result r;

	rng_start(seed, number);
	mode = (enum mode)rng_below(MODES);
	if (show)
		print("case %u mode %u\n", number, mode);
	world_reset(mode, show);
	mutate(show);
	avoid();
	r = l2_launch();
	return outcome_of(&r);
}

/* FNV-1a, of which twelve bits are shown: a case that differs is missed once in 4096. */
static u32 hash(const struct outcome *o)
{
	const u8 *bytes = (const void *)o;
	u64 h = 0xcbf29ce484222325;

	for (size_t i = 0; i < sizeof(*o); i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return (u32)(h >> 52);
}

static void print_case(u32 number, const struct outcome *o)
{
	print("OUT %u fail %x reason %x qual %lx rip %lx intr %x %x idt %x %x len %u gla %lx gpa %lx\n",
	      number, o->fail, o->reason, o->qual, o->rip, o->intr_info, o->intr_error, o->idt_info,
	      o->idt_error, o->insn_len, o->gla, o->gpa);
}

/* How often each kind of end was seen: a generator that only fails proves nothing. */
static u32 failed_controls, failed_host, failed_guest, failed_list, entered, reasons[80];

static void count(const struct outcome *o)
{
	failed_controls += o->fail == VMFAIL_VALID(7);
	failed_host += o->fail == VMFAIL_VALID(8);
	failed_guest += o->reason == (EXIT_ENTRY_FAILED | EXIT_BAD_GUEST);
	failed_list += o->reason == (EXIT_ENTRY_FAILED | EXIT_BAD_MSR);
	if (!o->fail && o->reason < ARRAY_SIZE(reasons)) {
		entered++;
		reasons[o->reason]++;
	}
}

static void report_counts(void)
{
	u32 kinds = 0;

	for (u32 i = 0; i < ARRAY_SIZE(reasons); i++)
		kinds += reasons[i] != 0;
	print("seen: %u controls, %u host, %u guest, %u list, %u entered, %u reasons\n", failed_controls,
	      failed_host, failed_guest, failed_list, entered, kinds);
	expect_true("control-failures-seen", failed_controls > 100);
	expect_true("host-failures-seen", failed_host > 100);
	expect_true("guest-failures-seen", failed_guest > 500);
	expect_true("list-failures-seen", failed_list > 10);
	expect_true("entries-seen", entered > 1000);
	expect_true("many-exit-reasons-seen", kinds > 25);
}

/* The number behind the next `word` from *at on; *at moves past it. False: there is none. */
static bool next_number(const char **at, const char *word, u64 *value)
{
	size_t n = strlen(word);

	for (const char *p = *at; *p; p++) {
		if ((p != boot.cmdline && p[-1] != ' ') || memcmp(p, word, n))
			continue;
		*value = 0;
		for (p += n; *p >= '0' && *p <= '9'; p++)
			*value = *value * 10 + (u64)(*p - '0');
		*at = p;
		return true;
	}
	return false;
}

static void all_cases(u64 seed)
{
	for (u32 first = 0; first < CASES; first += BATCH) {
		char line[3 * BATCH + 1];

		for (u32 i = 0; i < BATCH; i++) {
			struct outcome o = run_case(seed, first + i, false);

			format_text(line + 3 * i, 4, "%03x", hash(&o));
			count(&o);
		}
		print("OUT %u %s\n", first, line);
	}
	report_counts();
}

void test_main(void)
{
	const char *at = boot.cmdline;
	u64 seed = 1, number;
	bool single = false;

	if (!vmx_available() || !vmx_start())
		return;
	if (!proc2_has(PROC2_EPT | PROC2_UNRESTRICTED) || !ctl_has(VMCS_PIN_CTL, PIN_TIMER)) {
		skip("random", "needs EPT, unrestricted guest and the preemption timer");
		return;
	}
	world_create();
	next_number(&at, "seed=", &seed);
	for (at = boot.cmdline; next_number(&at, "case=", &number); single = true) {
		struct outcome o = run_case(seed, (u32)number, true);

		print_case((u32)number, &o);
	}
	if (single)
		expect_true("chosen-cases-ran", true);
	else
		all_cases(seed);
}
