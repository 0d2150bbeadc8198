/* SPDX-License-Identifier: Apache-2.0 */
/* Which fields VMCS shadowing lets L1 reach. SDM "VMCS Shadowing Bitmap Addresses". */
/* SOURCES: nested/shadow_map.c nested/vmcs12.c nested/caps.c */
#include "tests/unit/nested_valid.h"
#include "nested/shadow.h"

static struct shadow_maps maps;

static bool shadow_map_exits(const u8 *map, u64 encoding)
{
	return SHADOW_MAP_RANGE(encoding) || map[SHADOW_MAP_BYTE(encoding)] & SHADOW_MAP_BIT(encoding);
}

static void fill(void)
{
	struct valid t;

	valid_init(&t);
	shadow_maps_fill(&maps, &t.caps);
}

static void fields_of_the_hot_path_do_not_exit(void **state)
{
	static const u32 both[] = {VMCS_GUEST_RIP,       VMCS_GUEST_RSP, VMCS_GUEST_RFLAGS,
				   VMCS_ENTRY_INTR_INFO, VMCS_PROC_CTL,  VMCS_PREEMPT_TIMER};

	(void)state;
	fill();
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		assert_false(shadow_map_exits(maps.read, both[i]));
		assert_false(shadow_map_exits(maps.write, both[i]));
	}
}

/* VMWRITE of them depends on VMX_MISC and changes what L0 must know. */
static void exit_information_is_read_only(void **state)
{
	(void)state;
	fill();
	assert_false(shadow_map_exits(maps.read, VMCS_EXIT_REASON));
	assert_true(shadow_map_exits(maps.write, VMCS_EXIT_REASON));
	assert_false(shadow_map_exits(maps.read, VMCS_GUEST_PHYS));
	assert_true(shadow_map_exits(maps.write, VMCS_GUEST_PHYS));
}

/* Whatever VMCS12 holds stale after an exit, and all that the checks look at but the listed, must exit; so
 * must encodings that name nothing. */
static void all_else_exits(void **state)
{
	unsigned open = 0, writable = 0, listed = 0, written = 0;

	(void)state;
	fill();
	for (u64 enc = 0; enc < 0x8000; enc++) {
		struct vmcs12_field f;

		open += !shadow_map_exits(maps.read, enc);
		writable += !shadow_map_exits(maps.write, enc);
		if (shadow_map_exits(maps.read, enc) || enc & 1)
			continue;
		assert_true(vmcs12_lookup(enc, &f));
		assert_false(f.group == GROUP_CRDR || f.group == GROUP_GUEST_GRP1 ||
			     f.group == GROUP_GUEST_GRP2);
	}
#define X(width, name, member) listed++;
	SHADOW_FIELDS(X)
#undef X
#define X(width, name, member) written++;
	SHADOW_WRITTEN(X)
#undef X
	assert_int_equal(open, listed);
	assert_int_equal(writable, written);
	assert_true(shadow_map_exits(maps.read, VMCS_GUEST_PHYS + 1));
	assert_true(shadow_map_exits(maps.read, VMCS_HOST_RIP));
	assert_true(shadow_map_exits(maps.read, VMCS_GUEST_RIP | BIT(15)));
	assert_true(shadow_map_exits(maps.read, VMCS_GUEST_RIP | BIT(32)));
}

static void fields_that_do_not_exist_exit(void **state)
{
	struct valid t;

	(void)state;
	valid_init(&t);
	t.caps.true_pin &= ~((u64)PIN_TIMER << 32);
	shadow_maps_fill(&maps, &t.caps);
	assert_true(shadow_map_exits(maps.read, VMCS_PREEMPT_TIMER));
	assert_true(shadow_map_exits(maps.write, VMCS_PREEMPT_TIMER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_of_the_hot_path_do_not_exit),
		cmocka_unit_test(exit_information_is_read_only),
		cmocka_unit_test(all_else_exits),
		cmocka_unit_test(fields_that_do_not_exist_exit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
