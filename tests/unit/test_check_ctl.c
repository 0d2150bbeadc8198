/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of SDM "Checks on VMX Controls": error 7, and the edge values that pass. */
/* SOURCES: nested/check_ctl.c nested/caps.c nested/vmcs12.c */
#define CHECK       check_controls
#define CHECK_ERROR 7
#include "tests/unit/check_cases.h"

#define HIGH BIT(VALID_PHYS_BITS) /* first address that does not exist */

/* Every bit of a control word by itself: refused when it is not allowed to be 1, and when it must be; by the
 * rule for the word, not by some other one. */
#define EACH_BIT(msr, field)                                                                                 \
	for (unsigned bit = 0; bit < 32; bit++) {                                                            \
		struct valid t_;                                                                             \
		struct fail high, low;                                                                       \
                                                                                                             \
		valid_init(&t_);                                                                             \
		t_.caps.msr = (t_.caps.msr & ~(BIT(32) << bit)) & ~BIT(bit);                                 \
		t_.v.field |= BIT32(bit);                                                                    \
		high = check_controls(&t_.v, &t_.f);                                                         \
		valid_init(&t_);                                                                             \
		t_.caps.msr |= (BIT(32) << bit) | BIT(bit);                                                  \
		t_.v.field &= ~BIT32(bit);                                                                   \
		low = check_controls(&t_.v, &t_.f);                                                          \
		assert_int_equal(high.err, CHECK_ERROR);                                                     \
		assert_int_equal(low.err, CHECK_ERROR);                                                      \
		assert_int_equal(high.line, low.line);                                                       \
	}

static void each_control_alone(void **state)
{
	(void)state;
	EACH_BIT(true_pin, pin_ctl)
	EACH_BIT(sec, sec_ctl)
	EACH_BIT(true_exit, exit_ctl)
	EACH_BIT(true_entry, entry_ctl)
	EACH_BIT(true_proc, proc_ctl)
}

static void control_words(void **state)
{
	(void)state;
	GOOD("valid", (void)0);
	BAD("X1 must1", v->pin_ctl &= ~2u);
	BAD("X1 may1", v->pin_ctl |= PIN_POSTED);
	BAD("X2 must1", v->proc_ctl &= ~2u);
	BAD("X2 may1", v->proc_ctl |= PROC_TERTIARY);
	GOOD("X2 true MSR", v->proc_ctl &= ~PROC_CR3_LOAD);
	BAD("X3 may1", v->sec_ctl |= SEC_MBE);
	GOOD("X3 off", v->proc_ctl &= ~PROC_SECONDARY; v->sec_ctl = ~0u);
	BAD("E1 must1", v->exit_ctl &= ~1u);
	BAD("E1 may1", v->exit_ctl |= EXIT_LOAD_PERF);
	BAD("T1 must1", v->entry_ctl &= ~1u);
	BAD("T1 may1", v->entry_ctl |= ENTRY_LOAD_PERF);
	BAD_ALL("T2", v->entry_ctl |= ENTRY_SMM);
	BAD_ALL("T3", v->entry_ctl |= ENTRY_DUAL_MONITOR);
	BAD_ALL("T4", v->entry_ctl |= ENTRY_SMM | ENTRY_DUAL_MONITOR);
}

static void primary_controls(void **state)
{
	(void)state;
	GOOD("X5", v->cr3_target_count = 4);
	BAD("X5", v->cr3_target_count = 5);
	BAD("X6", v->proc_ctl |= PROC_IO_BITMAPS; v->io_bitmap_a = 1);
	BAD("X6", v->proc_ctl |= PROC_IO_BITMAPS; v->io_bitmap_a = HIGH);
	BAD("X7", v->proc_ctl |= PROC_IO_BITMAPS; v->io_bitmap_b = 0x800);
	BAD("X7", v->proc_ctl |= PROC_IO_BITMAPS; v->io_bitmap_b = HIGH);
	GOOD("X7 off", v->io_bitmap_b = ~0ull);
	GOOD("X7", v->proc_ctl |= PROC_IO_BITMAPS; v->io_bitmap_b = HIGH - PAGE_SIZE);
	BAD("X8", v->msr_bitmap = 0x2001);
	BAD("X8", v->msr_bitmap = HIGH);
	GOOD("X8 off", v->proc_ctl &= ~PROC_MSR_BITMAPS; v->msr_bitmap = ~0ull);
	BAD("X13", v->pin_ctl = 0x16 | PIN_VNMI);
	GOOD("X13", v->pin_ctl |= PIN_VNMI);
	BAD("X14", v->proc_ctl |= PROC_NMI_WINDOW);
	GOOD("X14", v->pin_ctl |= PIN_VNMI; v->proc_ctl |= PROC_NMI_WINDOW);
}

