/* SPDX-License-Identifier: Apache-2.0 */
/* VMCS02 from VMCS12 and L0's needs: nothing L0 needs is lost, nothing L1 did not ask for appears. */
/* SOURCES: nested/merge.c nested/caps.c nested/vmcs12.c */
#include "tests/unit/nested_valid.h"
#include "nested/merge.h"

static struct valid t;
static struct l0_needs l0;
static struct merged m;

static int setup(void **state)
{
	(void)state;
	valid_init(&t);
	l0 = (struct l0_needs){
		.pin = 0x16 | PIN_EXT_INTR | PIN_NMI,
		.exit = 0x36dfb | EXIT_HOST_64 | EXIT_SAVE_EFER | EXIT_LOAD_EFER | EXIT_SAVE_DEBUG,
		.entry = 0x11fb | ENTRY_LOAD_EFER | ENTRY_LOAD_DEBUG | ENTRY_IA32E,
		.l1_efer = EFER_LMA | EFER_LME | EFER_SCE,
		.l1_pat = 0x0606060606060606,
		.l1_debugctl = 1,
		.l1_dr7 = 0x455,
	};
	return 0;
}

static void merge(void)
{
	merge_controls(&m, &t.v, &l0);
}

static void always_there(void **state)
{
	(void)state;
	t.v.proc_ctl = 0x04006172;
	t.v.pin_ctl = 0x16;
	l0.pin = 0x16;
	merge();
	assert_int_equal(m.pin, 0x16 | PIN_EXT_INTR | PIN_NMI);
	assert_int_equal(m.sec, SEC_EPT | SEC_VPID);
	assert_int_equal(m.proc, 0x04006172 | PROC_SECONDARY | PROC_IO_BITMAPS | PROC_MSR_BITMAPS |
					 PROC_TSC_OFFSET | PROC_CR8_LOAD | PROC_CR8_STORE);
	assert_true(m.exceptions & BIT32(VEC_DB) && m.exceptions & BIT32(VEC_AC));
}

/* Each intercept is on when either side wants it. */
static void intercepts_are_ored(void **state)
{
	static const u32 bits[] = {PROC_INTR_WINDOW, PROC_HLT,       PROC_INVLPG,     PROC_MWAIT,
				   PROC_RDPMC,       PROC_RDTSC,     PROC_CR3_LOAD,   PROC_CR3_STORE,
				   PROC_CR8_LOAD,    PROC_CR8_STORE, PROC_NMI_WINDOW, PROC_MOV_DR,
				   PROC_MONITOR,     PROC_PAUSE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		t.v.proc_ctl = 0x04006172 | PROC_TPR_SHADOW;
		l0.proc = 0;
		merge();
		assert_false(m.proc & bits[i]);
		l0.proc = bits[i];
		merge();
		assert_true(m.proc & bits[i]);
		l0.proc = 0;
		t.v.proc_ctl |= bits[i];
		merge();
		assert_true(m.proc & bits[i]);
	}
}

/* NE-04: what L0 uses for L1's APIC must not collide with what L1 asked for L2. */
static void features_of_l0_do_not_leak(void **state)
{
	u32 apic = SEC_APIC_ACCESSES | SEC_X2APIC | SEC_APIC_REGS | SEC_VID;

	(void)state;
	l0.pin |= PIN_POSTED | PIN_VNMI;
	l0.proc = PROC_TPR_SHADOW | PROC_UNCOND_IO | PROC_MTF;
	l0.sec = apic | SEC_RDTSCP | SEC_INVPCID | SEC_XSAVES | SEC_UNRESTRICTED | SEC_PML | SEC_SHADOW_VMCS |
		 SEC_WBINVD;
	t.v.sec_ctl = SEC_EPT;
	merge();
	assert_int_equal(m.sec, SEC_EPT | SEC_VPID | SEC_WBINVD);
	assert_false(m.proc & (PROC_TPR_SHADOW | PROC_UNCOND_IO | PROC_MTF));
	assert_false(m.pin & PIN_POSTED);
	assert_true(m.pin & PIN_VNMI);
	t.v.sec_ctl |= SEC_X2APIC;
	t.v.proc_ctl |= PROC_TPR_SHADOW;
	merge();
	assert_int_equal(m.sec & apic, SEC_X2APIC);
	assert_true(m.proc & PROC_TPR_SHADOW);
}

static void features_of_l1(void **state)
{
	u32 all = SEC_APIC_ACCESSES | SEC_RDTSCP | SEC_UNRESTRICTED | SEC_APIC_REGS | SEC_VID | SEC_PLE |
		  SEC_INVPCID | SEC_VMFUNC | SEC_XSAVES | SEC_MBE;

	(void)state;
	t.v.sec_ctl |= all | SEC_PML | SEC_VE | SEC_SHADOW_VMCS;
	t.v.proc_ctl |= PROC_MTF | PROC_UNCOND_IO;
	merge();
	assert_int_equal(m.sec, all | SEC_EPT | SEC_VPID);
	assert_true(m.proc & PROC_MTF);
	assert_false(m.proc & PROC_UNCOND_IO); /* the merged bitmaps say it */
	t.v.proc_ctl &= ~PROC_SECONDARY;
	merge();
	assert_int_equal(m.sec, SEC_EPT | SEC_VPID);
}

