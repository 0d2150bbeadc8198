/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hypercalls with right and wrong input, interrupts to sets of VPs, and TLB flushes that another CPU must
 * notice. TLFS "Hypercall Interface", "Virtual MMU".
 */
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: hypercalls";

#define FLUSH_SPACE    0x02ull
#define FLUSH_LIST     0x03ull
#define SPIN_WAIT      0x08ull
#define SEND_IPI       0x0bull
#define FLUSH_SPACE_EX 0x13ull
#define FLUSH_LIST_EX  0x14ull
#define SEND_IPI_EX    0x15ull

#define FLUSH_GPA      0xafull
#define FLUSH_GPA_LIST 0xb0ull

#define ALL_PROCESSORS BIT(0)
#define ALL_SPACES     BIT(1)
#define NON_GLOBAL     BIT(2)

#define VECTOR  0x72u
#define OUTSIDE 0xfffffff000ull

static u64 *input;

static u64 call(u64 control)
{
	return hv_call(control, addr_of(input), 0);
}

static void set(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	const u64 words[6] = {a, b, c, d, e, f};

	for (u32 i = 0; i < ARRAY_SIZE(words); i++)
		input[i] = words[i];
}

/* --- wrong input --- */

struct bad {
	const char *name;
	u64 control, words[6], status;
};

