/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tests of checks read: start from what passes, make one change, expect the error (0: it still
 * passes). The change is a statement on `v` (VMCS12), `f` (facts) and `caps`. The name is the row in the list
 * of entry checks. Include after defining CHECK and CHECK_ERROR.
 */
#ifndef NIDUS_TESTS_UNIT_CHECK_CASES_H
#define NIDUS_TESTS_UNIT_CHECK_CASES_H

#include "tests/unit/nested_valid.h"

#define CASE_FROM(init, name, error, qualification, change)                                                  \
	do {                                                                                                 \
		struct valid t_;                                                                             \
		struct vmcs12 *v = &t_.v;                                                                    \
		struct check_facts *f = &t_.f;                                                               \
		struct vmx_caps *caps = &t_.caps;                                                            \
		struct fail got_;                                                                            \
                                                                                                             \
		valid_init(&t_);                                                                             \
		(void)v, (void)f, (void)caps;                                                                \
		init;                                                                                        \
		change;                                                                                      \
		got_ = CHECK(v, f);                                                                          \
		if (got_.err != (error) || got_.qual != (qualification))                                     \
			fail_msg("%s: %s: error %u qualification %u (line %u), want %u %u", name, #change,   \
				 got_.err, got_.qual, got_.line, (unsigned)(error),                          \
				 (unsigned)(qualification));                                                 \
	} while (0)

#define BAD(name, change)  CASE_FROM((void)0, name, CHECK_ERROR, 0, change)
#define GOOD(name, change) CASE_FROM((void)0, name, 0, 0, change)
/* With all controls of the hardware offered, before the change. */
#define BAD_ALL(name, change)  CASE_FROM(valid_offer_all(&t_), name, CHECK_ERROR, 0, change)
#define GOOD_ALL(name, change) CASE_FROM(valid_offer_all(&t_), name, 0, 0, change)

#endif
