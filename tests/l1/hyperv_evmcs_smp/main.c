/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One enlightened VMCS on two CPUs, one after the other: clean fields that the other CPU's entry set mean
 * nothing here. Also two of them at once, with entries counted on both. TLFS "Enlightened VMCS", "Clean
 * Fields".
 */
#include "evmcs.h"
#include "hyperv.h"
#include "l1.h"

const char test_title[] = "hyperv: enlightened VMCS on two CPUs";

#define ROUNDS 200u
#define MARK   BIT(18) /* RFLAGS.AC: L2 leaves it alone */

static u8 *page[2];
static volatile u64 flags, done[2];
static volatile u32 outcome;

static void l2_counts(void)
{
	for (u64 i = 0;; i++)
		l2_call(i);
}

static void prepare(u8 *p)
{
	ev_off();
	l2_prepare(l2_counts);
	ev_fill(p);
	vmclear(l2_vmcs());
}

/* CPU 1: the same page, with every clean bit standing and a change nobody told. */
static void other_takes(u64 arg)
{
	struct vm_result r;

	(void)arg;
	vmx_start();
	prepare(page[1]); /* makes this CPU's own VMCS and host state */
	for (u32 i = 0; i < ev_field_count; i++)
		if (ev_fields[i].clean == EV_HOST_GRP1 || ev_fields[i].clean == EV_HOST_POINTER)
			ev_write_quietly(page[0], ev_fields[i].encoding,
					 ev_read(page[1], ev_fields[i].encoding));
	ev_write_quietly(page[0], VMCS_GUEST_TR_BASE, ev_read(page[1], VMCS_GUEST_TR_BASE));
	ev_write_quietly(page[0], VMCS_GUEST_TR_SEL, ev_read(page[1], VMCS_GUEST_TR_SEL));
	ev_write_quietly(page[0], VMCS_GUEST_RFLAGS, 2 | MARK);
	ev_write_quietly(page[0], VMCS_GUEST_RIP, ev_read(page[1], VMCS_GUEST_RIP));
	ev_write_quietly(page[0], VMCS_GUEST_RSP, ev_read(page[1], VMCS_GUEST_RSP));
	r = ev_enter(page[0], true);
	outcome = (u32)l2_outcome(&r);
	flags = ev_read(page[0], VMCS_GUEST_RFLAGS);
	ev_off();
	vmclear(addr_of(page[0]));
}

static void moves(void)
{
	u64 saved[512];
	struct vm_result r;

	prepare(page[0]);
	r = ev_enter(page[0], false);
	expect_exit("enters-on-cpu-0", r, EXIT_VMCALL);
	memcpy(saved, page[0], sizeof(saved));
	cpu_run(1, other_takes, 0);
	cpu_wait(1);
	expect_eq("enters-on-cpu-1", outcome, EXIT_VMCALL);
	expect_eq("cpu-1-read-all", flags & MARK, MARK);
	/* Back here, again without a word: this CPU's own old copy must not run. */
	memcpy(page[0], saved, sizeof(saved));
	ev_write_quietly(page[0], VMCS_GUEST_RFLAGS, 2 | MARK);
	*ev_clean(page[0]) = EV_CLEAN_ALL;
	r = ev_resume_past(page[0], &r);
	expect_exit("enters-on-cpu-0-again", r, EXIT_VMCALL);
	expect_eq("cpu-0-read-all", ev_read(page[0], VMCS_GUEST_RFLAGS) & MARK, MARK);
}

static void rounds(u64 cpu)
{
	struct vm_result r;

	vmx_start();
	prepare(page[cpu]);
	r = ev_enter(page[cpu], false);
	for (u32 i = 0; i < ROUNDS && l2_called(&r, i); i++) {
		done[cpu]++;
		r = ev_resume_past(page[cpu], &r);
	}
	ev_off();
}

static void at_once(void)
{
	cpu_run(1, rounds, 1);
	rounds(0);
	cpu_wait(1);
	expect_eq("rounds-on-cpu-0", done[0], ROUNDS);
	expect_eq("rounds-on-cpu-1", done[1], ROUNDS);
}

void test_main(void)
{
	if (hv_available() && vmx_available()) {
		hv_start();
		page[0] = page_alloc();
		page[1] = page_alloc();
		cpu_start_all();
		moves();
		at_once();
	}
	report_done();
}
