/* SPDX-License-Identifier: Apache-2.0 */
/* The table of the enlightened VMCS against that of VMCS12, and copying by clean groups. */
/* SOURCES: hyperv/evmcs.c nested/vmcs12.c nested/caps.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hv/x86.h"
#include "hyperv/evmcs.h"
#include "nested/caps.h"

static struct {
	u8 bytes[4096];
} page __attribute__((aligned(4096)));

static const struct {
	u16 at, bytes;
	u32 encoding;
	u8 group;
	enum put out;
	const char *name;
} fields[] = {
#define X(at, bytes, name, member, group, out) {at, bytes, VMCS_##name, GROUP_##group, PUT_##out, #name},
	EVMCS_FIELDS(X)
#undef X
};

static const struct {
	u16 at, bytes;
} specials[] = {
	{EVMCS_REVISION, 4}, {EVMCS_ABORT, 4}, {EVMCS_CLEAN_FIELDS, 4},     {EVMCS_CONTROL, 4},
	{EVMCS_VP_ID, 4},    {EVMCS_VM_ID, 8}, {EVMCS_PARTITION_ASSIST, 8},
};

/* Each field's width and clean group are those VMCS12 says: both tables come from other sources. */
static void tables_agree(void **state)
{
	struct vmcs12_field f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		static const u8 bytes[] = {
			[WIDTH_16] = 2, [WIDTH_64] = 8, [WIDTH_32] = 4, [WIDTH_NATURAL] = 8};

		assert_true(vmcs12_lookup(fields[i].encoding, &f));
		assert_int_equal(fields[i].bytes, bytes[f.width]);
		if (f.group != fields[i].group)
			fail_msg("%s: group %u, VMCS12 has %u", fields[i].name, fields[i].group, f.group);
	}
}

static void take_bytes(u8 *used, u16 at, u16 bytes)
{
	for (u16 i = 0; i < bytes; i++) {
		assert_int_equal(used[at + i], 0);
		used[at + i] = 1;
	}
}

static void places_are_apart(void **state)
{
	u8 used[EVMCS_SIZE] = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		take_bytes(used, fields[i].at, fields[i].bytes);
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
		take_bytes(used, specials[i].at, specials[i].bytes);
}

/* The offsets that the TLFS's structure is best known by. */
static void known_offsets(void **state)
{
	struct vmcs12_field f;
	u16 at;
	u8 bytes;

	(void)state;
	static const struct {
		u32 encoding;
		u16 at;
	} known[] = {
		{VMCS_HOST_RIP, 80},        {VMCS_IO_BITMAP_A, 104}, {VMCS_GUEST_ES_SEL, 128},
		{VMCS_TSC_OFFSET, 400},     {VMCS_EPTP, 624},        {VMCS_EXIT_REASON, 692},
		{VMCS_GUEST_RIP, 816},      {VMCS_GUEST_RSP, 768},   {VMCS_GUEST_BNDCFGS, 896},
		{VMCS_TSC_MULTIPLIER, 984},
	};
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_true(vmcs12_lookup(known[i].encoding, &f) && evmcs_find(&f, &at, &bytes));
		assert_int_equal(at, known[i].at);
	}
	assert_true(vmcs12_lookup(VMCS_PREEMPT_TIMER, &f));
	assert_false(evmcs_find(&f, &at, &bytes));
}

static u64 member(const struct vmcs12 *v12, u32 encoding)
{
	struct vmcs12_field f;

	assert_true(vmcs12_lookup(encoding, &f));
	return vmcs12_read(v12, &f);
}

static u64 width_mask(u16 bytes)
{
	return bytes == 8 ? ~0ull : BIT(8 * bytes) - 1;
}

static void fill(u64 seed)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		u64 value = seed + fields[i].encoding;

		memcpy(page.bytes + fields[i].at, &value, fields[i].bytes);
	}
}

/* Exactly the groups asked for are read, each field from its place. */
static void copies_by_group(void **state)
{
	(void)state;
	fill(0x7654321000010000);
	for (u32 g = 0; g < GROUPS; g++) {
		struct vmcs12 v12 = {0};
		u32 changed = evmcs_copy_in(&v12, page.bytes, BIT32(g));

		for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
			u64 want = fields[i].group == g && g != GROUP_INFO
					   ? (0x7654321000010000 + fields[i].encoding) &
						     width_mask(fields[i].bytes)
					   : 0;

			assert_int_equal(member(&v12, fields[i].encoding), want);
		}
		assert_int_equal(changed, g == GROUP_INFO || g == GROUP_ENLIGHTENMENTS ? 0 : BIT32(g));
		assert_int_equal(evmcs_copy_in(&v12, page.bytes, BIT32(g)), 0);
	}
}

/* One bit of one field is a change of its group and of no other. */
static void every_field_is_noticed(void **state)
{
	struct vmcs12 v12 = {0};
	const u32 all = EVMCS_ALWAYS | EVMCS_CLEAN_ALL;

	(void)state;
	fill(0);
	evmcs_copy_in(&v12, page.bytes, all);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (fields[i].group == GROUP_INFO)
			continue;
		page.bytes[fields[i].at + fields[i].bytes - 1] ^= 0x80;
		assert_int_equal(evmcs_copy_in(&v12, page.bytes, all), BIT32(fields[i].group));
		assert_int_equal(evmcs_copy_in(&v12, page.bytes, all), 0);
	}
}