static void page_fault_filter(void **state)
{
	(void)state;
	t.v.exception_bitmap = BIT32(VEC_PF) | BIT32(VEC_UD);
	t.v.pf_mask = 5;
	t.v.pf_match = 1;
	merge();
	assert_int_equal(m.exceptions, BIT32(VEC_PF) | BIT32(VEC_UD) | BIT32(VEC_DB) | BIT32(VEC_AC));
	assert_int_equal(m.pf_mask, 5);
	assert_int_equal(m.pf_match, 1);
	t.v.exception_bitmap = 0;
	merge();
	assert_false(m.exceptions & BIT32(VEC_PF));
	assert_int_equal(m.pf_mask, 5);
	/* L0 wants all of them */
	l0.exceptions = BIT32(VEC_PF) | BIT32(VEC_MC);
	merge();
	assert_true(m.exceptions & BIT32(VEC_PF) && m.exceptions & BIT32(VEC_MC));
	assert_int_equal(m.pf_mask | m.pf_match, 0);
}

static void exit_and_entry(void **state)
{
	(void)state;
	t.v.exit_ctl = 0x36dfb; /* a 32-bit L1 that loads and saves nothing */
	t.v.entry_ctl = 0x11fb;
	merge();
	assert_int_equal(m.exit, l0.exit);
	assert_int_equal(m.entry, l0.entry & ~ENTRY_IA32E);
	t.v.entry_ctl |= ENTRY_IA32E;
	t.v.exit_ctl |= EXIT_ACK_INTR | EXIT_SAVE_TIMER;
	t.v.pin_ctl |= PIN_TIMER;
	merge();
	assert_int_equal(m.entry, l0.entry);
	assert_int_equal(m.exit, l0.exit | EXIT_SAVE_TIMER);
	/* hardware refuses to save a timer that is off */
	t.v.pin_ctl &= ~PIN_TIMER;
	l0.exit |= EXIT_SAVE_TIMER;
	merge();
	assert_false(m.exit & EXIT_SAVE_TIMER);
	l0.pin |= PIN_TIMER;
	merge();
	assert_true(m.exit & EXIT_SAVE_TIMER && m.pin & PIN_TIMER);
}

/* Whether hardware loads the PMU's control L0 alone says: with a PMU always, its values follow L1's register.
 */
static void pmu_control(void **state)
{
	(void)state;
	t.v.exit_ctl |= EXIT_LOAD_PERF;
	t.v.entry_ctl |= ENTRY_LOAD_PERF;
	merge();
	assert_false(m.exit & EXIT_LOAD_PERF || m.entry & ENTRY_LOAD_PERF);
	l0.exit |= EXIT_LOAD_PERF;
	l0.entry |= ENTRY_LOAD_PERF;
	merge();
	assert_true(m.exit & EXIT_LOAD_PERF && m.entry & ENTRY_LOAD_PERF);
	t.v.exit_ctl &= ~EXIT_LOAD_PERF;
	t.v.entry_ctl &= ~ENTRY_LOAD_PERF;
	merge();
	assert_true(m.exit & EXIT_LOAD_PERF && m.entry & ENTRY_LOAD_PERF);
}

/* NX-07: L2 reads (mask & shadow) | (~mask & what it wrote), whoever holds the bit. */
static void control_register_reads(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		bool mask12 = i & 1, shadow12 = i & 2, guest12 = i & 4, held = i & 8;
		u64 read;

		t.v.cr4_mask = mask12 ? CR4_PGE : 0;
		t.v.cr4_shadow = shadow12 ? CR4_PGE : 0;
		t.v.guest_cr4 = CR4_VMXE | CR4_PAE | (guest12 ? CR4_PGE : 0);
		l0.cr4_mask = held ? CR4_PGE : 0;
		l0.cr4_value = CR4_PGE;
		merge();
		read = (m.cr4_mask & m.cr4_shadow) | (~m.cr4_mask & m.cr4);
		assert_int_equal(!!(read & CR4_PGE), mask12 ? shadow12 : guest12);
		assert_int_equal(!!(m.cr4 & CR4_PGE), held || guest12);
		assert_int_equal(!!(m.cr4_mask & CR4_PGE), held || mask12);
		assert_int_equal(merge_saved_cr4(&t.v, &l0, m.cr4, m.cr4_shadow), t.v.guest_cr4);
	}
}

