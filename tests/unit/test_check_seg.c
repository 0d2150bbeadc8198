/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "Checks on Guest Segment Registers" and "Checks on Guest Descriptor-Table Registers", rule by rule. */
/* SOURCES: nested/check_guest.c nested/check_seg.c nested/caps.c nested/vmcs12.c */
#define CHECK       check_guest
#define CHECK_ERROR 33
#include "tests/unit/check_cases.h"

#define NOT_CAN    0x0000800000000000ull
#define RESTRICTED v->sec_ctl = SEC_EPT
#define DPL(n)     ((u32)(n) << 5)
#define P_S        0x90u

/* Virtual-8086 mode. */
#define VM86                                                                                                 \
	v->entry_ctl &= ~ENTRY_IA32E;                                                                        \
	v->guest_efer = 0;                                                                                   \
	v->guest_rip = 0;                                                                                    \
	v->guest_rflags |= RFLAGS_VM;                                                                        \
	v->guest_es_sel = v->guest_cs_sel = v->guest_ss_sel = v->guest_ds_sel = 0x1000;                      \
	v->guest_fs_sel = v->guest_gs_sel = 0x2000;                                                          \
	v->guest_es_base = v->guest_cs_base = v->guest_ss_base = v->guest_ds_base = 0x10000;                 \
	v->guest_fs_base = v->guest_gs_base = 0x20000;                                                       \
	v->guest_es_limit = v->guest_cs_limit = v->guest_ss_limit = v->guest_ds_limit = 0xffff;              \
	v->guest_fs_limit = v->guest_gs_limit = 0xffff;                                                      \
	v->guest_es_ar = v->guest_cs_ar = v->guest_ss_ar = v->guest_ds_ar = 0xf3;                            \
	v->guest_fs_ar = v->guest_gs_ar = 0xf3

static void vm86(void **state)
{
	(void)state;
	GOOD("VM86", VM86);
	BAD("S3", VM86; v->guest_es_base++);
	BAD("S3", VM86; v->guest_cs_base++);
	BAD("S3", VM86; v->guest_ss_base++);
	BAD("S3", VM86; v->guest_ds_base++);
	BAD("S3", VM86; v->guest_fs_base++);
	BAD("S3", VM86; v->guest_gs_base++);
	BAD("S6", VM86; v->guest_es_limit--);
	BAD("S6", VM86; v->guest_gs_limit++);
	BAD("S6", VM86; v->guest_cs_ar = 0xfb);
	BAD("S6", VM86; v->guest_ss_ar = 0x93);
	BAD("S6", VM86; v->guest_fs_ar = AR_UNUSABLE);
	BAD("S20", VM86; v->guest_tr_ar = 0x89);
	BAD("P4", VM86; v->guest_cr0 = CR0_NE);
}

static void selectors_and_bases(void **state)
{
	(void)state;
	BAD("S1", v->guest_tr_sel |= 4);
	BAD("S1", v->guest_ldtr_ar = 0x82; v->guest_ldtr_sel = 4);
	GOOD("S1 unusable", v->guest_ldtr_sel = 4);
	BAD("S2", RESTRICTED; v->guest_ss_sel = 0x1b; v->guest_ss_ar = 0xc0f3; v->guest_cs_ar = 0xa09f);
	GOOD("S2", v->guest_ss_sel = 0x1b; v->guest_ss_ar = 0xc0f3; v->guest_cs_ar = 0xa09f);
	BAD("S4", v->guest_tr_base = NOT_CAN);
	BAD("S4", v->guest_fs_base = NOT_CAN);
	BAD("S4", v->guest_gs_base = NOT_CAN);
	GOOD("S4 unusable with a base", v->guest_fs_base = 0xffff800000000000);
	BAD("S4", v->guest_ldtr_ar = 0x82; v->guest_ldtr_base = NOT_CAN);
	GOOD("S4 unusable", v->guest_ldtr_base = NOT_CAN);
	BAD("S5", v->guest_cs_base = BIT(32));
	BAD("S5", v->guest_ss_base = BIT(32));
	BAD("S5", v->guest_ds_base = BIT(32));
	BAD("S5", v->guest_es_base = BIT(32));
	GOOD("S5 unusable", v->guest_es_base = BIT(32); v->guest_es_ar = AR_UNUSABLE);
	BAD("D1", v->guest_gdtr_base = NOT_CAN);
	BAD("D1", v->guest_idtr_base = NOT_CAN);
	BAD("D2", v->guest_gdtr_limit = 0x10000);
	BAD("D2", v->guest_idtr_limit = 0x10000);
	GOOD("D2", v->guest_gdtr_limit = v->guest_idtr_limit = 0xffff);
}