static void tpr_shadow(void **state)
{
	(void)state;
	BAD("X9", v->proc_ctl |= PROC_TPR_SHADOW; v->virtual_apic = 8);
	BAD("X9", v->proc_ctl |= PROC_TPR_SHADOW; v->virtual_apic = HIGH);
	BAD("X10", v->proc_ctl |= PROC_TPR_SHADOW; v->tpr_threshold = 0x10; f->vtpr = 0xff);
	GOOD("X10", v->proc_ctl |= PROC_TPR_SHADOW; v->tpr_threshold = 0xf; f->vtpr = 0xff);
	GOOD("X10 off", v->tpr_threshold = 0xffffffff);
	GOOD("X10 VID", v->proc_ctl |= PROC_TPR_SHADOW; v->sec_ctl |= SEC_VID; v->tpr_threshold = 0x10);
	BAD("X11", v->proc_ctl |= PROC_TPR_SHADOW; v->tpr_threshold = 8; f->vtpr = 0x70);
	GOOD("X11", v->proc_ctl |= PROC_TPR_SHADOW; v->tpr_threshold = 8; f->vtpr = 0x80);
	GOOD("X11 accesses", v->proc_ctl |= PROC_TPR_SHADOW; v->sec_ctl |= SEC_APIC_ACCESSES;
	     v->tpr_threshold = 8);
	BAD("X12", v->sec_ctl |= SEC_X2APIC);
	BAD("X12", v->sec_ctl |= SEC_APIC_REGS);
	BAD("X12", v->sec_ctl |= SEC_VID);
}

static void apic_and_vpid(void **state)
{
	(void)state;
	BAD("X15", v->sec_ctl |= SEC_APIC_ACCESSES; v->apic_access = 4);
	BAD("X15", v->sec_ctl |= SEC_APIC_ACCESSES; v->apic_access = HIGH);
	GOOD("X15", v->sec_ctl |= SEC_APIC_ACCESSES);
	BAD("X16", v->proc_ctl |= PROC_TPR_SHADOW; v->sec_ctl |= SEC_X2APIC | SEC_APIC_ACCESSES);
	GOOD("X16", v->proc_ctl |= PROC_TPR_SHADOW; v->sec_ctl |= SEC_X2APIC);
	BAD("X17", v->proc_ctl |= PROC_TPR_SHADOW; v->sec_ctl |= SEC_VID; v->pin_ctl &= ~PIN_EXT_INTR);
	BAD("X22", v->vpid = 0);
	GOOD("X22", v->vpid = 0xffff);
	GOOD("X22 off", v->sec_ctl &= ~SEC_VPID; v->vpid = 0);
}

#define POSTED                                                                                               \
	v->pin_ctl |= PIN_POSTED;                                                                            \
	v->proc_ctl |= PROC_TPR_SHADOW;                                                                      \
	v->sec_ctl |= SEC_VID;                                                                               \
	v->exit_ctl |= EXIT_ACK_INTR;                                                                        \
	v->pi_desc = 0x6040

static void posted_interrupts(void **state)
{
	(void)state;
	GOOD_ALL("posted", POSTED);
	BAD_ALL("X18", POSTED; v->sec_ctl &= ~SEC_VID);
	BAD_ALL("X19", POSTED; v->exit_ctl &= ~EXIT_ACK_INTR);
	BAD_ALL("X20", POSTED; v->pi_vector = 0x100);
	BAD_ALL("X21", POSTED; v->pi_desc = 0x6020);
	BAD_ALL("X21", POSTED; v->pi_desc = HIGH);
	BAD("not offered", POSTED);
}

static void ept(void **state)
{
	u64 base = 0x100000;

	(void)state;
	for (u64 type = 0; type < 8; type++)
		if (type == MEMTYPE_UC || type == MEMTYPE_WB)
			GOOD("X23", v->eptp = base | EPTP_WALK4 | type);
		else
			BAD("X23", v->eptp = base | EPTP_WALK4 | type);
	BAD("X23 no UC", v->eptp = base | EPTP_WALK4; caps->ept_vpid &= ~EPT_CAP_UC);
	BAD("X23 no WB", caps->ept_vpid &= ~EPT_CAP_WB);
	for (u64 walk = 0; walk < 8; walk++)
		if (walk != 3)
			BAD("X24", v->eptp = base | walk << 3 | MEMTYPE_WB);
	GOOD("X25", v->eptp |= EPTP_AD);
	BAD("X25", v->eptp |= EPTP_AD; caps->ept_vpid &= ~EPT_CAP_AD);
	for (unsigned bit = 7; bit < 12; bit++)
		BAD("X26", v->eptp |= BIT(bit));
	BAD("X26", v->eptp |= HIGH);
	BAD("X26", v->eptp |= BIT(63));
	GOOD("EPT off", v->sec_ctl = SEC_VPID; v->eptp = ~0ull);
	BAD("X29", v->sec_ctl &= ~SEC_EPT);
}