static void control_register_saves(void **state)
{
	(void)state;
	t.v.cr0_mask = CR0_WP;
	t.v.cr0_shadow = CR0_WP;
	t.v.guest_cr0 = CR0_PG | CR0_PE | CR0_NE;
	l0.cr0_mask = CR0_TS;
	l0.cr0_value = CR0_TS;
	merge();
	assert_int_equal(m.cr0, CR0_PG | CR0_PE | CR0_NE | CR0_TS);
	/* L2 set AM by itself; L0 noted in the shadow that L2 set TS */
	assert_int_equal(merge_saved_cr0(&t.v, &l0, m.cr0 | CR0_AM, m.cr0_shadow | CR0_TS),
			 t.v.guest_cr0 | CR0_AM | CR0_TS);
	/* L0's private TS never shows */
	assert_int_equal(merge_saved_cr0(&t.v, &l0, m.cr0, m.cr0_shadow), t.v.guest_cr0);
}

static void cr3_targets(void **state)
{
	(void)state;
	t.v.cr3_target_count = 3;
	merge();
	assert_int_equal(m.cr3_target_count, 3);
	l0.proc = PROC_CR3_LOAD; /* L0 must see every load */
	merge();
	assert_int_equal(m.cr3_target_count, 0);
}

static void efer_and_inherited(void **state)
{
	(void)state;
	merge();
	assert_int_equal(m.efer, t.v.guest_efer);
	assert_int_equal(m.pat, t.v.guest_pat);
	assert_int_equal(m.dr7, 0x400);
	assert_int_equal(m.debugctl, 0);
	t.v.entry_ctl = 0x11fb | ENTRY_IA32E;
	merge();
	assert_int_equal(m.efer, EFER_LMA | EFER_LME | EFER_SCE);
	assert_int_equal(m.pat, l0.l1_pat);
	assert_int_equal(m.dr7, 0x455);
	assert_int_equal(m.debugctl, 1);
	t.v.entry_ctl = 0x11fb;
	merge();
	assert_int_equal(m.efer, EFER_SCE);
	t.v.guest_cr0 &= ~CR0_PG; /* then LME is left as it is */
	merge();
	assert_int_equal(m.efer, EFER_SCE | EFER_LME);
}

#define ONE BIT(48)

static void tsc(void **state)
{
	u64 host = 1000000;

	(void)state;
	l0.tsc_offset = (u64)-5000;
	t.v.tsc_offset = 70;
	t.v.tsc_multiplier = ONE * 2;
	merge();
	assert_int_equal(m.tsc_offset, (u64)-5000); /* offsetting is off */
	t.v.proc_ctl |= PROC_TSC_OFFSET;
	merge();
	assert_int_equal(m.tsc_offset, (u64)-4930);
	assert_false(m.sec & SEC_TSC_SCALING);
	t.v.sec_ctl |= SEC_TSC_SCALING;
	merge();
	assert_true(m.sec & SEC_TSC_SCALING);
	assert_int_equal(m.tsc_multiplier, ONE * 2);
	assert_int_equal(m.tsc_offset, (u64)(-10000 + 70));
	assert_int_equal(host * 2 + m.tsc_offset, merge_l2_tsc(&t.v, host - 5000));
	l0.tsc_multiplier = ONE / 2;
	merge();
	assert_int_equal(m.tsc_multiplier, ONE);
	assert_false(m.sec & SEC_TSC_SCALING);
	t.v.tsc_multiplier = 1;
	l0.tsc_multiplier = 1;
	merge();
	assert_int_equal(m.tsc_multiplier, 1); /* 0 is refused by hardware */
}

static void bitmaps_in_fields(void **state)
{
	(void)state;
	l0.xss_exiting = 1;
	t.v.xss_exiting_bitmap = 2;
	t.v.encls_exiting_bitmap = 4;
	l0.encls_exiting = 8;
	merge();
	assert_int_equal(m.xss_exiting, 1);
	assert_int_equal(m.encls_exiting, 0);
	t.v.sec_ctl |= SEC_XSAVES | SEC_ENCLS;
	l0.sec = SEC_ENCLS;
	merge();
	assert_int_equal(m.xss_exiting, 3);
	assert_int_equal(m.encls_exiting, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(always_there, setup),
		cmocka_unit_test_setup(intercepts_are_ored, setup),
		cmocka_unit_test_setup(features_of_l0_do_not_leak, setup),
		cmocka_unit_test_setup(features_of_l1, setup),
		cmocka_unit_test_setup(page_fault_filter, setup),
		cmocka_unit_test_setup(exit_and_entry, setup),
		cmocka_unit_test_setup(pmu_control, setup),
		cmocka_unit_test_setup(control_register_reads, setup),
		cmocka_unit_test_setup(control_register_saves, setup),
		cmocka_unit_test_setup(cr3_targets, setup),
		cmocka_unit_test_setup(efer_and_inherited, setup),
		cmocka_unit_test_setup(tsc, setup),
		cmocka_unit_test_setup(bitmaps_in_fields, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
