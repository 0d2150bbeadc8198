/* SPDX-License-Identifier: Apache-2.0 */
/* Control words, VP sets and reference time: every number is a hostile guest's. */
/* SOURCES: hyperv/call.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hyperv/call.h"
#include "hyperv/time.h"

#define REPS(n)     ((u64)(n) << 32)
#define START(n)    ((u64)(n) << 48)
#define VARIABLE(n) ((u64)(n) << 17)

static enum hv_status decode(u64 control)
{
	struct call c;

	return call_decode(control, &c);
}

static void control_words(void **state)
{
	(void)state;
	assert_int_equal(decode(HV_FLUSH_SPACE), HV_SUCCESS);
	assert_int_equal(decode(0x46), HV_INVALID_CODE);
	assert_int_equal(decode(0xffff), HV_INVALID_CODE);
	for (unsigned bit = 27; bit < 64; bit++)
		if (bit < 32 || (bit >= 44 && bit < 48) || bit >= 60)
			assert_int_equal(decode(HV_FLUSH_SPACE | BIT(bit)), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_SPACE | REPS(1)), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_SPACE | START(1)), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_SPACE | VARIABLE(1)), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_LIST), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_LIST | REPS(3) | START(3)), HV_INVALID_INPUT);
	assert_int_equal(decode(HV_FLUSH_LIST | REPS(3) | START(2)), HV_SUCCESS);
	assert_int_equal(decode(HV_SEND_IPI_EX | VARIABLE(511)), HV_SUCCESS);
}

static void quick_answers(void **state)
{
	(void)state;
	for (u32 code = 0; code <= 0xffff; code++) {
		u64 control = code | START(0xfff) | REPS(7);
		struct call c;

		assert_int_equal(call_exists((u16)code), call_form((u16)code) != NULL);
		if (call_exists((u16)code))
			continue;
		assert_int_equal(call_decode(control, &c), HV_INVALID_CODE);
		assert_int_equal(call_result(&c, HV_INVALID_CODE), call_result_unknown(control));
	}
}

static void sizes_and_results(void **state)
{
	struct call c;

	(void)state;
	call_decode(HV_FLUSH_LIST_EX | VARIABLE(2) | REPS(5) | START(1), &c);
	assert_int_equal(call_words(&c), 4 + 2 + 5);
	assert_int_equal(call_result(&c, HV_SUCCESS), REPS(5));
	assert_int_equal(call_result(&c, HV_INVALID_PARAMETER), HV_INVALID_PARAMETER | REPS(1));
	call_decode(HV_FLUSH_LIST_EX | VARIABLE(511) | REPS(4095), &c);
	assert_int_equal(call_words(&c), 4 + 511 + 4095);
}

/* VP 64 and VP 0 fall together, no bank is lost, and a bad set names nobody. */
static void folded_sets(void **state)
{
	u64 one[] = {0, BIT(1), BIT(5)}, two[] = {0, BIT(0) | BIT(63), BIT(0), BIT(63)}, all[] = {1, 0};
	u64 mask = 0;

	(void)state;
	assert_int_equal(call_vp_set_folded(one, 1, &mask), HV_SUCCESS);
	assert_int_equal(mask, BIT(5));
	assert_int_equal(call_vp_set_folded(two, 2, &mask), HV_SUCCESS);
	assert_int_equal(mask, BIT(0) | BIT(63));
	assert_int_equal(call_vp_set_folded(all, 0, &mask), HV_SUCCESS);
	assert_int_equal(mask, ~0ull);
	assert_int_equal(call_vp_set_folded(two, 1, &mask), HV_INVALID_INPUT);
}

/* Only as many words are looked at as the variable header has: the set ends with its memory here. */
static void vp_sets(void **state)
{
	u64 *set = malloc(3 * sizeof(*set)), mask = 0;

	(void)state;
	set[0] = 0, set[1] = 1, set[2] = 0xabc;
	assert_int_equal(call_vp_set(set, 1, 0xf, &mask), HV_SUCCESS);
	assert_int_equal(mask, 0xabc);
	set[1] = BIT(63);
	assert_int_equal(call_vp_set(set, 1, 0xf, &mask), HV_SUCCESS);
	assert_int_equal(mask, 0);
	assert_int_equal(call_vp_set(set, 0, 0xf, &mask), HV_INVALID_INPUT);
	assert_int_equal(call_vp_set(set, 2, 0xf, &mask), HV_INVALID_INPUT);
	set[0] = 1;
	assert_int_equal(call_vp_set(set, 0, 0xf, &mask), HV_SUCCESS);
	assert_int_equal(mask, 0xf);
	set[0] = 2;
	assert_int_equal(call_vp_set(set, 1, 0xf, &mask), HV_INVALID_PARAMETER);
	free(set);
	set = malloc(2 * sizeof(*set));
	set[0] = 0, set[1] = 0;
	assert_int_equal(call_vp_set(set, 0, 0xf, &mask), HV_SUCCESS);
	assert_int_equal(mask, 0);
	free(set);
}

static void reference_time(void **state)
{
	static const u64 rates[] = {400000000, 1000000000, 2893299000, 5000000000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		u64 scale = time_scale(rates[i]), hour = 3600 * rates[i];

		assert_in_range(time_scaled(hour, scale), 3600 * REFERENCE_HZ - 10, 3600 * REFERENCE_HZ);
	}
	assert_int_equal(time_scale(REFERENCE_HZ), ~0ull);
	assert_int_equal(time_scale(0), ~0ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_words),     cmocka_unit_test(quick_answers),
		cmocka_unit_test(sizes_and_results), cmocka_unit_test(vp_sets),
		cmocka_unit_test(folded_sets),       cmocka_unit_test(reference_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
