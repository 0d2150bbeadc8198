/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interprocessor interrupts between four CPUs in every form: fixed, logical, shorthands, NMI, INIT and SIPI;
 * xAPIC, then x2APIC. A form is right when exactly the CPUs it names get it, once. SDM "Issuing
 * Interprocessor Interrupts".
 */
#include "l1.h"

const char test_title[] = "interprocessor interrupts";

#define CPUS   4
#define VECTOR 0x71

static volatile u32 hits[CPUS], nmis[CPUS];
static volatile u32 ldr[CPUS];
static const char *mode;

static void on_ipi(struct regs *r)
{
	(void)r;
	hits[cpu_index()]++;
	lapic_eoi();
}

static void on_nmi(struct regs *r)
{
	(void)r;
	nmis[cpu_index()]++;
}

static void clear(void)
{
	for (u32 i = 0; i < CPUS; i++)
		hits[i] = nmis[i] = 0;
}

static u64 sum(const volatile u32 *counts, bool packed)
{
	u64 v = 0;

	for (u32 i = 0; i < CPUS; i++)
		v = packed ? v | (u64)counts[i] << 8 * i : v + counts[i];
	return v;
}

/* Time for the last CPU to take it, and then some for one that should not have come. */
static void settle(const volatile u32 *counts, u64 want, bool packed)
{
	u64 end = rdtsc() + us_to_tsc(100000);

	sti();
	while (sum(counts, packed) != want && rdtsc() < end)
		cpu_pause();
	delay_us(300);
	cli();
}

static const char *named(const char *what)
{
	static char name[48];

	format_text(name, sizeof(name), "%s-%s", mode, what);
	return name;
}

static const char *named_cpu(const char *what, u32 cpu)
{
	static char name[48];

	format_text(name, sizeof(name), "%s-%s-%u", mode, what, cpu);
	return name;
}

/* want: one byte a CPU. */
static void send(const char *what, u32 dest, u32 low, u64 want)
{
	clear();
	lapic_ipi(dest, low | ICR_ASSERT | VECTOR);
	settle(hits, want, true);
	expect_eq(named(what), sum(hits, true), want);
}

static void send_nmi(const char *what, u32 dest, u32 low, u64 want)
{
	clear();
	lapic_ipi(dest, low | ICR_ASSERT | ICR_NMI);
	settle(nmis, want, true);
	expect_eq(named(what), sum(nmis, true), want);
}

static void shared_forms(void)
{
	send("fixed-1", cpus[1].apic_id, ICR_FIXED, 0x100);
	send("fixed-3", cpus[3].apic_id, ICR_FIXED, 0x1000000);
	send("fixed-own-id", cpus[0].apic_id, ICR_FIXED, 1);
	send("self", 0, ICR_SELF, 1);
	send("all-but-self", 0, ICR_OTHERS, 0x01010100);
	send("all", 0, ICR_ALL, 0x01010101);
	send("nobody", 0x77, ICR_FIXED, 0);
	send_nmi("nmi-2", cpus[2].apic_id, 0, 0x10000);
	send_nmi("nmi-others", 0, ICR_OTHERS, 0x01010100);
}

static void set_flat_id(u64 bit)
{
	lapic_write(APIC_DFR, 0xffffffff);
	lapic_write(APIC_LDR, (u32)(1u << bit << 24));
}

static void set_cluster_id(u64 cpu)
{
	lapic_write(APIC_DFR, 0x0fffffff);
	lapic_write(APIC_LDR, (u32)((cpu / 2) << 4 | 1u << cpu % 2) << 24);
}

static void on_each(cpu_fn *fn)
{
	fn(0);
	for (u32 i = 1; i < CPUS; i++) {
		cpu_run(i, fn, i);
		cpu_wait(i);
	}
}

