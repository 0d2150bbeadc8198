/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC: priorities, service, register rules, modes, who gets an IPI. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

static u32 get(unsigned cpu, u32 reg)
{
	return (u32)machine_mmio_read(&vcpus[cpu], GPA(L1_LAPIC + reg), 4);
}

static void set(unsigned cpu, u32 reg, u32 value)
{
	machine_mmio_write(&vcpus[cpu], GPA(L1_LAPIC + reg), 4, value);
}

static void enable_all(void)
{
	for (unsigned i = 0; i < guest.nr_vcpus; i++)
		set(i, APIC_SVR, 0x1ff);
}

static void enable_x2apic(unsigned cpu)
{
	assert_true(vlapic_msr_write(&vcpus[cpu], MSR_APIC_BASE, vcpus[cpu].apic_base | APIC_BASE_X2APIC));
}

static void send(u32 dest, bool logical, u8 mode, u8 vector)
{
	apic_deliver(&guest, &(struct apic_message){
				     .dest = dest, .logical = logical, .mode = mode, .vector = vector});
}

/* Bit set of the vCPUs that hold `vector` in IRR; forgets it. */
static u32 got(u8 vector)
{
	u32 cpus = 0;

	for (unsigned i = 0; i < guest.nr_vcpus; i++) {
		if (get(i, APIC_IRR + (vector >> 5) * 0x10u) & BIT32(vector & 31)) {
			cpus |= BIT32(i);
			assert_int_equal(take_pending(i), PEND_INTR);
			vlapic_ack(&vcpus[i], vector);
			vlapic_eoi(&vcpus[i]);
		}
	}
	return cpus;
}

/* The boot CPU wakes up in virtual-wire mode, as a BIOS leaves it; the others masked and disabled. */
static void test_power_on(void **state)
{
	(void)state;
	assert_int_equal(vlapic_base(&vcpus[0]), L1_LAPIC | APIC_BASE_ENABLE | APIC_BASE_BSP);
	assert_int_equal(vlapic_base(&vcpus[1]), L1_LAPIC | APIC_BASE_ENABLE);
	assert_int_equal(get(1, APIC_ID), 1u << 24);
	assert_int_equal(get(0, APIC_VERSION), 0x50014);
	assert_int_equal(get(0, APIC_SVR), 0x1ff);
	assert_int_equal(get(1, APIC_SVR), 0xff);
	assert_int_equal(get(1, APIC_LVT_LINT0), LVT_MASKED);
	assert_int_equal(get(0, APIC_DFR), 0xffffffff);
	assert_true(vlapic_accepts_extint(&vcpus[0]));
	assert_false(vlapic_accepts_extint(&vcpus[1]));
}

/* Higher vectors first; a vector in service holds back its class and those below. */
static void test_priority(void **state)
{
	struct vcpu *v = &vcpus[0];

	(void)state;
	assert_int_equal(vlapic_pending(v), -1);
	send(0, false, MODE_FIXED, 0x35);
	send(0, false, MODE_FIXED, 0x91);
	send(0, false, MODE_FIXED, 0x92);
	assert_int_equal(vlapic_pending(v), 0x92);
	vlapic_ack(v, 0x92);
	assert_int_equal(get(0, APIC_PPR), 0x90);
	assert_int_equal(vlapic_pending(v), -1);
	assert_int_equal(vlapic_threshold(v), 0); /* it is not TPR that holds 0x91 back */
	send(0, false, MODE_FIXED, 0xa0);
	assert_int_equal(vlapic_pending(v), 0xa0);
	vlapic_ack(v, 0xa0);
	take_pending(0);
	set(0, APIC_EOI, 0); /* ends 0xa0 */
	assert_int_equal(take_pending(0), PEND_INTR);
	assert_int_equal(vlapic_pending(v), -1);
	set(0, APIC_EOI, 0); /* ends 0x92 */
	assert_int_equal(vlapic_pending(v), 0x91);
	vlapic_ack(v, 0x91);
	set(0, APIC_EOI, 0);
	assert_int_equal(vlapic_pending(v), 0x35);
	vlapic_ack(v, 0x35);
	assert_int_equal(get(0, APIC_ISR + 0x10), BIT32(0x35 - 32));
	set(0, APIC_EOI, 0);
	set(0, APIC_EOI, 0); /* nothing in service: no effect */
	assert_int_equal(get(0, APIC_ISR + 0x10), 0);
	assert_int_equal(vlapic_pending(v), -1);
	assert_int_equal(vlapic_threshold(v), 0);
}