static void on_top_of_ept(void **state)
{
	(void)state;
	BAD_ALL("X27", v->sec_ctl = SEC_VPID | SEC_PML);
	GOOD_ALL("X27", v->sec_ctl |= SEC_MBE);
	BAD_ALL("X28", v->sec_ctl |= SEC_PML; v->pml_address = 0x10);
	BAD_ALL("X28", v->sec_ctl |= SEC_PML; v->pml_address = HIGH);
	BAD_ALL("X30", v->sec_ctl = SEC_VPID | SEC_MBE);
	GOOD_ALL("X30", v->sec_ctl |= SEC_MBE);
	BAD_ALL("X32", v->sec_ctl |= SEC_VMFUNC; v->vmfunc_ctl = 2);
	GOOD_ALL("X32", v->sec_ctl |= SEC_VMFUNC; v->vmfunc_ctl = 0);
	GOOD_ALL("X33", v->sec_ctl |= SEC_VMFUNC; v->vmfunc_ctl = 1);
	BAD_ALL("X33", v->sec_ctl |= SEC_VMFUNC; v->vmfunc_ctl = 1; v->eptp_list = 8);
	BAD_ALL("X33", v->sec_ctl = SEC_VMFUNC; v->vmfunc_ctl = 1);
	BAD_ALL("X34", v->sec_ctl |= SEC_SHADOW_VMCS; v->vmread_bitmap = 1);
	BAD_ALL("X34", v->sec_ctl |= SEC_SHADOW_VMCS; v->vmwrite_bitmap = HIGH);
	GOOD_ALL("X34", v->sec_ctl |= SEC_SHADOW_VMCS);
	BAD_ALL("X35", v->sec_ctl |= SEC_VE; v->ve_info = 0xfff);
	BAD("X37", v->sec_ctl |= SEC_TSC_SCALING);
	GOOD("X37", v->sec_ctl |= SEC_TSC_SCALING; v->tsc_multiplier = 1);
	GOOD("X39", v->sec_ctl |= SEC_PLE; v->ple_gap = ~0u; v->ple_window = 0);
}

static void exit_controls(void **state)
{
	(void)state;
	BAD("E2", v->exit_ctl |= EXIT_SAVE_TIMER);
	GOOD("E2", v->exit_ctl |= EXIT_SAVE_TIMER; v->pin_ctl |= PIN_TIMER);
	GOOD("E3 empty", v->exit_msr_store_addr = ~0ull);
	GOOD("E3", v->exit_msr_store_count = 1; v->exit_msr_store_addr = HIGH - 16);
	BAD("E3", v->exit_msr_store_count = 2; v->exit_msr_store_addr = HIGH - 16);
	BAD("E3", v->exit_msr_store_count = 1; v->exit_msr_store_addr = 0x1008);
	BAD("E3", v->exit_msr_store_count = 1; v->exit_msr_store_addr = HIGH);
	BAD("E4", v->exit_msr_load_count = 2; v->exit_msr_load_addr = HIGH - 16);
	BAD("E4", v->exit_msr_load_count = 1; v->exit_msr_load_addr = 0x1001);
	GOOD("E4 empty", v->exit_msr_load_addr = 1);
	/* count times 16 does not fit 32 bits */
	BAD("E4 wrap", v->exit_msr_load_count = 0x10000000; v->exit_msr_load_addr = HIGH - 16);
}

/* NE-03: the rules of NMIs and of the timer look at their own control words only. */
static void nmi_and_timer_matrix(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 32; i++) {
		bool timer = i & 1, save = i & 2, nmi = i & 4, vnmi = i & 8, window = i & 16;
		bool ok = (!save || timer) && (!vnmi || nmi) && (!window || vnmi);

		CASE_FROM((void)0, "NE-03", ok ? 0 : 7, 0,
			  v->pin_ctl = 0x16 | (timer ? PIN_TIMER : 0) | (nmi ? PIN_NMI : 0) |
				       (vnmi ? PIN_VNMI : 0);
			  v->exit_ctl |= save ? EXIT_SAVE_TIMER : 0;
			  v->proc_ctl |= window ? PROC_NMI_WINDOW : 0);
	}
}

#define INJECT(type, vec) v->entry_intr_info = INTR_VALID | (type) << 8 | (vec)