/* NE-07: CS type against the privilege of CS and SS, with unrestricted guest. */
static void cs_matrix(void **state)
{
	(void)state;
	for (u32 type = 0; type < 16; type++)
		for (u32 cs = 0; cs < 4; cs++)
			for (u32 ss = 0; ss < 4; ss++) {
				bool exact = (type == 9 || type == 11) && cs == ss;
				bool conform = (type == 13 || type == 15) && cs <= ss;
				bool data = type == 3 && cs == 0 && ss == 0;

				CASE_FROM((void)0, "S7 S11 S12 S13 S15", exact || conform || data ? 0 : 33, 0,
					  v->guest_cs_ar = 0xa000 | P_S | type | DPL(cs);
					  v->guest_ss_ar = 0xc000 | P_S | 3 | DPL(ss));
			}
	BAD("S7 restricted", RESTRICTED; v->guest_cs_ar = 0xc093; v->guest_rip = 0);
}

/* A null SS of 64-bit mode keeps its DPL. */
static void unusable_ss(void **state)
{
	(void)state;
	GOOD("null SS", v->guest_ss_ar = AR_UNUSABLE; v->guest_ss_sel = 0);
	BAD("S12", v->guest_ss_ar = AR_UNUSABLE | DPL(3));
	GOOD("S12", v->guest_ss_ar = AR_UNUSABLE | DPL(3); v->guest_cs_ar = 0xa0fb);
	BAD("S14", RESTRICTED; v->guest_ss_ar = AR_UNUSABLE | DPL(3); v->guest_cs_ar = 0xa0fb);
	GOOD("S14", RESTRICTED; v->guest_ss_ar = AR_UNUSABLE | DPL(3); v->guest_cs_ar = 0xa0fb;
	     v->guest_ss_sel = 3; v->guest_cs_sel |= 3; v->guest_ds_ar = v->guest_es_ar = 0xc0f3);
}

static void ss_and_data(void **state)
{
	(void)state;
	for (u32 type = 0; type < 16; type++) {
		CASE_FROM((void)0, "S8", type == 3 || type == 7 ? 0 : 33, 0, v->guest_ss_ar = 0xc090 | type);
		CASE_FROM((void)0, "S9", (type & 1) && (!(type & 8) || (type & 2)) ? 0 : 33, 0,
			  v->guest_ds_ar = 0xc090 | type);
	}
	BAD("S9 ES", v->guest_es_ar = 0xc092);
	BAD("S9 FS", v->guest_fs_ar = 0xc092);
	BAD("S9 GS", v->guest_gs_ar = 0xc092);
	BAD("S15 real", v->entry_ctl &= ~ENTRY_IA32E; v->guest_efer = 0; v->guest_cr0 = CR0_NE;
	    v->guest_rip = 0; v->guest_cs_ar = 0x9b | DPL(3); v->guest_cs_limit = 0xffff;
	    v->guest_ss_ar = 0xc0f3);
	GOOD("S15 real", v->entry_ctl &= ~ENTRY_IA32E; v->guest_efer = 0; v->guest_cr0 = CR0_NE;
	     v->guest_rip = 0; v->guest_cs_ar = 0x93; v->guest_cs_limit = 0xffff);
	BAD("S16", RESTRICTED; v->guest_ds_sel = 0x1b);
	BAD("S16 type 11", RESTRICTED; v->guest_ds_sel = 0x1b; v->guest_ds_ar = 0xc09b);
	GOOD("S16 conforming", RESTRICTED; v->guest_ds_sel = 0x1b; v->guest_ds_ar = 0xc09f);
	GOOD("S16", RESTRICTED; v->guest_ds_sel = 0x1b; v->guest_ds_ar = 0xc0f3);
	GOOD("S16 unrestricted", v->guest_ds_sel = 0x1b);
}