/* The highest vector of a 256-bit register, or -1. */
static int highest_in(u32 base)
{
	for (int vector = 255; vector >= 0; vector--)
		if (get(0, base + (u32)(vector >> 5) * 0x10) & BIT32(vector & 31))
			return vector;
	return -1;
}

/* Any requests, TPR and services in their order: what is taken is the highest request above both, and only
 * that moves from IRR to ISR. */
static void test_take(void **state)
{
	struct vcpu *v = &vcpus[0];

	(void)state;
	srand(7);
	for (unsigned i = 0; i < 20000; i++) {
		int request, served, vector;

		if (rand() % 3 == 0)
			send(0, false, MODE_FIXED, (u8)(16 + rand() % 240));
		if (rand() % 8 == 0)
			set(0, APIC_TPR, (u32)rand() & 0xff);
		if (rand() % 4 == 0)
			set(0, APIC_EOI, 0);
		v->apicv = rand() & 1; /* the summaries are not looked at */
		request = highest_in(APIC_IRR);
		served = highest_in(APIC_ISR);
		vector = request >> 4 > (int)(get(0, APIC_TPR) >> 4) && request >> 4 > served >> 4 ? request
												   : -1;
		assert_int_equal(vlapic_pending(v), vector);
		assert_int_equal(vlapic_take(v), vector);
		if (vector < 0)
			continue;
		assert_int_equal(highest_in(APIC_ISR), vector);
		assert_true(highest_in(APIC_IRR) < vector);
		assert_int_equal(get(0, APIC_PPR) >> 4, vector >> 4);
	}
	v->apicv = false;
	set(0, APIC_TPR, 0);
	while (vlapic_take(v) >= 0 || highest_in(APIC_ISR) >= 0)
		set(0, APIC_EOI, 0);
	assert_int_equal(highest_in(APIC_IRR), -1);
	assert_false(vlapic_requested(v));
	take_pending(0);
}

/* What the processor is told while it serves the APIC: new requests raise RVI, what software changed is taken
 * from the page. */
static void test_status(void **state)
{
	struct vcpu *v = &vcpus[0];

	(void)state;
	v->apicv = true;
	send(0, false, MODE_FIXED, 0x35);
	assert_int_equal(vlapic_status(v, 0), 0x35); /* after the reset: all of the page */
	assert_int_equal(vlapic_status(v, 0x35), 0x35);
	send(0, false, MODE_FIXED, 0x31);
	assert_int_equal(vlapic_status(v, 0x9135), 0x9135); /* lower, and SVI is the processor's */
	send(0, false, MODE_FIXED, 0xa2);
	assert_int_equal(vlapic_status(v, 0x9135), 0x91a2);
	vlapic_ack(v, 0xa2);
	assert_int_equal(vlapic_status(v, 0x91a2), 0xa235);
	vlapic_eoi(v);
	assert_int_equal(vlapic_status(v, 0xa235), 0x35);
	take_pending(0);
	v->apicv = false;
}

/* Only a vector that turns level-triggered, or edge-triggered again, concerns the EOI-exit bitmap. */
static void test_levels_moved(void **state)
{
	struct vcpu *v = &vcpus[0];
	struct apic_message msg = {.dest = 0, .vector = 0x51, .level = true};

	(void)state;
	assert_true(vlapic_levels_moved(v)); /* the reset */
	send(0, false, MODE_FIXED, 0x51);
	assert_false(vlapic_levels_moved(v));
	apic_deliver(&guest, &msg);
	assert_true(vlapic_levels_moved(v));
	assert_int_equal(vlapic_level_vectors(v, 1), BIT(0x51 - 64));
	apic_deliver(&guest, &msg);
	assert_false(vlapic_levels_moved(v));
	send(0, false, MODE_FIXED, 0x51);
	assert_true(vlapic_levels_moved(v));
	assert_int_equal(vlapic_level_vectors(v, 1), 0);
	take_pending(0);
}

