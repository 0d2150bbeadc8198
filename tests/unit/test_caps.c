/* SPDX-License-Identifier: Apache-2.0 */
/* The capability MSRs of an L1 stay within the hardware's and hide what is not emulated. SDM "VMX Capability
 * Reporting Facility". */
/* SOURCES: nested/caps.c nested/vmcs12.c */
#include "tests/unit/nested_valid.h"

static void assert_subset(u64 offered, u64 hw)
{
	assert_int_equal(caps_may1(offered) & ~caps_may1(hw), 0);
	assert_int_equal(caps_must1(hw) & ~caps_must1(offered), 0);
	assert_int_equal(caps_must1(offered) & ~caps_may1(offered), 0);
}

static void within_hardware(const struct vmx_caps *hw)
{
	struct vmx_caps c;

	caps_plain(&c, hw, VALID_CR4);
	assert_subset(c.pin, hw->pin);
	assert_subset(c.proc, hw->proc);
	assert_subset(c.exit, hw->exit);
	assert_subset(c.entry, hw->entry);
	assert_subset(c.sec, hw->sec);
	assert_subset(c.true_pin, hw->true_pin);
	assert_subset(c.true_proc, hw->true_proc);
	assert_subset(c.true_exit, hw->true_exit);
	assert_subset(c.true_entry, hw->true_entry);
	assert_int_equal(c.ept_vpid & ~hw->ept_vpid, 0);
	assert_int_equal(c.vmfunc & ~hw->vmfunc, 0);
	assert_int_equal(c.cr4_fixed1 & ~hw->cr4_fixed1, 0);
	assert_int_equal(hw->cr4_fixed0 & ~c.cr4_fixed0, 0);
}

static void never_more_than_hardware(void **state)
{
	struct vmx_caps hw = valid_hw;

	(void)state;
	within_hardware(&hw);
	/* each secondary control and each EPT capability away in turn */
	for (unsigned bit = 0; bit < 32; bit++) {
		hw = valid_hw;
		hw.sec &= ~BIT(32 + bit);
		within_hardware(&hw);
		hw = valid_hw;
		hw.ept_vpid &= ~BIT(bit);
		within_hardware(&hw);
	}
	/* a CPU without the TRUE MSRs */
	hw = valid_hw;
	hw.true_proc = hw.proc;
	hw.true_exit = hw.exit;
	hw.true_entry = hw.entry;
	within_hardware(&hw);
}

static void withheld_controls(void **state)
{
	u32 sec = SEC_WAITPKG | SEC_CONCEAL_VMX;
	u64 everything = ~0ull << 32;
	struct vmx_caps hw = valid_hw, c;

	(void)state;
	hw.pin |= everything;
	hw.true_pin |= everything;
	hw.true_proc |= everything;
	hw.sec |= everything;
	hw.true_exit |= everything;
	hw.true_entry |= everything;
	caps_plain(&c, &hw, VALID_CR4);
	assert_int_equal(caps_may1(c.true_pin) & ~0x16u,
			 PIN_EXT_INTR | PIN_NMI | PIN_VNMI | PIN_TIMER | PIN_POSTED);
	assert_int_equal(c.pin, c.true_pin);
	assert_false(caps_may1(c.true_proc) & PROC_TERTIARY);
	assert_false(caps_may1(c.sec) & sec);
	assert_false(caps_may1(c.true_exit) & (EXIT_CLEAR_BNDCFGS | EXIT_LOAD_CET));
	assert_false(caps_may1(c.true_entry) & (ENTRY_SMM | ENTRY_DUAL_MONITOR | ENTRY_LOAD_CET));
	/* bits the manual does not define stay "must be 0" */
	assert_false(caps_may1(c.true_pin) & BIT32(8));
	assert_false(caps_may1(c.sec) & BIT32(31));
}

