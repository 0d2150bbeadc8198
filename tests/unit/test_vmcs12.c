/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS12's table of encodings: every field of the list is found, nothing else is, and accesses keep to the
 * field's width. SDM "Field Encoding in VMCS". */
/* SOURCES: nested/vmcs12.c nested/caps.c */
#include "tests/unit/nested_valid.h"

static void every_field_is_found(void **state)
{
	struct vmcs12_field f;
	unsigned found = 0;

	(void)state;
#define X(w, name, enc, member, cap)                                                                         \
	assert_true(vmcs12_lookup(VMCS_##name, &f));                                                         \
	assert_int_equal(f.offset, offsetof(struct vmcs12, member));                                         \
	assert_int_equal(f.width, FIELD_WIDTH(enc));                                                         \
	assert_int_equal(f.read_only, ((enc) >> 10 & 3) == 1);                                               \
	assert_false(f.high);                                                                                \
	found++;
	VMCS_FIELDS(X)
#undef X
	for (u64 enc = 0; enc < 0x20000; enc += 2)
		found -= vmcs12_lookup(enc, &f);
	assert_int_equal(found, 0);
}

static void other_encodings_are_not(void **state)
{
	static const u64 unknown[] = {0x0006,           0x1000, 0x2030,           0x4032,
				      0x6830,           0x8000, 0x681e | BIT(12), 0x681e | BIT(15),
				      0x681e | BIT(32), ~0ull,  0x0040,           0x2040};
	struct vmcs12_field f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++)
		assert_false(vmcs12_lookup(unknown[i], &f));
}

/* Bit 0 names the high half, of 64-bit fields only. */
static void high_halves(void **state)
{
	struct vmcs12 v = {.eptp = 0x1122334455667788};
	struct vmcs12_field f;

	(void)state;
	assert_true(vmcs12_lookup(VMCS_EPTP + 1, &f));
	assert_int_equal(vmcs12_read(&v, &f), 0x11223344);
	vmcs12_write(&v, &f, 0xffffffffaabbccdd);
	assert_int_equal(v.eptp, 0xaabbccdd55667788);
	assert_false(vmcs12_lookup(VMCS_GUEST_RIP + 1, &f));
	assert_false(vmcs12_lookup(VMCS_PIN_CTL + 1, &f));
	assert_false(vmcs12_lookup(VMCS_VPID + 1, &f));
}

static void write_and_read(u32 enc, u64 value, u64 want)
{
	struct vmcs12 v = {0}, untouched = {0};
	struct vmcs12_field f;

	assert_true(vmcs12_lookup(enc, &f));
	vmcs12_write(&v, &f, value);
	assert_int_equal(vmcs12_read(&v, &f), want);
	vmcs12_write(&v, &f, 0);
	assert_memory_equal(&v, &untouched, sizeof(v));
}

static void accesses_keep_to_the_width(void **state)
{
	(void)state;
	write_and_read(VMCS_VPID, 0x123456789abcdef0, 0xdef0);
	write_and_read(VMCS_PIN_CTL, 0x123456789abcdef0, 0x9abcdef0);
	write_and_read(VMCS_EPTP, 0x123456789abcdef0, 0x123456789abcdef0);
	write_and_read(VMCS_GUEST_RIP, 0x123456789abcdef0, 0x123456789abcdef0);
}

static void existence_follows_capabilities(void **state)
{
	struct valid t;
	struct vmcs12_field f;

	(void)state;
	valid_init(&t);
	vmcs12_lookup(VMCS_EPTP, &f);
	assert_true(vmcs12_exists(&f, &t.caps));
	t.caps.sec &= ~((u64)SEC_EPT << 32);
	assert_false(vmcs12_exists(&f, &t.caps));
	vmcs12_lookup(VMCS_PI_DESC, &f);
	assert_false(vmcs12_exists(&f, &t.caps));
	t.caps.vmfunc = 0;
	vmcs12_lookup(VMCS_EPTP_LIST, &f);
	assert_false(vmcs12_exists(&f, &t.caps));
	t.caps.vmfunc = 1;
	assert_true(vmcs12_exists(&f, &t.caps));
	vmcs12_lookup(VMCS_GUEST_RIP, &f);
	assert_true(vmcs12_exists(&f, &(struct vmx_caps){0}));
}

static void max_index_follows_existence(void **state)
{
	struct valid t;

	(void)state;
	valid_init(&t);
	assert_int_equal(vmcs12_max_index(&t.caps), (VMCS_TSC_MULTIPLIER >> 1) & 0x1ff);
	t.caps.sec = 0;
	assert_int_equal(vmcs12_max_index(&t.caps), (VMCS_PREEMPT_TIMER >> 1) & 0x1ff);
	t.caps.true_pin = 0;
	assert_int_equal(vmcs12_max_index(&t.caps), (VMCS_GUEST_SYSENTER_CS >> 1) & 0x1ff);
}

/* Rows of the TLFS table "Enlightened VMCS" and fields that it gives no clean bit. */
static const struct {
	u32 enc;
	enum vmcs12_group group;
} group_of[] = {
	{VMCS_IO_BITMAP_B, GROUP_IO_BITMAP},
	{VMCS_MSR_BITMAP, GROUP_MSR_BITMAP},
	{VMCS_TSC_OFFSET, GROUP_CONTROL_GRP2},
	{VMCS_VIRTUAL_APIC, GROUP_CONTROL_GRP2},
	{VMCS_XSS_EXITING_BITMAP, GROUP_CONTROL_GRP2},
	{VMCS_TSC_MULTIPLIER, GROUP_CONTROL_GRP2},
	{VMCS_PIN_CTL, GROUP_CONTROL_GRP1},
	{VMCS_EXIT_CTL, GROUP_CONTROL_GRP1},
	{VMCS_SEC_CTL, GROUP_CONTROL_GRP1},
	{VMCS_PROC_CTL, GROUP_CONTROL_PROC},
	{VMCS_ENTRY_INTR_INFO, GROUP_CONTROL_EVENT},
	{VMCS_ENTRY_ERROR_CODE, GROUP_CONTROL_EVENT},
	{VMCS_ENTRY_INSN_LEN, GROUP_CONTROL_EVENT},
	{VMCS_ENTRY_CTL, GROUP_CONTROL_ENTRY},
	{VMCS_EXCEPTION_BITMAP, GROUP_CONTROL_EXCPN},
	{VMCS_CR0_MASK, GROUP_CRDR},
	{VMCS_CR4_SHADOW, GROUP_CRDR},
	{VMCS_GUEST_CR3, GROUP_CRDR},
	{VMCS_GUEST_DR7, GROUP_CRDR},
	{VMCS_EPTP, GROUP_CONTROL_XLAT},
	{VMCS_VPID, GROUP_CONTROL_XLAT},
	{VMCS_GUEST_RSP, GROUP_GUEST_BASIC},
	{VMCS_GUEST_RFLAGS, GROUP_GUEST_BASIC},
	{VMCS_GUEST_INTR_STATE, GROUP_GUEST_BASIC},
	{VMCS_GUEST_SSP, GROUP_GUEST_BASIC},
	{VMCS_LINK_POINTER, GROUP_GUEST_GRP1},
	{VMCS_GUEST_PDPTE3, GROUP_GUEST_GRP1},
	{VMCS_GUEST_ACTIVITY, GROUP_GUEST_GRP1},
	{VMCS_GUEST_SYSENTER_CS, GROUP_GUEST_GRP1},
	{VMCS_GUEST_SYSENTER_EIP, GROUP_GUEST_GRP1},
	{VMCS_GUEST_PENDING_DBG, GROUP_GUEST_GRP1},
	{VMCS_GUEST_BNDCFGS, GROUP_GUEST_GRP1},
	{VMCS_GUEST_CS_AR, GROUP_GUEST_GRP2},
	{VMCS_GUEST_IDTR_BASE, GROUP_GUEST_GRP2},
	{VMCS_GUEST_TR_SEL, GROUP_GUEST_GRP2},
	{VMCS_GUEST_GDTR_LIMIT, GROUP_GUEST_GRP2},
	{VMCS_HOST_RSP, GROUP_HOST_POINTER},
	{VMCS_HOST_IDTR_BASE, GROUP_HOST_POINTER},
	{VMCS_HOST_RIP, GROUP_HOST_GRP1},
	{VMCS_HOST_CR3, GROUP_HOST_GRP1},
	{VMCS_HOST_SYSENTER_CS, GROUP_HOST_GRP1},
	{VMCS_HOST_EFER, GROUP_HOST_GRP1},
	{VMCS_HOST_SYSENTER_EIP, GROUP_HOST_GRP1},
	{VMCS_HOST_TR_SEL, GROUP_HOST_GRP1},
	{VMCS_GUEST_RIP, GROUP_LIVE},
	{VMCS_TPR_THRESHOLD, GROUP_LIVE},
	{VMCS_EXIT_REASON, GROUP_INFO},
	{VMCS_EXIT_QUAL, GROUP_INFO},
	{VMCS_GUEST_PHYS, GROUP_INFO},
	{VMCS_EXIT_MSR_LOAD_COUNT, GROUP_OTHER},
	{VMCS_CR3_TARGET3, GROUP_OTHER},
	{VMCS_PF_MATCH, GROUP_OTHER},
	{VMCS_APIC_ACCESS, GROUP_OTHER},
	{VMCS_GUEST_SMBASE, GROUP_OTHER},
};

static void groups(void **state)
{
	struct vmcs12_field f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(group_of); i++) {
		assert_true(vmcs12_lookup(group_of[i].enc, &f));
		assert_int_equal(f.group, group_of[i].group);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_is_found),
		cmocka_unit_test(other_encodings_are_not),
		cmocka_unit_test(high_halves),
		cmocka_unit_test(accesses_keep_to_the_width),
		cmocka_unit_test(existence_follows_capabilities),
		cmocka_unit_test(max_index_follows_existence),
		cmocka_unit_test(groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