static void expect_only(const u8 *used, u8 value)
{
	for (size_t i = 0; i < sizeof(page.bytes); i++)
		assert_int_equal(page.bytes[i], used[i] ? value : 0);
}

/* What L0 tells of an exit, a failed entry or an error, and not a byte beside. */
static void copies_out(void **state)
{
	struct vmcs12 v12;
	u8 used[4096] = {0}, failed[4096] = {0}, error[4096] = {0};

	(void)state;
	memset(&v12, 0xee, sizeof(v12));
	memset(&page, 0, sizeof(page));
	evmcs_put_info(page.bytes, &v12);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].out == PUT_INFO) {
			assert_int_equal(fields[i].group, GROUP_INFO);
			take_bytes(used, fields[i].at, fields[i].bytes);
		}
	expect_only(used, 0xee);
	assert_int_equal(page.bytes[692], 0xee);
	memset(&page, 0, sizeof(page));
	evmcs_put_failed(page.bytes, &v12);
	take_bytes(failed, 692, 4);
	take_bytes(failed, 720, 8);
	expect_only(failed, 0xee);
	memset(&page, 0, sizeof(page));
	evmcs_put_error(page.bytes, &v12);
	take_bytes(error, 688, 4);
	expect_only(error, 0xee);
}

/* Guest state goes into the page by stores of 8 bytes: in the table's order each ends up whole, alone. */
static void raw_fields_spill_over_later_ones(void **state)
{
	u8 used[4096] = {0};
	unsigned guest = 0;

	(void)state;
	memset(&page, 0, sizeof(page));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		u64 value =
			fields[i].bytes == 8 ? 0xeeeeeeeeeeeeeeee : BIT(fields[i].bytes * 8) / 0xff * 0xee;

		if (fields[i].out != PUT_RAW)
			continue;
		memcpy(page.bytes + fields[i].at, &value, sizeof(value));
		take_bytes(used, fields[i].at, fields[i].bytes);
		guest += fields[i].group == GROUP_GUEST_GRP2;
	}
	assert_int_equal(guest, 36); /* eight segments of four, two tables of two */
	for (size_t i = 0; i < sizeof(page.bytes); i++)
		assert_true(used[i] ? page.bytes[i] != 0 : page.bytes[i] == 0);
}

/* As by groups, but for addresses that nothing uses. */
static void copies_live(void **state)
{
	struct vmcs12 v12 = {0}, other = {0};

	(void)state;
	memset(&page, 0, sizeof(page));
	page.bytes[EVMCS_AT_CR3_TARGET2] = page.bytes[EVMCS_AT_EXIT_MSR_LOAD_ADDR] = 7;
	assert_int_equal(evmcs_copy_live(&v12, page.bytes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		bool used = fields[i].group == GROUP_LIVE || fields[i].bytes == 4;

		if (fields[i].group != GROUP_LIVE && fields[i].group != GROUP_OTHER)
			continue;
		memset(&page, 0, sizeof(page));
		page.bytes[fields[i].at + fields[i].bytes - 1] = 0x40;
		assert_int_equal(evmcs_copy_live(&v12, page.bytes), used ? BIT32(fields[i].group) : 0);
		assert_int_equal(member(&v12, fields[i].encoding) != 0, used);
		memset(&page, 0, sizeof(page)); /* and back: what was in use is noticed when it goes */
		assert_int_equal(evmcs_copy_live(&v12, page.bytes), used ? BIT32(fields[i].group) : 0);
	}
	fill(0x100);
	assert_int_equal(evmcs_copy_live(&v12, page.bytes), EVMCS_ALWAYS);
	evmcs_copy_in(&other, page.bytes, EVMCS_ALWAYS);
	assert_memory_equal(&v12, &other, sizeof(v12));
}

/* Controls without a field vanish from both MSRs of a pair, the others stay. */
static void capabilities(void **state)
{
	struct vmx_caps hw, plain, c;

	(void)state;
	memset(&hw, 0xff, sizeof(hw));
	for (u64 *p = &hw.basic; p <= &hw.vmfunc; p++)
		*p = 0xffffffff00000000ull;
	caps_plain(&plain, &hw, ~0ull);
	c = plain;
	caps_enlightened(&c);
	assert_false(caps_may1(c.pin) & (PIN_TIMER | PIN_POSTED));
	assert_false(caps_may1(c.true_pin) & (PIN_TIMER | PIN_POSTED));
	assert_false((caps_may1(c.exit) | caps_may1(c.true_exit)) & EXIT_SAVE_TIMER);
	assert_false(caps_may1(c.sec) & (SEC_APIC_ACCESSES | SEC_APIC_REGS | SEC_VID | SEC_PLE | SEC_PML));
	assert_int_equal(caps_may1(plain.sec) & SEC_EPT, caps_may1(c.sec) & SEC_EPT);
	assert_int_equal(c.true_entry, plain.true_entry & ~((u64)ENTRY_LOAD_PERF << 32));
	assert_int_equal((u32)c.pin, (u32)plain.pin);
	assert_int_equal(c.vmfunc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_agree),
		cmocka_unit_test(places_are_apart),
		cmocka_unit_test(known_offsets),
		cmocka_unit_test(copies_by_group),
		cmocka_unit_test(every_field_is_noticed),
		cmocka_unit_test(copies_out),
		cmocka_unit_test(raw_fields_spill_over_later_ones),
		cmocka_unit_test(copies_live),
		cmocka_unit_test(capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