static void common_bits(void **state)
{
	(void)state;
	BAD("S10", v->guest_cs_ar &= ~0x10u);
	BAD("S10", v->guest_ds_ar &= ~0x10u);
	BAD("S17", v->guest_cs_ar &= ~0x80u);
	BAD("S17", v->guest_ss_ar &= ~0x80u);
	for (unsigned bit = 8; bit < 32; bit++)
		if ((bit < 12 || bit > 16)) {
			BAD("S17", v->guest_cs_ar |= BIT32(bit));
			BAD("S17", v->guest_es_ar |= BIT32(bit));
			BAD("S20", v->guest_tr_ar |= BIT32(bit));
			BAD("S21", v->guest_ldtr_ar = 0x82 | BIT32(bit));
		}
	GOOD("unusable", v->guest_es_ar = ~0u);
	BAD("S18", v->guest_cs_ar |= BIT32(14));
	GOOD("S18 compatibility", v->guest_cs_ar = 0xc09b; v->guest_rip = 0);
	BAD("S19", v->guest_cs_limit = 0xffff0fff - 1);
	BAD("S19", v->guest_ds_limit = 0xfffffffe);
	BAD("S19", v->guest_ss_ar &= ~0x8000u);
	GOOD("S19", v->guest_ds_ar &= ~0x8000u; v->guest_ds_limit = 0xfffff);
	GOOD("S19", v->guest_ds_ar &= ~0x8000u; v->guest_ds_limit = 0);
	GOOD("S19", v->guest_ds_limit = 0xfff);
}

static void system_segments(void **state)
{
	(void)state;
	BAD("S20 unusable", v->guest_tr_ar |= AR_UNUSABLE);
	for (u32 type = 0; type < 16; type++) {
		CASE_FROM((void)0, "S20", type == 11 ? 0 : 33, 0, v->guest_tr_ar = 0x80 | type);
		CASE_FROM((void)0, "S20 32-bit", type == 11 || type == 3 ? 0 : 33, 0,
			  v->entry_ctl &= ~ENTRY_IA32E;
			  v->guest_efer = 0; v->guest_rip = 0; v->guest_cs_ar = 0xc09b;
			  v->guest_tr_ar = 0x80 | type);
		CASE_FROM((void)0, "S21", type == 2 ? 0 : 33, 0, v->guest_ldtr_ar = 0x80 | type);
	}
	BAD("S20", v->guest_tr_ar |= 0x10);
	BAD("S20", v->guest_tr_ar &= ~0x80u);
	BAD("S20", v->guest_tr_limit = 0x100000);
	BAD("S20", v->guest_tr_ar |= 0x8000);
	GOOD("S20", v->guest_tr_ar |= 0x8000; v->guest_tr_limit = 0xfff);
	BAD("S21", v->guest_ldtr_ar = 0x92);
	BAD("S21", v->guest_ldtr_ar = 0x02);
	BAD("S21", v->guest_ldtr_ar = 0x82; v->guest_ldtr_limit = 0x100000);
	GOOD("S21", v->guest_ldtr_ar = 0x82; v->guest_ldtr_limit = 0xfffff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vm86),
		cmocka_unit_test(selectors_and_bases),
		cmocka_unit_test(cs_matrix),
		cmocka_unit_test(unusable_ss),
		cmocka_unit_test(ss_and_data),
		cmocka_unit_test(common_bits),
		cmocka_unit_test(system_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
