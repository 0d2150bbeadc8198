/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's PMU without a processor: what is offered, which MSRs exist, and which are written at a switch.
 */
/* SOURCES: hv/pmu_regs.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "hv/pmu.h"

/* Skylake: version 4, four counters of 48 bits (eight without hyper-threading), three fixed ones. */
static const struct cpuid skylake = {.eax = 0x07300404, .ebx = 0, .edx = 3 | 48 << 5};

static void test_leaf(void **state)
{
	struct pmu_caps c = pmu_caps_of(&skylake);
	struct cpuid leaf = pmu_leaf(&c);

	(void)state;
	assert_int_equal(c.counters, 4);
	assert_int_equal(c.width, 48);
	assert_int_equal(c.fixed, 3);
	assert_int_equal(leaf.eax, 0x07300402);
	assert_int_equal(leaf.ebx, 0);
	assert_int_equal(leaf.ecx, 0);
	assert_int_equal(leaf.edx, 3 | 48 << 5);
	assert_int_equal(pmu_global_bits(&c), 0x70000000full);
}

/* More than fits is cut; what lacks the global control, or makes no sense, is no PMU. */
static void test_other_leaves(void **state)
{
	struct cpuid many = {.eax = 0x08300905, .edx = 4 | 48 << 5};
	struct cpuid old = {.eax = 0x07300401, .edx = 3 | 48 << 5};
	struct cpuid wide = {.eax = 0x07400404, .edx = 3 | 48 << 5};
	struct cpuid none = {0};
	struct pmu_caps c = pmu_caps_of(&many);

	(void)state;
	assert_int_equal(c.counters, PMU_COUNTERS);
	assert_int_equal(c.fixed, PMU_FIXED);
	assert_int_equal(pmu_caps_of(&old).counters, 0);
	assert_int_equal(pmu_caps_of(&wide).counters, 0);
	c = pmu_caps_of(&none);
	assert_int_equal(c.counters, 0);
	assert_int_equal(pmu_leaf(&c).eax | pmu_leaf(&c).edx, 0);
}

static void test_registers(void **state)
{
	struct pmu_caps c = pmu_caps_of(&skylake);
	struct pmu p = {0};
	u64 bits;

	(void)state;
	assert_ptr_equal(pmu_slot(&p, &c, 0xc1, &bits), &p.count[0]);
	assert_int_equal(bits, MASK(48));
	assert_ptr_equal(pmu_slot(&p, &c, 0xc4, &bits), &p.count[3]);
	assert_null(pmu_slot(&p, &c, 0xc5, &bits));
	assert_null(pmu_slot(&p, &c, 0xc0, &bits));
	assert_ptr_equal(pmu_slot(&p, &c, 0x189, &bits), &p.select[3]);
	assert_int_equal(bits & (BIT(21) | BIT(19) | ~MASK(32)), 0); /* no AnyThread, no pin control */
	assert_null(pmu_slot(&p, &c, 0x18a, &bits));
	assert_ptr_equal(pmu_slot(&p, &c, 0x30b, &bits), &p.fixed[2]);
	assert_null(pmu_slot(&p, &c, 0x30c, &bits));
	assert_ptr_equal(pmu_slot(&p, &c, 0x38d, &bits), &p.fixed_ctrl);
	assert_int_equal(bits, 0xbbb);
	assert_ptr_equal(pmu_slot(&p, &c, 0x38f, &bits), &p.global);
	assert_int_equal(bits, 0x70000000full);
	assert_ptr_equal(pmu_slot(&p, &c, 0x38e, &bits), &p.status);
	assert_int_equal(bits, 0);
	c.fixed = 1;
	pmu_slot(&p, &c, 0x38d, &bits);
	assert_int_equal(bits, 0xb);
}

static void test_rdpmc(void **state)
{
	struct pmu_caps c = pmu_caps_of(&skylake);

	(void)state;
	assert_int_equal(pmu_rdpmc_msr(&c, 3), 0xc4);
	assert_int_equal(pmu_rdpmc_msr(&c, 4), 0);
	assert_int_equal(pmu_rdpmc_msr(&c, BIT32(30) | 2), 0x30b);
	assert_int_equal(pmu_rdpmc_msr(&c, BIT32(30) | 3), 0);
	assert_int_equal(pmu_rdpmc_msr(&c, BIT32(31)), 0);
	assert_int_equal(pmu_rdpmc_msr(&c, ~0u), 0);
}

static void test_switch(void **state)
{
	struct pmu_caps c = pmu_caps_of(&skylake);
	struct pmu have = {.known = true, .select = {1, 2}, .count = {10, 20}}, want = have;
	struct pmu_write w[PMU_WRITES];

	(void)state;
	assert_int_equal(pmu_plan(&c, &have, &want, w), 0);
	want.count[1] = 21;
	want.fixed_ctrl = 0xb;
	want.count[4] = 1; /* does not exist */
	assert_int_equal(pmu_plan(&c, &have, &want, w), 2);
	assert_int_equal(w[0].msr, 0x4c2);
	assert_int_equal(w[0].value, 21);
	assert_int_equal(w[1].msr, 0x38d);
	assert_int_equal(w[1].value, 0xb);
	have.known = false; /* as firmware left it */
	assert_int_equal(pmu_plan(&c, &have, &want, w), 4 * 2 + 3 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_leaf), cmocka_unit_test(test_other_leaves),
					   cmocka_unit_test(test_registers), cmocka_unit_test(test_rdpmc),
					   cmocka_unit_test(test_switch)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