static const struct bad bad[] = {
	/* clang-format off */
	{ "unknown-code",	  0x7777, { 0 }, HV_INVALID_CODE },
	{ "code-0",		  0, { 0 }, HV_INVALID_CODE },
	{ "privileged-code",	  0x46, { 0 }, HV_INVALID_CODE },
	{ "reserved-bit-27",	  FLUSH_SPACE | BIT(27), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "nested-bit",		  FLUSH_SPACE | BIT(31), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "reserved-bit-44",	  FLUSH_SPACE | BIT(44), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "reserved-bit-63",	  FLUSH_SPACE | BIT(63), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "reps-of-simple-call",  FLUSH_SPACE | HV_REPS(1), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "header-of-plain-call", FLUSH_SPACE | HV_VARIABLE(1), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "no-reps",		  FLUSH_LIST, { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "start-beyond-reps",	  FLUSH_LIST | HV_REPS(2) | HV_START(2), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "reps-over-page",	  FLUSH_LIST | HV_REPS(4095), { 0, 3, 0 }, HV_INVALID_ALIGNMENT },
	{ "flush-unknown-flag",	  FLUSH_SPACE, { 0, BIT(4), 0 }, HV_INVALID_PARAMETER },
	{ "list-non-global",	  FLUSH_LIST | HV_REPS(1), { 0, 3 | NON_GLOBAL, 0 }, HV_INVALID_PARAMETER },
	{ "set-format-2",	  FLUSH_SPACE_EX, { 0, 2, 2, 0 }, HV_INVALID_PARAMETER },
	{ "set-banks-missing",	  FLUSH_SPACE_EX | HV_VARIABLE(1), { 0, 2, 0, 3, 1 }, HV_INVALID_INPUT },
	{ "set-banks-too-many",	  FLUSH_SPACE_EX | HV_VARIABLE(2), { 0, 2, 0, 1, 1, 1 }, HV_INVALID_INPUT },
	{ "ipi-vector-15",	  SEND_IPI, { 15, 1 }, HV_INVALID_PARAMETER },
	{ "ipi-vector-256",	  SEND_IPI, { 256, 1 }, HV_INVALID_PARAMETER },
	{ "ipi-vtl-1",		  SEND_IPI, { VECTOR | 1ull << 32, 1 }, HV_INVALID_PARAMETER },
	{ "post-message",	  0x5c, { 0 }, HV_INVALID_CODE },
	{ "get-registers",	  0x50 | HV_REPS(1), { 0 }, HV_INVALID_CODE },
	{ "spin-wait-reps",	  SPIN_WAIT | HV_REPS(1), { 0 }, HV_INVALID_INPUT },
	{ "start-of-simple-call", FLUSH_SPACE | HV_START(1), { 0, 3, 0 }, HV_INVALID_INPUT },
	{ "list-unknown-flag",	  FLUSH_LIST | HV_REPS(1), { 0, BIT(63), 0, 0 }, HV_INVALID_PARAMETER },
	{ "list-ex-no-reps",	  FLUSH_LIST_EX | HV_VARIABLE(1), { 0, 2, 0, 1, 1, 0 }, HV_INVALID_INPUT },
	{ "list-ex-format-2",	  FLUSH_LIST_EX | HV_REPS(1), { 0, 2, 2, 0, 0, 0 }, HV_INVALID_PARAMETER },
	{ "list-ex-non-global",	  FLUSH_LIST_EX | HV_REPS(1), { 0, 2 | NON_GLOBAL, 1, 0 }, HV_INVALID_PARAMETER },
	{ "list-ex-banks-missing", FLUSH_LIST_EX | HV_REPS(1), { 0, 2, 0, 1, 1, 0 }, HV_INVALID_INPUT },
	{ "set-over-page",	  FLUSH_SPACE_EX | HV_VARIABLE(509), { 0, 2, 0, 1, 1, 0 }, HV_INVALID_ALIGNMENT },
	{ "ipi-reps",		  SEND_IPI | HV_REPS(1), { VECTOR, 1 }, HV_INVALID_INPUT },
	{ "ipi-header",		  SEND_IPI | HV_VARIABLE(1), { VECTOR, 1 }, HV_INVALID_INPUT },
	{ "ipi-set-vector-15",	  SEND_IPI_EX, { 15, 1, 0 }, HV_INVALID_PARAMETER },
	{ "ipi-set-vtl-1",	  SEND_IPI_EX, { VECTOR | 1ull << 32, 1, 0 }, HV_INVALID_PARAMETER },
	{ "ipi-set-banks-missing", SEND_IPI_EX | HV_VARIABLE(1), { VECTOR, 0, 3, 1 }, HV_INVALID_INPUT },
	{ "gpa-reps",		  FLUSH_GPA | HV_REPS(1), { 0, 0 }, HV_INVALID_INPUT },
	{ "gpa-list-no-reps",	  FLUSH_GPA_LIST, { 0, 0 }, HV_INVALID_INPUT },
	{ "gpa-list-header",	  FLUSH_GPA_LIST | HV_REPS(1) | HV_VARIABLE(1), { 0, 0 }, HV_INVALID_INPUT },
	{ "ipi-set-format-2",	  SEND_IPI_EX, { VECTOR, 2, 0 }, HV_INVALID_PARAMETER },
	/* clang-format on */
};

static void wrong(void)
{
	for (u32 i = 0; i < ARRAY_SIZE(bad); i++) {
		const u64 *w = bad[i].words;

		set(w[0], w[1], w[2], w[3], w[4], w[5]);
		expect_eq(bad[i].name, HV_STATUS(call(bad[i].control)), bad[i].status);
	}
	set(0, BIT(5), 0, 0, 0, 0);
	expect_eq("nothing-done-of-a-bad-list", HV_REPS_DONE(call(FLUSH_LIST | HV_REPS(3) | HV_START(1))), 1);
	set(0, 3, 0, 0, 0, 0);
	expect_eq("rest-of-a-list", call(FLUSH_LIST | HV_REPS(3) | HV_START(2)), HV_REPS(3));
	expect_eq("spin-wait-memory", call(SPIN_WAIT), HV_SUCCESS);
	expect_eq("misaligned", HV_STATUS(hv_call(FLUSH_SPACE, addr_of(input) + 4, 0)), HV_INVALID_ALIGNMENT);
	expect_eq("over-page-end", HV_STATUS(hv_call(FLUSH_SPACE, addr_of(input) + PAGE_SIZE - 16, 0)),
		  HV_INVALID_ALIGNMENT);
	expect_eq("outside-of-ram", HV_STATUS(hv_call(FLUSH_SPACE, OUTSIDE, 0)), HV_INVALID_PARAMETER);
}

/* --- where no hypercall can be made --- */

static u32 try_vmcall(u64 control)
{
	u64 rax = 0;

	trap_forget();
	asm volatile(TRY("vmcall")
		     : "+a"(rax), "+c"(control)
		     : "d"(0ull)
		     : "r8", "r9", "r10", "r11", "memory", "cc");
	return trap_last();
}

static volatile u32 user_result;

static void from_user(void)
{
	user_result = try_vmcall(SPIN_WAIT | HV_FAST);
}

static void places(void)
{
	user_run(from_user);
	expect_eq("from-ring-3", user_result, UD);
	expect_eq("fast-input-needs-xmm", try_vmcall(FLUSH_SPACE | HV_FAST), UD);
	wrmsr(HV_MSR_GUEST_OS_ID, 0);
	expect_eq("without-identity", try_vmcall(SPIN_WAIT | HV_FAST), UD);
	hv_start();
	expect_eq("spin-wait", HV_STATUS(hv_call(SPIN_WAIT | HV_FAST, 1, 0)), HV_SUCCESS);
}

/* --- interrupts --- */

static volatile u32 hits[2];

static void on_ipi(struct regs *r)
{
	(void)r;
	hits[cpu_index()]++;
	wrmsr(HV_MSR_EOI, 0);
}

/* Both counters, after the last one due has had time to come. */
static u64 settled(u64 want)
{
	u64 end = rdtsc() + us_to_tsc(100000);

	sti();
	while (((u64)hits[1] << 8 | hits[0]) != want && rdtsc() < end)
		cpu_pause();
	delay_us(200);
	cli();
	want = (u64)hits[1] << 8 | hits[0];
	hits[0] = hits[1] = 0;
	return want;
}

static void ipis(void)
{
	expect_eq("ipi-fast", HV_STATUS(hv_call(SEND_IPI | HV_FAST, VECTOR, BIT(1))), HV_SUCCESS);
	expect_eq("ipi-fast-came", settled(0x100), 0x100);
	set(VECTOR, 3, 0, 0, 0, 0);
	expect_eq("ipi-memory", HV_STATUS(call(SEND_IPI)), HV_SUCCESS);
	expect_eq("ipi-memory-came", settled(0x101), 0x101);
	set(VECTOR, ~3ull, 0, 0, 0, 0);
	expect_eq("ipi-to-nobody", HV_STATUS(call(SEND_IPI)), HV_SUCCESS);
	expect_eq("ipi-to-nobody-went-nowhere", settled(0), 0);
	set(VECTOR, 0, 1, 2, 0, 0);
	expect_eq("ipi-set", HV_STATUS(call(SEND_IPI_EX | HV_VARIABLE(1))), HV_SUCCESS);
	expect_eq("ipi-set-came", settled(0x100), 0x100);
	set(VECTOR, 1, 0, 0, 0, 0);
	expect_eq("ipi-all", HV_STATUS(call(SEND_IPI_EX)), HV_SUCCESS);
	expect_eq("ipi-all-came", settled(0x101), 0x101);
	set(VECTOR, 0, 0x8000000000000000ull, ~0ull, 0, 0);
	expect_eq("ipi-last-bank", HV_STATUS(call(SEND_IPI_EX | HV_VARIABLE(1))), HV_SUCCESS);
	expect_eq("ipi-last-bank-went-nowhere", settled(0), 0);
}

/* --- flushes --- */

#define WINDOW 0x3f000000ull
#define OLD    0x1111u
#define NEW    0x2222u

static u64 *frames[2];

static u64 look(void)
{
	return *(volatile u64 *)WINDOW;
}

static void reader(u64 arg)
{
	(void)arg;
	cpu_answer(look);
}

static void point_to(u32 i)
{
	*page_entry(WINDOW) = addr_of(frames[i]) | PTE_RAM;
}

/* Both CPUs have the old translation; after the call neither has. */
static void flush_case(const char *name, u64 control, u64 result)
{
	char text[48];

	point_to(0);
	call(control);
	expect_eq(name, (cpu_ask(), call(control)), result);
	point_to(1);
	call(control);
	format_text(text, sizeof(text), "%s-seen-there", name);
	expect_eq(text, cpu_ask(), NEW);
}

static void flush_here(const char *name, u64 control)
{
	point_to(0);
	invlpg(WINDOW);
	(void)*(volatile u64 *)WINDOW;
	point_to(1);
	call(control);
	expect_eq(name, *(volatile u64 *)WINDOW, NEW);
}

static void flushes(void)
{
	frames[0] = page_alloc();
	frames[1] = page_alloc();
	*frames[0] = OLD;
	*frames[1] = NEW;
	point_to(0);
	cpu_run(1, reader, 0);
	set(0, ALL_PROCESSORS | ALL_SPACES, 0, WINDOW, 0, 0);
	flush_case("flush-all", FLUSH_SPACE, HV_SUCCESS);
	flush_here("flush-all-here", FLUSH_SPACE);
	set(0, ALL_SPACES, 2, WINDOW, 0, 0);
	flush_case("flush-mask", FLUSH_SPACE, HV_SUCCESS);
	flush_case("flush-list", FLUSH_LIST | HV_REPS(1), HV_SUCCESS | HV_REPS(1));
	set(0, ALL_SPACES, 1, WINDOW, 0, 0);
	flush_here("flush-list-here", FLUSH_LIST | HV_REPS(1));
	set(0, ALL_SPACES, 0, 1, 2, WINDOW);
	flush_case("flush-set", FLUSH_SPACE_EX | HV_VARIABLE(1), HV_SUCCESS);
	flush_case("flush-set-list", FLUSH_LIST_EX | HV_VARIABLE(1) | HV_REPS(1), HV_SUCCESS | HV_REPS(1));
	set(0, ALL_SPACES, ~0ull, 0xdeadbeef00000fffull, WINDOW, 0);
	flush_here("flush-odd-addresses", FLUSH_LIST | HV_REPS(2));
	cpu_dismiss(1);
}

/* Each CPU waits for the other's flush while it has its own under way, interrupts off. */
#define CROSSED 50u

static volatile u32 crossed[2];

static void cross(u64 cpu)
{
	for (u32 i = 0; i < CROSSED; i++)
		if (call(FLUSH_SPACE) == HV_SUCCESS)
			crossed[cpu]++;
}

static void crossing(void)
{
	set(0, ALL_PROCESSORS | ALL_SPACES, 0, 0, 0, 0);
	cpu_run(1, cross, 1);
	cross(0);
	cpu_wait(1);
	expect_eq("crossed-flushes-here", crossed[0], CROSSED);
	expect_eq("crossed-flushes-there", crossed[1], CROSSED);
}

void test_main(void)
{
	if (hv_available()) {
		trap_handle(VECTOR, on_ipi);
		lapic_enable();
		hv_start();
		input = page_alloc();
		wrong();
		places();
		cpu_start_all();
		ipis();
		flushes();
		crossing();
	}
	report_done();
}
