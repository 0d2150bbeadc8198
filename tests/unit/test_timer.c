/* SPDX-License-Identifier: Apache-2.0 */
/* Deadline queues of two CPUs; the hardware timer is played here and counts how often it is written. */
/* SOURCES: hv/timer.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <asm/prctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "hv/cpu.h"
#include "hv/lapic.h"
#include "hv/x86.h"

#define FUTURE (1ull << 62) /* no TSC gets there */

static struct cpu cpu[2];
static u64 hardware; /* what the local APIC timer was last set to */
static unsigned writes;
static struct timer t[4];
static char fired[64];

void lapic_timer_set(u64 deadline)
{
	hardware = deadline;
	writes++;
}

/* this_cpu() reads %gs:0, which a Linux program does not use on x86-64. */
static void be_cpu(unsigned i)
{
	cpu[i].self = &cpu[i];
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu[i]), 0);
}

static void note(void *arg)
{
	strcat(fired, arg);
}

static int fresh(void **state)
{
	static char names[][2] = {"a", "b", "c", "d"};

	(void)state;
	memset(cpu, 0, sizeof(cpu));
	be_cpu(0);
	hardware = writes = 0;
	fired[0] = '\0';
	for (unsigned i = 0; i < 4; i++)
		t[i] = (struct timer){.fn = note, .arg = names[i]};
	return 0;
}

static void due_timers_fire_in_order_and_once(void **state)
{
	(void)state;
	timer_arm(&t[0], 300);
	timer_arm(&t[1], 100);
	timer_arm(&t[2], FUTURE);
	timer_arm(&t[3], 200);
	timer_run();
	assert_string_equal(fired, "bda");
	assert_null(t[0].cpu);
	assert_ptr_equal(t[2].cpu, &cpu[0]);
	assert_int_equal(hardware, FUTURE);
	timer_run();
	assert_string_equal(fired, "bda");
}

/* An exit pays nothing for timers: the hardware is written only when the first deadline changes. */
static void hardware_is_written_for_the_first_only(void **state)
{
	(void)state;
	timer_arm(&t[0], FUTURE + 100);
	assert_int_equal(writes, 1);
	timer_arm(&t[1], FUTURE + 200);
	assert_int_equal(writes, 1);
	timer_arm(&t[2], FUTURE);
	assert_int_equal(writes, 2);
	assert_int_equal(hardware, FUTURE);
	assert_int_equal(cpu[0].timers.armed, hardware);
	timer_cancel(&t[2]);
	timer_cancel(&t[1]);
	assert_int_equal(writes, 2);
	timer_run(); /* the interrupt of the cancelled one finds nothing due and sets the next */
	assert_string_equal(fired, "");
	assert_int_equal(hardware, FUTURE + 100);
	assert_int_equal(cpu[0].timers.armed, hardware);
	timer_cancel(&t[0]);
	timer_run();
	assert_int_equal(cpu[0].timers.armed, 0);
}

static void cancelled_timers_do_not_fire(void **state)
{
	(void)state;
	timer_arm(&t[0], 1);
	timer_arm(&t[1], 2);
	timer_arm(&t[2], 3);
	timer_cancel(&t[1]);
	timer_cancel(&t[1]);
	timer_cancel(&t[3]); /* never armed */
	timer_run();
	assert_string_equal(fired, "ac");
}

static void rearming_moves(void **state)
{
	(void)state;
	timer_arm(&t[0], 1);
	timer_arm(&t[1], 2);
	timer_arm(&t[0], 3);
	timer_run();
	assert_string_equal(fired, "ba");
}

static void a_timer_moves_to_the_cpu_that_arms_it(void **state)
{
	(void)state;
	timer_arm(&t[0], 1);
	be_cpu(1);
	timer_arm(&t[0], 2);
	assert_ptr_equal(t[0].cpu, &cpu[1]);
	assert_null(cpu[0].timers.first);
	be_cpu(0);
	timer_run();
	assert_string_equal(fired, "");
	be_cpu(1);
	timer_run();
	assert_string_equal(fired, "a");
}

static void cancel_reaches_another_cpu(void **state)
{
	(void)state;
	timer_arm(&t[0], 1);
	be_cpu(1);
	timer_cancel(&t[0]);
	be_cpu(0);
	timer_run();
	assert_string_equal(fired, "");
}

static unsigned again;

static void rearm_self(void *arg)
{
	strcat(fired, "r");
	if (++again < 3)
		timer_arm(arg, again);
}

/* A callback may arm its own timer and cancel others. */
static void callbacks_may_use_timers(void **state)
{
	(void)state;
	again = 0;
	t[0].fn = rearm_self;
	t[0].arg = &t[0];
	timer_arm(&t[0], 1);
	timer_run();
	assert_string_equal(fired, "rrr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(due_timers_fire_in_order_and_once, fresh),
		cmocka_unit_test_setup(hardware_is_written_for_the_first_only, fresh),
		cmocka_unit_test_setup(cancelled_timers_do_not_fire, fresh),
		cmocka_unit_test_setup(rearming_moves, fresh),
		cmocka_unit_test_setup(a_timer_moves_to_the_cpu_that_arms_it, fresh),
		cmocka_unit_test_setup(cancel_reaches_another_cpu, fresh),
		cmocka_unit_test_setup(callbacks_may_use_timers, fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