static void injection(void **state)
{
	(void)state;
	GOOD("invalid is not looked at", v->entry_intr_info = 0x7fffffff; v->entry_insn_len = ~0u);
	GOOD("external", INJECT(INTR_TYPE_EXT, 0x30));
	BAD("T5", INJECT(1u, 0x30));
	BAD("T5 no MTF", INJECT(INTR_TYPE_OTHER, 0u));
	GOOD_ALL("T5", INJECT(INTR_TYPE_OTHER, 0u));
	GOOD("T6", INJECT(INTR_TYPE_NMI, 2u));
	BAD("T6", INJECT(INTR_TYPE_NMI, 3u));
	BAD("T7", INJECT(INTR_TYPE_HW_EXC, 32u));
	GOOD("T7", INJECT(INTR_TYPE_HW_EXC, 31u));
	BAD_ALL("T8", INJECT(INTR_TYPE_OTHER, 1u));
	GOOD("T10", INJECT(INTR_TYPE_HW_EXC, 13u) | INTR_ERROR_CODE; v->entry_error_code = 0xffff);
	BAD("T10", INJECT(INTR_TYPE_HW_EXC, 13u) | INTR_ERROR_CODE; v->entry_error_code = 0x10000);
	GOOD("T10 off", INJECT(INTR_TYPE_HW_EXC, 6u); v->entry_error_code = 0x10000);
	for (unsigned bit = 12; bit < 31; bit++)
		BAD("T11", INJECT(INTR_TYPE_EXT, 0x30) | BIT32(bit));
}

static void software_injection(void **state)
{
	(void)state;
	for (u32 type = INTR_TYPE_SOFT_INT; type <= INTR_TYPE_SOFT_EXC; type++) {
		GOOD("T12", INJECT(type, 3u); v->entry_insn_len = 15);
		BAD("T12", INJECT(type, 3u); v->entry_insn_len = 16);
		GOOD("T12", INJECT(type, 3u));
		BAD("T12 no zero length", INJECT(type, 3u); caps->misc &= ~VMX_MISC_ZERO_LEN);
	}
	GOOD("T12 other types", INJECT(INTR_TYPE_EXT, 3u); v->entry_insn_len = 99);
}

static bool has_error_code(unsigned vec)
{
	return vec == 8 || (vec >= 10 && vec <= 14) || vec == 17;
}

static void error_codes(void **state)
{
	u32 ec = INTR_ERROR_CODE;

	(void)state;
	for (unsigned vec = 0; vec < 32; vec++) {
		CASE_FROM((void)0, "T9", has_error_code(vec) ? 0 : 7, 0, INJECT(INTR_TYPE_HW_EXC, vec) | ec);
		CASE_FROM((void)0, "T9", has_error_code(vec) ? 7 : 0, 0, INJECT(INTR_TYPE_HW_EXC, vec));
		BAD("T9 other type", INJECT(INTR_TYPE_EXT, vec) | ec);
	}
	/* real mode has none; without unrestricted guest CR0.PE counts as 1 */
	BAD("T9 real", INJECT(INTR_TYPE_HW_EXC, 13u) | ec; v->guest_cr0 = CR0_NE);
	GOOD("T9 real", INJECT(INTR_TYPE_HW_EXC, 13u); v->guest_cr0 = CR0_NE);
	GOOD("T9 restricted", INJECT(INTR_TYPE_HW_EXC, 13u) | ec; v->guest_cr0 = CR0_NE;
	     v->sec_ctl = SEC_EPT);
	GOOD("T9 any", INJECT(INTR_TYPE_HW_EXC, 13u); caps->basic |= VMX_BASIC_ANY_ERROR);
	GOOD("T9 any", INJECT(INTR_TYPE_HW_EXC, 6u) | ec; caps->basic |= VMX_BASIC_ANY_ERROR);
	BAD("T9 any", INJECT(INTR_TYPE_EXT, 6u) | ec; caps->basic |= VMX_BASIC_ANY_ERROR);
	GOOD("T9 CET", INJECT(INTR_TYPE_HW_EXC, 21u) | ec; caps->cr4_fixed1 |= CR4_CET);
}

static void entry_list(void **state)
{
	(void)state;
	GOOD("T13 empty", v->entry_msr_load_addr = 1);
	BAD("T13", v->entry_msr_load_count = 1; v->entry_msr_load_addr = 0x1008);
	BAD("T13", v->entry_msr_load_count = 2; v->entry_msr_load_addr = HIGH - 16);
	GOOD("T13", v->entry_msr_load_count = 1; v->entry_msr_load_addr = HIGH - 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_control_alone),
		cmocka_unit_test(control_words),
		cmocka_unit_test(primary_controls),
		cmocka_unit_test(tpr_shadow),
		cmocka_unit_test(apic_and_vpid),
		cmocka_unit_test(posted_interrupts),
		cmocka_unit_test(ept),
		cmocka_unit_test(on_top_of_ept),
		cmocka_unit_test(exit_controls),
		cmocka_unit_test(nmi_and_timer_matrix),
		cmocka_unit_test(injection),
		cmocka_unit_test(software_injection),
		cmocka_unit_test(error_codes),
		cmocka_unit_test(entry_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
