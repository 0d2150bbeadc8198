/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of SDM "Checks on the Guest State Area" but segments: reason 33, its qualification, and the edge
 * values that pass. */
/* SOURCES: nested/check_guest.c nested/check_seg.c nested/caps.c nested/vmcs12.c */
#define CHECK       check_guest
#define CHECK_ERROR 33
#include "tests/unit/check_cases.h"

#define BAD_QUAL(name, qual, change) CASE_FROM((void)0, name, CHECK_ERROR, qual, change)

#define HIGH    BIT(VALID_PHYS_BITS)
#define NOT_CAN 0x0000800000000000ull

/* A protected-mode guest without paging extensions of 64-bit mode. */
#define GUEST32                                                                                              \
	v->entry_ctl &= ~ENTRY_IA32E;                                                                        \
	v->guest_efer = 0;                                                                                   \
	v->guest_cs_ar = 0xc09b;                                                                             \
	v->guest_rip = 0x1000
#define REAL                                                                                                 \
	GUEST32;                                                                                             \
	v->guest_cr0 = CR0_NE
#define PAE                                                                                                  \
	GUEST32;                                                                                             \
	v->guest_pdpte0 = 0x1001

static void control_registers(void **state)
{
	(void)state;
	GOOD("valid", (void)0);
	GOOD("32-bit", GUEST32);
	GOOD("real", REAL);
	BAD("G1", v->guest_cr0 &= ~CR0_NE);
	BAD("G1", v->guest_cr0 |= BIT(32));
	BAD("G1 restricted", REAL; v->sec_ctl = SEC_EPT);
	BAD("G1 restricted", GUEST32; v->guest_cr0 &= ~CR0_PG; v->sec_ctl = SEC_EPT);
	GOOD("G1", v->guest_cr0 |= CR0_CD | CR0_NW | BIT(28) | BIT(6));
	BAD("G2", GUEST32; v->guest_cr0 = CR0_NE | CR0_PG);
	BAD("G3", v->guest_cr4 &= ~CR4_VMXE);
	BAD("G3", v->guest_cr4 |= CR4_SMXE);
	BAD("G3", v->guest_cr4 |= BIT(40));
	BAD("G4", caps->cr4_fixed1 |= CR4_CET; v->guest_cr4 |= CR4_CET);
	GOOD("G4", caps->cr4_fixed1 |= CR4_CET; v->guest_cr4 |= CR4_CET; v->guest_cr0 |= CR0_WP);
	BAD("G6", v->guest_cr0 &= ~CR0_PG);
	BAD("G6", v->guest_cr4 &= ~CR4_PAE);
	BAD("G7", GUEST32; v->guest_cr4 |= CR4_PCIDE);
	GOOD("G7", v->guest_cr4 |= CR4_PCIDE);
	BAD("G8", v->guest_cr3 = HIGH);
	BAD("G8", v->guest_cr3 = BIT(63));
	GOOD("G8", v->guest_cr3 = HIGH - 1);
}

static void msrs(void **state)
{
	(void)state;
	BAD("G5", v->guest_debugctl = 4);
	GOOD("G5", v->guest_debugctl = 3);
	GOOD("G5 off", v->guest_debugctl = 4; v->entry_ctl &= ~ENTRY_LOAD_DEBUG);
	BAD("G9", v->guest_dr7 = BIT(32));
	GOOD("G9 off", v->guest_dr7 = BIT(32); v->entry_ctl &= ~ENTRY_LOAD_DEBUG);
	BAD("G10", v->guest_sysenter_esp = NOT_CAN);
	BAD("G10", v->guest_sysenter_eip = NOT_CAN);
	BAD_ALL("G11", v->entry_ctl |= ENTRY_LOAD_PERF; v->guest_perf_global_ctrl = 1);
	GOOD_ALL("G11", v->entry_ctl |= ENTRY_LOAD_PERF; v->guest_perf_global_ctrl = 1;
		 f->perf_global_bits = 1);
	BAD("G12", v->guest_pat = 2);
	GOOD("G12 off", v->guest_pat = 2; v->entry_ctl &= ~ENTRY_LOAD_PAT);
	BAD_ALL("G14", v->entry_ctl |= ENTRY_LOAD_BNDCFGS; v->guest_bndcfgs = 4);
	BAD_ALL("G14", v->entry_ctl |= ENTRY_LOAD_BNDCFGS; v->guest_bndcfgs = NOT_CAN);
	GOOD_ALL("G14", v->entry_ctl |= ENTRY_LOAD_BNDCFGS; v->guest_bndcfgs = 0x1003);
	BAD_ALL("G16", v->entry_ctl |= ENTRY_LOAD_CET; v->guest_ssp = 1);
	GOOD_ALL("G16", v->entry_ctl |= ENTRY_LOAD_CET);
}