/* TPR holds back its own class; PPR shows the greater of TPR and the class in service. */
static void test_tpr(void **state)
{
	struct vcpu *v = &vcpus[0];

	(void)state;
	send(0, false, MODE_FIXED, 0x47);
	vlapic_set_tpr(v, 0x40);
	assert_int_equal(vlapic_pending(v), -1);
	assert_int_equal(vlapic_threshold(v), 4);
	vlapic_set_tpr(v, 0x60);
	assert_int_equal(vlapic_threshold(v), 4);
	vlapic_set_tpr(v, 0x40);
	take_pending(0);
	set(0, APIC_TPR, 0x3f);
	assert_true(take_pending(0) & PEND_INTR);
	assert_int_equal(vlapic_tpr(v), 0x3f);
	assert_int_equal(get(0, APIC_PPR), 0x3f);
	assert_int_equal(vlapic_pending(v), 0x47);
	vlapic_ack(v, 0x47);
	assert_int_equal(get(0, APIC_PPR), 0x40);
	set(0, APIC_TPR, 0x44); /* the same class: TPR's low bits show */
	assert_int_equal(get(0, APIC_PPR), 0x44);
	set(0, APIC_TPR, 0x55);
	assert_int_equal(get(0, APIC_PPR), 0x55);
	/* The page is what VM entries use for the TPR shadow. */
	assert_int_equal(((u8 *)vlapic_page(v))[0x80], 0x55);
}

/* Software disabled: fixed interrupts are refused, NMI and INIT are not; LVT entries stay masked. */
static void test_software_disable(void **state)
{
	(void)state;
	set(0, APIC_LVT_TIMER, 0x40);
	set(0, APIC_SVR, 0xff);
	assert_int_equal(get(0, APIC_LVT_TIMER), LVT_MASKED | 0x40);
	set(0, APIC_LVT_TIMER, 0x41);
	assert_int_equal(get(0, APIC_LVT_TIMER), LVT_MASKED | 0x41);
	assert_false(vlapic_accepts_extint(&vcpus[0]));
	take_pending(0);
	send(0, false, MODE_FIXED, 0x40);
	assert_int_equal(vlapic_pending(&vcpus[0]), -1);
	assert_int_equal(take_pending(0), 0);
	send(0, false, MODE_NMI, 0);
	send(0, false, MODE_INIT, 0);
	assert_int_equal(take_pending(0), PEND_NMI | PEND_INIT);
}

/* Reserved registers read zero and count as errors; ESR shows them after a write. */
static void test_errors(void **state)
{
	(void)state;
	set(0, APIC_LVT_ERROR, 0xfe);
	assert_int_equal(get(0, 0x40), 0);
	assert_int_equal(get(0, APIC_ESR), 0);
	set(0, APIC_ESR, 0);
	assert_int_equal(get(0, APIC_ESR), ESR_ADDRESS);
	assert_int_equal(vlapic_pending(&vcpus[0]), 0xfe);
	set(0, APIC_ESR, 0);
	assert_int_equal(get(0, APIC_ESR), 0);
	/* A vector below 16, sent to itself with an illegal error vector: two errors, no end of them. */
	set(0, APIC_LVT_ERROR, 0x0f);
	set(0, APIC_ICR, 0x40003);
	set(0, APIC_ESR, 0);
	assert_int_equal(get(0, APIC_ESR), ESR_SEND_VECTOR | ESR_RECEIVE_VECTOR);
	/* Reads of bytes 4-15 and far offsets are harmless. */
	for (u32 offset = 0; offset < PAGE_SIZE; offset += 4)
		get(0, offset);
}