/* Both MSRs of each word, and nothing else. */
static void pmu_controls(void **state)
{
	struct vmx_caps hw = valid_hw, with, without;
	struct vmcs12_field f;

	(void)state;
	caps_plain(&with, &hw, VALID_CR4);
	assert_true(caps_may1(with.true_exit) & EXIT_LOAD_PERF && caps_may1(with.exit) & EXIT_LOAD_PERF);
	assert_true(caps_may1(with.true_entry) & ENTRY_LOAD_PERF && caps_may1(with.entry) & ENTRY_LOAD_PERF);
	without = with;
	caps_without_pmu(&without);
	assert_int_equal(caps_may1(with.true_exit) ^ caps_may1(without.true_exit), EXIT_LOAD_PERF);
	assert_int_equal(caps_may1(with.exit) ^ caps_may1(without.exit), EXIT_LOAD_PERF);
	assert_int_equal(caps_may1(with.true_entry) ^ caps_may1(without.true_entry), ENTRY_LOAD_PERF);
	assert_int_equal(caps_may1(with.entry) ^ caps_may1(without.entry), ENTRY_LOAD_PERF);
	/* the fields go with the controls */
	assert_true(vmcs12_lookup(VMCS_GUEST_PERF_GLOBAL_CTRL, &f));
	assert_true(vmcs12_exists(&f, &with));
	assert_false(vmcs12_exists(&f, &without));
	assert_true(vmcs12_lookup(VMCS_HOST_PERF_GLOBAL_CTRL, &f));
	assert_true(vmcs12_exists(&f, &with));
	assert_false(vmcs12_exists(&f, &without));
	/* an enlightened VMCS loads neither */
	caps_enlightened(&with);
	assert_false(caps_may1(with.true_exit) & EXIT_LOAD_PERF);
	assert_false(caps_may1(with.true_entry) & ENTRY_LOAD_PERF);
	/* a CPU that lacks one */
	hw.true_exit &= ~((u64)EXIT_LOAD_PERF << 32);
	caps_plain(&with, &hw, VALID_CR4);
	assert_false(caps_may1(with.true_exit) & EXIT_LOAD_PERF);
}

/* Only together with what tells a fetch of user mode; an enlightened VMCS needs no field for it. */
static void mode_based_execute(void **state)
{
	struct vmx_caps hw = valid_hw, c;

	(void)state;
	hw.sec |= (u64)SEC_MBE << 32;
	caps_plain(&c, &hw, VALID_CR4);
	assert_false(caps_may1(c.sec) & SEC_MBE);
	hw.ept_vpid |= EPT_CAP_ADVANCED;
	caps_plain(&c, &hw, VALID_CR4);
	assert_true(caps_may1(c.sec) & SEC_MBE && c.ept_vpid & EPT_CAP_ADVANCED);
	caps_enlightened(&c);
	assert_true(caps_may1(c.sec) & SEC_MBE);
	hw.sec &= ~((u64)SEC_MBE << 32);
	caps_plain(&c, &hw, VALID_CR4);
	assert_false(caps_may1(c.sec) & SEC_MBE);
}

static void offered_controls(void **state)
{
	u32 sec = SEC_APIC_ACCESSES | SEC_EPT | SEC_DESC_TABLE | SEC_RDTSCP | SEC_X2APIC | SEC_VPID |
		  SEC_WBINVD | SEC_UNRESTRICTED | SEC_APIC_REGS | SEC_VID | SEC_PLE | SEC_RDRAND |
		  SEC_INVPCID | SEC_VMFUNC | SEC_SHADOW_VMCS | SEC_RDSEED | SEC_PML | SEC_VE | SEC_XSAVES |
		  SEC_TSC_SCALING;
	struct vmx_caps c;

	(void)state;
	caps_plain(&c, &valid_hw, VALID_CR4);
	assert_int_equal(caps_may1(c.sec), sec);
	assert_int_equal(c.vmfunc, VMFUNC_EPTP_SWITCHING);
	assert_int_equal(caps_may1(c.true_pin), 0x16 | PIN_EXT_INTR | PIN_NMI | PIN_VNMI | PIN_TIMER);
	assert_int_equal(caps_may1(c.true_proc), caps_may1(valid_hw.true_proc));
	assert_true(caps_may1(c.true_entry) & ENTRY_LOAD_EFER);
	assert_true(caps_may1(c.true_exit) & EXIT_ACK_INTR);
}