/* NE-15: the load control, the mode control, CR0.PG and EFER. */
static void efer(void **state)
{
	u64 modes[] = {0, EFER_LME, EFER_LMA, EFER_LMA | EFER_LME};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		GOOD("off", v->guest_efer = modes[i]; v->entry_ctl &= ~ENTRY_LOAD_EFER);
		CASE_FROM((void)0, "G13 64-bit", i == 3 ? 0 : 33, 0, v->guest_efer = modes[i]);
		CASE_FROM((void)0, "G13 32-bit", i == 0 ? 0 : 33, 0, GUEST32; v->guest_efer = modes[i]);
		CASE_FROM((void)0, "G13 no paging", i <= 1 ? 0 : 33, 0, REAL; v->guest_efer = modes[i]);
	}
	BAD("G13 reserved", v->guest_efer |= BIT(9));
	GOOD("G13", v->guest_efer |= EFER_NXE | EFER_SCE);
}

static void rip_and_rflags(void **state)
{
	(void)state;
	BAD("P1", v->guest_cs_ar = 0xc09b);
	GOOD("P1", v->guest_cs_ar = 0xc09b; v->guest_rip = 0xffffffff);
	BAD("P1", GUEST32; v->guest_rip = BIT(32));
	GOOD("P2", v->guest_rip = NOT_CAN); /* bits 63:48 are equal */
	BAD("P2", v->guest_rip = BIT(48));
	BAD("P2", v->guest_rip = BIT(63));
	for (unsigned bit = 22; bit < 64; bit++)
		BAD("P3", v->guest_rflags |= BIT(bit));
	BAD("P3", v->guest_rflags |= BIT(15));
	BAD("P3", v->guest_rflags |= BIT(5));
	BAD("P3", v->guest_rflags |= BIT(3));
	BAD("P3", v->guest_rflags = 0);
	BAD("P4", v->guest_rflags |= RFLAGS_VM);
	BAD("P4", REAL; v->guest_rflags |= RFLAGS_VM);
	BAD("P5", v->entry_intr_info = INTR_VALID | 0x30);
	GOOD("P5", v->entry_intr_info = INTR_VALID | 0x30; v->guest_rflags |= RFLAGS_IF);
	GOOD("P5 invalid", v->entry_intr_info = 0x30);
}

#define INJECT(type, vec) v->entry_intr_info = INTR_VALID | (type) << 8 | (vec)

static void activity(void **state)
{
	(void)state;
	GOOD("A1", v->guest_activity = ACTIVITY_HLT);
	GOOD("A1", v->guest_activity = ACTIVITY_WAIT_SIPI);
	BAD("A1 not offered", v->guest_activity = ACTIVITY_SHUTDOWN; caps->misc &= ~VMX_MISC_SHUTDOWN);
	BAD("A1", v->guest_activity = ACTIVITY_HLT; caps->misc &= ~VMX_MISC_HLT);
	BAD("A1", v->guest_activity = ACTIVITY_WAIT_SIPI; caps->misc &= ~VMX_MISC_WAIT_SIPI);
	BAD_ALL("A1", v->guest_activity = 4);
	BAD("A2", v->guest_activity = ACTIVITY_HLT; v->guest_ss_ar = 0xc0f3; v->guest_cs_ar = 0xa0fb);
	BAD("A3", v->guest_activity = ACTIVITY_HLT; v->guest_intr_state = INTR_STATE_MOV_SS);
	BAD("A3", v->guest_activity = ACTIVITY_HLT; v->guest_intr_state = INTR_STATE_STI;
	    v->guest_rflags |= RFLAGS_IF);
	BAD("A6", v->guest_intr_state = BIT32(5));
	BAD("A6", v->guest_intr_state = BIT32(31));
	BAD("A7", v->guest_intr_state = INTR_STATE_STI | INTR_STATE_MOV_SS; v->guest_rflags |= RFLAGS_IF);
	BAD("A8", v->guest_intr_state = INTR_STATE_STI);
	GOOD("A8", v->guest_intr_state = INTR_STATE_STI; v->guest_rflags |= RFLAGS_IF);
	BAD("A11", v->guest_intr_state = INTR_STATE_SMI);
	GOOD("NMI blocking", v->guest_intr_state = INTR_STATE_NMI);
	BAD("A14", v->guest_intr_state = BIT32(4));
}