static void test_write_masks(void **state)
{
	static const struct {
		u32 reg, want;
	} rows[] = {
		{APIC_ID, 0},
		{APIC_TPR, 0xff},
		{APIC_LDR, 0xff000000},
		{APIC_DFR, 0xffffffff},
		{APIC_LVT_TIMER, 0x700ff},
		{APIC_LVT_THERMAL, 0x107ff},
		{APIC_LVT_PERF, 0x107ff},
		{APIC_LVT_LINT0, 0x1a7ff},
		{APIC_LVT_LINT1, 0x1a7ff},
		{APIC_LVT_ERROR, 0x100ff},
		{APIC_TIMER_DIVIDE, 0xb},
		{APIC_ICR2, 0xff000000},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		set(0, rows[i].reg, 0xffffffff);
		assert_int_equal(get(0, rows[i].reg), rows[i].want);
	}
}

/* Physical, flat and cluster logical destinations, shorthands. */
static void test_destinations(void **state)
{
	(void)state;
	enable_all();
	send(2, false, MODE_FIXED, 0x40);
	assert_int_equal(got(0x40), 0x4);
	send(7, false, MODE_FIXED, 0x40); /* nobody */
	send(0xfffffffe, false, MODE_FIXED, 0x40);
	assert_int_equal(got(0x40), 0);
	send(APIC_BROADCAST, false, MODE_FIXED, 0x40);
	assert_int_equal(got(0x40), 0xf);
	for (unsigned i = 0; i < 4; i++)
		set(i, APIC_LDR, 1u << (24 + i));
	send(0x0a, true, MODE_FIXED, 0x41);
	assert_int_equal(got(0x41), 0xa);
	send(0x80, true, MODE_FIXED, 0x41);
	assert_int_equal(got(0x41), 0);
	for (unsigned i = 0; i < 4; i++) {
		set(i, APIC_DFR, 0);
		set(i, APIC_LDR, (i / 2 << 4 | 1u << i % 2) << 24);
	}
	send(0x11, true, MODE_FIXED, 0x42); /* cluster 1, member 0 */
	assert_int_equal(got(0x42), 0x4);
	send(0xf2, true, MODE_FIXED, 0x42); /* every cluster, member 1 */
	assert_int_equal(got(0x42), 0xa);
	send(0x23, true, MODE_FIXED, 0x42);
	assert_int_equal(got(0x42), 0);
}

static void test_icr(void **state)
{
	(void)state;
	enable_all();
	set(0, APIC_ICR2, 3u << 24);
	set(0, APIC_ICR, 0x50);
	assert_int_equal(got(0x50), 0x8);
	assert_int_equal(get(0, APIC_ICR), 0x50);
	set(1, APIC_ICR, 0x40051); /* self */
	assert_int_equal(got(0x51), 0x2);
	set(1, APIC_ICR, 0x80052); /* all */
	assert_int_equal(got(0x52), 0xf);
	set(1, APIC_ICR, 0xc0053); /* all but self */
	assert_int_equal(got(0x53), 0xd);
	set(0, APIC_ICR2, 0xffu << 24);
	set(0, APIC_ICR, 0x54);
	assert_int_equal(got(0x54), 0xf);
	set(0, APIC_ICR2, 1u << 24);
	set(0, APIC_ICR, 0x4500); /* INIT */
	assert_int_equal(take_pending(1), PEND_INIT);
	set(0, APIC_ICR, 0x8500); /* INIT level de-assert: nothing */
	assert_int_equal(take_pending(1), 0);
	set(0, APIC_ICR, 0x469a); /* SIPI */
	assert_int_equal(take_pending(1), PEND_SIPI);
	assert_int_equal(vcpus[1].sipi_vector, 0x9a);
	set(0, APIC_ICR, 0x4400); /* NMI */
	assert_int_equal(take_pending(1), PEND_NMI);
	for (u32 mode = 0; mode < 8; mode++)
		set(0, APIC_ICR, 0xc0000 | mode << 8); /* every form, vector 0: no harm */
}

/* Lowest priority: the one with the lowest TPR; among equals not always the same. */
static void test_lowest_priority(void **state)
{
	u32 all = 0, one;

	(void)state;
	enable_all();
	for (unsigned i = 0; i < 4; i++)
		set(i, APIC_TPR, i == 2 ? 0x10 : 0x20);
	send(APIC_BROADCAST, false, MODE_LOWEST, 0x60);
	assert_int_equal(got(0x60), 0x4);
	set(2, APIC_TPR, 0x20);
	for (unsigned n = 0; n < 8; n++) {
		send(APIC_BROADCAST, false, MODE_LOWEST, 0x60);
		one = got(0x60);
		assert_int_equal(one & (one - 1), 0);
		all |= one;
	}
	assert_int_equal(all, 0xf);
}

