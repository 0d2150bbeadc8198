/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest with its whole virtual platform on the host: the devices are real, what they need of L0 is played
 * here (time, timers, requests to vCPUs, memory). Included by one test file each, which links all of hv/dev
 * but host_clock.c.
 */
#ifndef NIDUS_TESTS_UNIT_FAKE_PLATFORM_H
#define NIDUS_TESTS_UNIT_FAKE_PLATFORM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/guest_console.h"
#include "hv/vcpu.h"
#include "mm/guest_copy.h"
#include "mm/palloc.h"

#define HZ 1000000000ull /* of the fake TSC: a tick is a nanosecond */
#define US 1000ull
#define MS 1000000ull

u64 tsc_hz = HZ;
static u64 now = 5 * HZ;
static s64 host_seconds = 1000000000; /* 2001-09-09 01:46:40 UTC */
static struct guest guest;
static struct vcpu vcpus[VCPUS_MAX];
static struct timer *timers;
static unsigned timer_shots;
static char printed[256];
static size_t printed_size;
static bool hide_x2apic;
static u8 low_memory[1024 * 1024];

const unsigned char dsdt_aml[] = {'D', 'S', 'D', 'T', 10, 0, 0, 0, 2, 0};
const size_t dsdt_aml_size = sizeof(dsdt_aml);

u64 machine_clock(void)
{
	return now;
}

s64 host_rtc_seconds(void)
{
	return host_seconds;
}

void timer_cancel(struct timer *t)
{
	for (struct timer **p = &timers; *p; p = &(*p)->next) {
		if (*p == t) {
			*p = t->next;
			break;
		}
	}
	t->cpu = NULL;
}

void timer_arm(struct timer *t, u64 deadline)
{
	static struct cpu *const here = (struct cpu *)16;

	timer_cancel(t);
	t->deadline = deadline;
	t->cpu = here;
	t->next = timers;
	timers = t;
}

/* Let time pass; timers fire in order. */
static inline void pass(u64 ticks)
{
	u64 end = now + ticks;

	for (;;) {
		struct timer *first = NULL;

		for (struct timer *t = timers; t; t = t->next)
			if (t->deadline <= end && (!first || t->deadline < first->deadline))
				first = t;
		if (!first)
			break;
		now = MAX(now, first->deadline);
		timer_cancel(first);
		timer_shots++;
		first->fn(first->arg);
	}
	now = end;
}

void vcpu_request(struct vcpu *v, u32 bits)
{
	v->pending |= bits;
}

void vcpu_nmi(struct vcpu *v)
{
	v->nmis_sent++;
	v->pending |= PEND_NMI;
}

struct cpuid vcpu_cpuid(struct vcpu *v, u32 leaf, u32 sub)
{
	(void)v;
	(void)sub;
	if (leaf == 0x80000008)
		return (struct cpuid){.eax = 40};
	return (struct cpuid){.ecx = hide_x2apic ? 0 : BIT32(21)};
}

void guest_end(struct guest *g, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(g->reason, sizeof(g->reason), fmt, ap);
	va_end(ap);
}

void guest_exit(struct guest *g, u32 code)
{
	guest_end(g, "exit %u", code);
}

void guest_reset(struct guest *g)
{
	strcpy(g->reason, "reset");
}

void guest_console_putc(struct guest *g, u8 c)
{
	(void)g;
	if (printed_size < sizeof(printed) - 1)
		printed[printed_size++] = (char)c;
}

void *pages_alloc(unsigned order)
{
	return calloc(1, PAGE_SIZE << order);
}

void *page_alloc(void)
{
	return pages_alloc(0);
}

void page_free(void *p)
{
	free(p);
}

bool guest_write(const struct l1mem *m, gpa_t gpa, const void *buf, size_t n)
{
	(void)m;
	if (gpa.v > sizeof(low_memory) || n > sizeof(low_memory) - gpa.v)
		return false;
	memcpy(low_memory + gpa.v, buf, n);
	return true;
}

void l1mem_memmap(const struct l1mem *m, struct memmap *out)
{
	*out = (struct memmap){.count = 2, .range = {{0, L1_EBDA, MEM_RAM}, {MIB, m->low, MEM_RAM}}};
}

/* A fresh machine with `n` vCPUs just after power-on. */
static inline void power_on(unsigned n)
{
	guest.nr_vcpus = guest.desc.vcpus = n;
	guest.mem.ram = guest.mem.low = 512 * MIB;
	for (unsigned i = 0; i < n; i++) {
		vcpus[i] = (struct vcpu){.guest = &guest, .index = i};
		vcpus[i].lapic = vlapic_create(&vcpus[i]);
		guest.vcpu[i] = &vcpus[i];
		vlapic_reset(&vcpus[i], false);
	}
	assert_non_null(machine_create(&guest));
	for (unsigned i = 0; i < n; i++)
		vcpus[i].pending = 0;
	guest.reason[0] = 0;
	timer_shots = 0;
	memset(printed, 0, sizeof(printed));
	printed_size = 0;
}

static inline void power_off(void)
{
	timers = NULL;
	for (unsigned i = 0; i < guest.nr_vcpus; i++) {
		vlapic_destroy(guest.vcpu[i]->lapic);
		guest.vcpu[i] = NULL;
	}
	free(guest.machine);
	guest.machine = NULL;
}

static inline int start_one(void **state)
{
	(void)state;
	power_on(1);
	return 0;
}

static inline int start_four(void **state)
{
	(void)state;
	power_on(4);
	return 0;
}

static inline int stop(void **state)
{
	(void)state;
	power_off();
	return 0;
}

#define TEST_ONE(f)  cmocka_unit_test_setup_teardown(f, start_one, stop)
#define TEST_FOUR(f) cmocka_unit_test_setup_teardown(f, start_four, stop)

static inline void outb(u16 port, u8 value)
{
	machine_out(&vcpus[0], port, 1, value);
}

static inline u8 inb(u16 port)
{
	return (u8)machine_in(&vcpus[0], port, 1);
}

/* What requests a vCPU got since the last look. */
static inline u32 take_pending(unsigned i)
{
	u32 bits = vcpus[i].pending;

	vcpus[i].pending = 0;
	return bits;
}

/* Drive a line as a device does. */
static inline void line(unsigned gsi, bool level)
{
	spin_lock(&guest.machine->lock);
	machine_irq(guest.machine, gsi, level);
	spin_unlock(&guest.machine->lock);
}

#endif