static void events_in_activity_states(void **state)
{
	(void)state;
	GOOD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_EXT, 0x30);
	     v->guest_rflags |= RFLAGS_IF);
	GOOD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_NMI, 2u));
	GOOD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_HW_EXC, 1u));
	GOOD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_HW_EXC, 18u));
	GOOD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_OTHER, 0u));
	BAD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_HW_EXC, 6u));
	BAD("A4 HLT", v->guest_activity = ACTIVITY_HLT; INJECT(INTR_TYPE_SOFT_INT, 1u));
	GOOD_ALL("A4 shutdown", v->guest_activity = ACTIVITY_SHUTDOWN; INJECT(INTR_TYPE_NMI, 2u));
	GOOD_ALL("A4 shutdown", v->guest_activity = ACTIVITY_SHUTDOWN; INJECT(INTR_TYPE_HW_EXC, 18u));
	BAD_ALL("A4 shutdown", v->guest_activity = ACTIVITY_SHUTDOWN; INJECT(INTR_TYPE_HW_EXC, 1u));
	BAD_ALL("A4 shutdown", v->guest_activity = ACTIVITY_SHUTDOWN; INJECT(INTR_TYPE_OTHER, 0u));
	BAD("A4 SIPI", v->guest_activity = ACTIVITY_WAIT_SIPI; INJECT(INTR_TYPE_NMI, 2u));
	BAD("A9", INJECT(INTR_TYPE_EXT, 0x30); v->guest_rflags |= RFLAGS_IF;
	    v->guest_intr_state = INTR_STATE_STI);
	BAD("A9", INJECT(INTR_TYPE_EXT, 0x30); v->guest_rflags |= RFLAGS_IF;
	    v->guest_intr_state = INTR_STATE_MOV_SS);
	BAD("A10", INJECT(INTR_TYPE_NMI, 2u); v->guest_intr_state = INTR_STATE_MOV_SS);
	BAD("A13", INJECT(INTR_TYPE_NMI, 2u); v->guest_intr_state = INTR_STATE_NMI; v->pin_ctl |= PIN_VNMI);
	GOOD("A13", INJECT(INTR_TYPE_NMI, 2u); v->guest_intr_state = INTR_STATE_NMI);
}

static void pending_debug(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		bool ok = bit <= 3 || bit == 12 || bit == 14;

		CASE_FROM((void)0, "A15", ok ? 0 : 33, 0, v->guest_pending_dbg = BIT(bit));
	}
	BAD("A16", v->guest_pending_dbg = BIT(14); v->guest_intr_state = INTR_STATE_MOV_SS);
	BAD("A16", v->guest_rflags |= RFLAGS_TF; v->guest_intr_state = INTR_STATE_MOV_SS);
	BAD("A16", v->guest_rflags |= RFLAGS_TF | RFLAGS_IF; v->guest_intr_state = INTR_STATE_STI);
	BAD("A16", v->guest_rflags |= RFLAGS_TF; v->guest_activity = ACTIVITY_HLT);
	GOOD("A16", v->guest_rflags |= RFLAGS_TF; v->guest_pending_dbg = BIT(14);
	     v->guest_intr_state = INTR_STATE_MOV_SS);
	GOOD("A16 BTF", v->guest_rflags |= RFLAGS_TF; v->guest_debugctl = 2;
	     v->guest_intr_state = INTR_STATE_MOV_SS);
	GOOD("A16 free", v->guest_rflags |= RFLAGS_TF);
	BAD("A17", v->guest_pending_dbg = BIT(16) | BIT(12));
	GOOD("A17", v->guest_pending_dbg = BIT(16) | BIT(12); f->rtm = true);
	BAD("A17", v->guest_pending_dbg = BIT(16); f->rtm = true);
	BAD("A17", v->guest_pending_dbg = BIT(16) | BIT(12) | 1; f->rtm = true);
	BAD("A17", v->guest_pending_dbg = BIT(16) | BIT(12) | BIT(14); f->rtm = true);
	BAD("A17", v->guest_pending_dbg = BIT(16) | BIT(12); f->rtm = true;
	    v->guest_intr_state = INTR_STATE_MOV_SS);
}