/* SDM "x2APIC State Transitions". */
static void test_base_transitions(void **state)
{
	struct vcpu *v = &vcpus[0];
	u64 xapic = v->apic_base, x2apic = xapic | APIC_BASE_X2APIC, off = xapic & ~APIC_BASE_ENABLE;
	u64 value;

	(void)state;
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, xapic | 1));
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, xapic | BIT(9)));
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, xapic | BIT(40)));
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, off | APIC_BASE_X2APIC));
	hide_x2apic = true;
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, x2apic));
	hide_x2apic = false;
	take_pending(0);
	assert_true(vlapic_msr_write(v, MSR_APIC_BASE, x2apic));
	assert_int_equal(take_pending(0), PEND_INTR); /* the gate must see each change of mode */
	assert_true(vlapic_msr_read(v, MSR_APIC_BASE, &value));
	assert_int_equal(value, x2apic);
	assert_int_equal(get(0, APIC_VERSION), 0xffffffff); /* the page is gone */
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, xapic));
	assert_true(vlapic_msr_write(v, MSR_APIC_BASE, off));
	assert_int_equal(take_pending(0), PEND_INTR);
	assert_true(vlapic_msr_write(v, MSR_APIC_BASE, xapic));
	assert_int_equal(take_pending(0), PEND_INTR);
	assert_true(vlapic_msr_write(v, MSR_APIC_BASE, off));
	assert_true(vlapic_accepts_extint(v));
	assert_false(vlapic_msr_write(v, MSR_APIC_BASE, x2apic));
	assert_true(vlapic_msr_write(v, MSR_APIC_BASE, xapic));
	assert_int_equal(get(0, APIC_SVR), 0xff); /* as after INIT */
}

/* An APIC that is off hears nothing. */
static void test_off(void **state)
{
	(void)state;
	assert_true(vlapic_msr_write(&vcpus[1], MSR_APIC_BASE, L1_LAPIC));
	take_pending(1);
	send(1, false, MODE_NMI, 0);
	send(APIC_BROADCAST, false, MODE_FIXED, 0x40);
	assert_int_equal(take_pending(1), 0);
	assert_int_equal(vlapic_pending(&vcpus[1]), -1);
	assert_false(vlapic_accepts_extint(&vcpus[1]));
}

/* Every MSR of the range: defined ones answer, reserved ones fault, nothing else happens. */
static void test_x2apic_range(void **state)
{
	struct vcpu *v = &vcpus[2];
	unsigned readable = 0;
	u64 value;

	(void)state;
	for (u32 msr = 0x800; msr < 0x900; msr++)
		assert_false(vlapic_msr_read(v, msr, &value)); /* still xAPIC mode */
	enable_x2apic(2);
	for (u32 msr = 0x800; msr < 0x900; msr++)
		readable += vlapic_msr_read(v, msr, &value);
	/* ID, version, TPR, PPR, LDR, SVR, 24 of ISR/TMR/IRR, ESR, ICR, 6 LVT, initial, current, divide. */
	assert_int_equal(readable, 6 + 24 + 2 + 6 + 3);
	assert_false(vlapic_msr_read(v, 0x80b, &value));
	assert_false(vlapic_msr_read(v, 0x80e, &value));
	assert_false(vlapic_msr_read(v, 0x831, &value));
	assert_false(vlapic_msr_read(v, 0x83f, &value));
	assert_true(vlapic_msr_read(v, 0x802, &value));
	assert_int_equal(value, 2);
	assert_true(vlapic_msr_read(v, 0x80d, &value));
	assert_int_equal(value, 0x4);
}