/* SDM "Reserved Controls and Default Settings": what only the TRUE MSR lets go. */
static void default1_settings(void **state)
{
	struct vmx_caps c;

	(void)state;
	caps_plain(&c, &valid_hw, VALID_CR4);
	assert_int_equal(caps_must1(c.proc), 0x0401e172);
	assert_int_equal(caps_must1(c.true_proc), 0x04006172);
	assert_int_equal(caps_must1(c.exit), 0x00036dff);
	assert_int_equal(caps_must1(c.true_exit), 0x00036dfb);
	assert_int_equal(caps_must1(c.entry), 0x000011ff);
	assert_int_equal(caps_must1(c.true_entry), 0x000011fb);
	assert_int_equal(caps_must1(c.pin), 0x16);
	assert_int_equal(caps_must1(c.sec), 0);
}

static void basic_and_misc(void **state)
{
	struct vmx_caps hw = valid_hw, c;

	(void)state;
	caps_plain(&c, &hw, VALID_CR4);
	assert_int_equal((u32)c.basic, VMCS12_REVISION);
	assert_int_equal(c.basic & BIT(31), 0);
	assert_int_equal(c.basic >> 32 & 0x1fff, 4096);
	assert_int_equal(c.basic >> 50 & 15, 6);
	assert_true(c.basic & VMX_BASIC_TRUE && c.basic & VMX_BASIC_INS_OUTS);
	assert_int_equal(c.misc, VMX_MISC_SAVE_IA32E | VMX_MISC_HLT | VMX_MISC_SHUTDOWN | VMX_MISC_WAIT_SIPI |
					 4 << 16 | VMX_MISC_WRITE_INFO | VMX_MISC_ZERO_LEN);
	hw.misc = 5 | 2 << 16;
	hw.basic &= ~VMX_BASIC_INS_OUTS;
	caps_plain(&c, &hw, VALID_CR4);
	assert_int_equal(VMX_MISC_TIMER_SHIFT(c.misc), 5);
	assert_int_equal(VMX_MISC_CR3_TARGETS(c.misc), 2);
	assert_false(c.misc & (VMX_MISC_HLT | VMX_MISC_SHUTDOWN | VMX_MISC_ZERO_LEN));
	assert_false(c.basic & VMX_BASIC_INS_OUTS);
	assert_int_equal(c.vmcs_enum, VMCS_TSC_MULTIPLIER & 0x3fe);
}

static void cr4_is_what_cpuid_offers(void **state)
{
	struct vmx_caps c;

	(void)state;
	caps_plain(&c, &valid_hw, CR4_PAE | CR4_LA57);
	assert_int_equal(c.cr4_fixed1, CR4_PAE | CR4_VMXE);
	assert_int_equal(c.cr4_fixed0, CR4_VMXE);
	assert_int_equal(c.cr0_fixed0, CR0_PE | CR0_NE | CR0_PG);
}

static void slots(void **state)
{
	struct vmx_caps c = {0};

	(void)state;
	assert_ptr_equal(caps_slot(&c, 0x480), &c.basic);
	assert_ptr_equal(caps_slot(&c, 0x485), &c.misc);
	assert_ptr_equal(caps_slot(&c, 0x48a), &c.vmcs_enum);
	assert_ptr_equal(caps_slot(&c, 0x48b), &c.sec);
	assert_ptr_equal(caps_slot(&c, 0x48c), &c.ept_vpid);
	assert_ptr_equal(caps_slot(&c, 0x48d), &c.true_pin);
	assert_ptr_equal(caps_slot(&c, 0x490), &c.true_entry);
	assert_ptr_equal(caps_slot(&c, 0x491), &c.vmfunc);
	assert_null(caps_slot(&c, 0x47f));
	assert_null(caps_slot(&c, 0x492));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_more_than_hardware),
		cmocka_unit_test(withheld_controls),
		cmocka_unit_test(pmu_controls),
		cmocka_unit_test(mode_based_execute),
		cmocka_unit_test(offered_controls),
		cmocka_unit_test(default1_settings),
		cmocka_unit_test(basic_and_misc),
		cmocka_unit_test(cr4_is_what_cpuid_offers),
		cmocka_unit_test(slots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
