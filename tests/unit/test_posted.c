/* SPDX-License-Identifier: Apache-2.0 */
/* Posted-interrupt processing: every request moves once, ON goes first, nothing else changes. SDM
 * "Posted-Interrupt Processing". */
/* SOURCES: nested/posted.c mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c */
/* SOURCES: mm/l1mem.c mm/ept.c mm/memmap.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include "nested/posted.h"
#include "tests/unit/guest_ram.h"

#define RAM   (4 * MIB)
#define DESC  GPA(0x3040)
#define VAPIC GPA(0x5000)

static struct l1mem mem;

static int setup(void **state)
{
	(void)state;
	if (!mem.count)
		guest_ram_create(&mem, RAM);
	guest_zero(&mem, GPA(0x3000), PAGE_SIZE);
	guest_zero(&mem, VAPIC, PAGE_SIZE);
	return 0;
}

static volatile u64 *word(unsigned i)
{
	hpa_t hpa;

	assert_true(l1mem_translate(&mem, GPA(DESC.v + 8 * i), &hpa, NULL));
	return hpa_ptr(hpa);
}

static void post(unsigned vector)
{
	__atomic_fetch_or(word(vector / 64), BIT(vector % 64), __ATOMIC_SEQ_CST);
}

static u32 virr(unsigned vector)
{
	u32 v;

	assert_true(guest_read(&mem, GPA(VAPIC.v + 0x200 + vector / 32 * 0x10), &v, sizeof(v)));
	return v;
}

static u8 take(void)
{
	return posted_take(&mem, DESC, VAPIC);
}

static void each_vector(void **state)
{
	(void)state;
	for (unsigned v = 16; v < 256; v++) {
		setup(NULL);
		post(v);
		assert_int_equal(take(), v);
		assert_int_equal(virr(v), BIT32(v % 32));
		assert_int_equal(*word(v / 64), 0);
		assert_int_equal(take(), 0); /* once */
		assert_int_equal(virr(v), BIT32(v % 32));
	}
}

static void the_highest_of_many(void **state)
{
	const u8 vectors[] = {0x21, 0x3f, 0x40, 0x7f, 0x80, 0xbe};
	const u32 pending = BIT32(3);

	(void)state;
	assert_true(guest_write(&mem, GPA(VAPIC.v + 0x200 + 0x10), &pending, sizeof(pending)));
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
		post(vectors[i]);
	assert_int_equal(take(), 0xbe);
	assert_int_equal(virr(0x21), BIT32(3) | BIT32(1) | BIT32(31)); /* what waits stays */
	assert_int_equal(virr(0x40), BIT32(0));
	assert_int_equal(virr(0x7f), BIT32(31));
	assert_int_equal(virr(0x80), BIT32(0));
	assert_int_equal(virr(0xbe), BIT32(30));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(*word(i), 0);
}

/* Of the rest of the descriptor and of the page not a bit. */
static void only_on_is_cleared(void **state)
{
	(void)state;
	for (unsigned i = 4; i < 8; i++)
		*word(i) = ~0ull;
	*(volatile u64 *)(word(0) - 1) = 0x1122334455667788; /* in front of it */
	assert_int_equal(take(), 0);
	assert_int_equal(*word(4), ~1ull);
	for (unsigned i = 5; i < 8; i++)
		assert_int_equal(*word(i), ~0ull);
	assert_int_equal(*(word(0) - 1), 0x1122334455667788);
	for (unsigned v = 0; v < 256; v += 32)
		assert_int_equal(virr(v), 0);
}

/* Pages that are no RAM, and a virtual APIC that is none while the descriptor is. */
static void no_memory(void **state)
{
	(void)state;
	assert_int_equal(posted_take(&mem, GPA(RAM), VAPIC), 0);
	assert_int_equal(posted_take(&mem, GPA(MASK(40) & ~63ull), VAPIC), 0);
	post(0x42);
	assert_int_equal(posted_take(&mem, DESC, GPA(0xb0000)), 0x42);
	assert_int_equal(*word(1), 0);
}

#define ROUNDS 10000u

/* L1's other CPU: sets a request, then ON, and notifies when ON was clear. */
static unsigned notified;

static void *poster(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		while (__atomic_load_n(word(0), __ATOMIC_SEQ_CST))
			sched_yield();
		post(0x31);
		if (!(__atomic_fetch_or(word(4), 1, __ATOMIC_SEQ_CST) & 1))
			__atomic_add_fetch(&notified, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* No request is lost, and none waits without a notification that is still to be processed. */
static void a_poster_at_the_same_time(void **state)
{
	unsigned taken = 0, processed = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, poster, NULL), 0);
	while (taken < ROUNDS) {
		if (__atomic_load_n(&notified, __ATOMIC_SEQ_CST) == processed) {
			sched_yield();
			continue;
		}
		processed++;
		taken += take() == 0x31;
	}
	pthread_join(thread, NULL);
	assert_int_equal(*word(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_vector, setup),
		cmocka_unit_test_setup(the_highest_of_many, setup),
		cmocka_unit_test_setup(only_on_is_cleared, setup),
		cmocka_unit_test_setup(no_memory, setup),
		cmocka_unit_test_setup(a_poster_at_the_same_time, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