static void xapic_forms(void)
{
	send("broadcast-ff", 0xff, ICR_FIXED, 0x01010101);
	on_each(set_flat_id);
	send("flat-2", 1u << 2, ICR_FIXED | ICR_LOGICAL, 0x10000);
	send("flat-1-and-3", 0xa, ICR_FIXED | ICR_LOGICAL, 0x01000100);
	send("flat-nobody", 0x80, ICR_FIXED | ICR_LOGICAL, 0);
	clear();
	lapic_ipi(0xe, ICR_LOWEST | ICR_LOGICAL | ICR_ASSERT | VECTOR);
	settle(hits, 1, false);
	expect_eq(named("lowest-exactly-one"), sum(hits, false), 1);
	expect_eq(named("lowest-among-named"), hits[0], 0);
	on_each(set_cluster_id);
	send("cluster-1-member-0", 0x11, ICR_FIXED | ICR_LOGICAL, 0x10000);
	send("cluster-0-both", 0x03, ICR_FIXED | ICR_LOGICAL, 0x0101);
	on_each(set_flat_id);
}

static void enter_x2apic(u64 unused)
{
	(void)unused;
	lapic_enter_x2apic();
	lapic_enable();
	ldr[cpu_index()] = lapic_read(APIC_LDR);
}

static void x2apic_forms(void)
{
	u32 id = cpus[3].apic_id;

	for (u32 i = 0; i < CPUS; i++)
		expect_eq(named_cpu("ldr", i), ldr[i],
			  (cpus[i].apic_id >> 4) << 16 | 1u << (cpus[i].apic_id & 15));
	send("broadcast-ffffffff", 0xffffffff, ICR_FIXED, 0x01010101);
	send("logical-3", (id >> 4) << 16 | 1u << (id & 15), ICR_FIXED | ICR_LOGICAL, 0x01000000);
	send("logical-two", 1u << cpus[1].apic_id | 1u << cpus[3].apic_id, ICR_FIXED | ICR_LOGICAL,
	     0x01000100);
	send("logical-far-cluster", 0xffff0001, ICR_FIXED | ICR_LOGICAL, 0);
	send("unknown-id", 0xfffffffe, ICR_FIXED, 0);
}

/* SIPI alone does nothing to a running CPU; INIT stops it; INIT and SIPI start it anew. */
static void init_and_sipi(void)
{
	u32 before = cpus[2].starts;

	lapic_ipi(cpus[2].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	delay_us(2000);
	expect_eq("sipi-without-init", cpus[2].starts, before);
	cpus[2].online = false;
	lapic_ipi(cpus[2].apic_id, ICR_INIT | ICR_ASSERT);
	delay_us(2000);
	send("init-stops", cpus[2].apic_id, ICR_FIXED, 0);
	lapic_ipi(cpus[2].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	expect_true("sipi-after-init", cpu_wait_online(2, 500000));
	delay_us(500);
	lapic_ipi(cpus[2].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	delay_us(2000);
	expect_eq("second-sipi-ignored", cpus[2].starts, before + 1);
	send("alive-again", cpus[2].apic_id, ICR_FIXED, 0x10000);
	/* Without a pause: the second of the two must not be lost. */
	cpus[2].online = false;
	lapic_ipi(cpus[2].apic_id, ICR_INIT | ICR_ASSERT);
	lapic_ipi(cpus[2].apic_id, ICR_STARTUP | ICR_ASSERT | 8);
	expect_true("sipi-right-behind-init", cpu_wait_online(2, 500000));
	send("alive-once-more", cpus[2].apic_id, ICR_FIXED, 0x10000);
}

void test_main(void)
{
	mode = "xapic";
	trap_handle(VECTOR, on_ipi);
	trap_handle(VEC_NMI, on_nmi);
	expect_eq("cpus-listed", cpu_count, CPUS);
	if (!expect_eq("cpus-online", cpu_start_all(), CPUS))
		return;
	shared_forms();
	xapic_forms();
	init_and_sipi();
	if (!cpu_has_x2apic())
		return;
	on_each(enter_x2apic);
	mode = "x2apic";
	shared_forms();
	x2apic_forms();
}