static void test_x2apic_writes(void **state)
{
	static const struct {
		u32 msr;
		u64 value;
		bool ok;
	} rows[] = {
		{0x802, 2, false},       {0x808, 0x100, false},  {0x808, BIT(32), false},
		{0x808, 0x20, true},     {0x80b, 1, false},      {0x80b, 0, true},
		{0x80d, 1, false},       {0x80f, 0x1000, false}, {0x80f, 0x1ff, true},
		{0x828, 1, false},       {0x828, 0, true},       {0x830, 0x40000ull << 2, false},
		{0x830, 0x10040, false}, {0x830, 0x2040, false}, {0x830, 0x41040, true},
		{0x832, 0x80000, false}, {0x832, 0x10040, true}, {0x837, 0x400, false},
		{0x838, BIT(32), false}, {0x838, 0, true},       {0x839, 0, false},
		{0x83e, 4, false},       {0x83e, 0xb, true},     {0x83f, 0x100, false},
		{0x83f, 0x77, true},     {0x8ff, 0, false},
	};

	(void)state;
	enable_x2apic(0);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(vlapic_msr_write(&vcpus[0], rows[i].msr, rows[i].value), rows[i].ok);
	take_pending(0);
	assert_int_equal(vlapic_pending(&vcpus[0]), 0x77);
}

/* 32-bit destinations: physical, cluster, broadcast; 255 is an id like any other. */
static void test_x2apic_ipi(void **state)
{
	(void)state;
	enable_all();
	for (unsigned i = 0; i < 4; i++)
		enable_x2apic(i);
	for (unsigned i = 0; i < 4; i++)
		take_pending(i);
	assert_true(vlapic_msr_write(&vcpus[0], 0x830, 3ull << 32 | 0x40));
	assert_int_equal(vcpus[3].pending, PEND_INTR);
	assert_int_equal(take_pending(1) | take_pending(2), 0);
	take_pending(3);
	assert_true(vlapic_msr_write(&vcpus[0], 0x830, 0xffull << 32 | 0x40));
	assert_true(vlapic_msr_write(&vcpus[0], 0x830, 0xfffffffeull << 32 | 0x40));
	assert_true(
		vlapic_msr_write(&vcpus[0], 0x830, 0xffff000full << 32 | 0x840)); /* a cluster nobody is in */
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(take_pending(i), 0);
	assert_true(vlapic_msr_write(&vcpus[0], 0x830, 6ull << 32 | 0x840)); /* cluster 0, members 1 and 2 */
	assert_int_equal(take_pending(0) | take_pending(3), 0);
	assert_int_equal(take_pending(1) & take_pending(2), PEND_INTR);
	assert_true(vlapic_msr_write(&vcpus[0], 0x830, 0xffffffffull << 32 | 0x400));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(take_pending(i), PEND_NMI);
}

/* INIT keeps the id and the mode. */
static void test_init(void **state)
{
	u64 value;

	(void)state;
	enable_x2apic(1);
	assert_true(vlapic_msr_write(&vcpus[1], 0x80f, 0x1ff));
	assert_true(vlapic_msr_write(&vcpus[1], 0x83f, 0x40));
	vlapic_reset(&vcpus[1], true);
	assert_int_equal(vlapic_pending(&vcpus[1]), -1);
	assert_true(vlapic_msr_read(&vcpus[1], 0x802, &value));
	assert_int_equal(value, 1);
	assert_true(vlapic_msr_read(&vcpus[1], 0x80d, &value));
	assert_int_equal(value, 2);
	assert_true(vlapic_msr_read(&vcpus[1], 0x80f, &value));
	assert_int_equal(value, 0xff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FOUR(test_power_on),
		TEST_FOUR(test_priority),
		TEST_FOUR(test_take),
		TEST_FOUR(test_tpr),
		TEST_FOUR(test_software_disable),
		TEST_FOUR(test_errors),
		TEST_FOUR(test_write_masks),
		TEST_FOUR(test_destinations),
		TEST_FOUR(test_icr),
		TEST_FOUR(test_lowest_priority),
		TEST_FOUR(test_base_transitions),
		TEST_FOUR(test_off),
		TEST_FOUR(test_x2apic_range),
		TEST_FOUR(test_x2apic_writes),
		TEST_FOUR(test_x2apic_ipi),
		TEST_FOUR(test_init),
		TEST_FOUR(test_status),
		TEST_FOUR(test_levels_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
