/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of MSR lists that may not be loaded or stored whatever their value. SDM "Loading MSRs", "Saving
 * MSRs". */
/* SOURCES: nested/check_msr.c */
#include "tests/unit/nested_valid.h"

static void entries(void **state)
{
	static const struct {
		u32 index, reserved;
		bool load, store;
	} row[] = {
		{0x10, 0, true, true},        {0x174, 0, true, true},
		{0xc0000100, 0, false, true}, /* M1 */
		{0xc0000101, 0, false, true}, {0xc0000102, 0, true, true},
		{0x7ff, 0, true, true},       {0x800, 0, false, false}, /* M2 */
		{0x8ff, 0, false, false},     {0x900, 0, true, true},
		{0x9b, 0, false, true},                                /* M3 */
		{0x9e, 0, true, false},       {0x79, 0, false, true},  /* M4 */
		{0x8b, 0, false, true},       {0x10, 1, false, false}, /* M5 */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct msr_entry e = {row[i].index, row[i].reserved, 0};

		assert_int_equal(check_msr_load(&e).err, row[i].load ? 0 : 34);
		assert_int_equal(check_msr_store(&e).err, row[i].store ? 0 : 34);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(entries)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