#define LINKED                                                                                               \
	v->link_pointer = 0x7000;                                                                            \
	f->link_readable = true;                                                                             \
	f->link_word = VMCS12_REVISION

static void link_pointer(void **state)
{
	(void)state;
	GOOD("link", LINKED);
	BAD_QUAL("L1", 4, LINKED; v->link_pointer = 0x7008);
	BAD_QUAL("L1", 4, LINKED; v->link_pointer = HIGH);
	BAD_QUAL("L2 unreadable", 4, LINKED; f->link_readable = false);
	BAD_QUAL("L2 revision", 4, LINKED; f->link_word++);
	BAD_QUAL("L2 shadow", 4, LINKED; f->link_word |= BIT32(31));
	BAD_QUAL("L2 no shadow", 4, LINKED; v->sec_ctl |= SEC_SHADOW_VMCS);
	GOOD("L2 shadow", LINKED; v->sec_ctl |= SEC_SHADOW_VMCS; f->link_word |= BIT32(31));
	BAD_QUAL("L3", 4, LINKED; v->link_pointer = f->vmcs.v);
}

static void pdptes(void **state)
{
	u64 reserved[] = {BIT(1), BIT(2), BIT(5), BIT(6), BIT(7), BIT(8), HIGH, BIT(63)};

	(void)state;
	GOOD("Q2", PAE);
	for (size_t i = 0; i < ARRAY_SIZE(reserved); i++) {
		BAD_QUAL("Q2", 2, PAE; v->guest_pdpte0 |= reserved[i]);
		BAD_QUAL("Q2", 2, PAE; v->guest_pdpte3 = 1 | reserved[i]);
		GOOD("Q2 absent", PAE; v->guest_pdpte2 = reserved[i]);
		BAD_QUAL("Q1", 2, PAE; v->sec_ctl = 0; f->pdptes_readable = true;
			 f->pdpte[1] = 1 | reserved[i]);
		GOOD("64-bit", v->guest_pdpte0 = 1 | reserved[i]);
	}
	GOOD("Q1 fields unused", PAE; v->sec_ctl = 0; f->pdptes_readable = true; v->guest_pdpte0 = ~0ull);
	BAD_QUAL("Q1 unreadable", 2, PAE; v->sec_ctl = 0);
}

static void who_needs_pdptes(void **state)
{
	struct valid t;

	(void)state;
	valid_init(&t);
	assert_false(check_needs_pdptes(&t.v));
	t.v.entry_ctl &= ~ENTRY_IA32E;
	assert_false(check_needs_pdptes(&t.v));
	t.v.sec_ctl = 0;
	assert_true(check_needs_pdptes(&t.v));
	t.v.sec_ctl = SEC_EPT;
	t.v.proc_ctl &= ~PROC_SECONDARY;
	assert_true(check_needs_pdptes(&t.v));
	t.v.guest_cr4 &= ~CR4_PAE;
	assert_false(check_needs_pdptes(&t.v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_registers),
		cmocka_unit_test(msrs),
		cmocka_unit_test(efer),
		cmocka_unit_test(rip_and_rflags),
		cmocka_unit_test(activity),
		cmocka_unit_test(events_in_activity_states),
		cmocka_unit_test(pending_debug),
		cmocka_unit_test(link_pointer),
		cmocka_unit_test(pdptes),
		cmocka_unit_test(who_needs_pdptes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
