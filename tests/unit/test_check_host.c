/* SPDX-License-Identifier: Apache-2.0 */
/* Every rule of SDM "Checks on Host-State Area": error 8, and the edge values that pass. */
/* SOURCES: nested/check_host.c nested/caps.c nested/vmcs12.c */
#define CHECK       check_host
#define CHECK_ERROR 8
#include "tests/unit/check_cases.h"

#define HIGH     BIT(VALID_PHYS_BITS)
#define LOW_EDGE 0x00007fffffffffffull /* last canonical address of the lower half */
#define NOT_CAN  0x0000800000000000ull
#define TOP_EDGE 0xffff800000000000ull

/* A 32-bit L1 with a 32-bit host area. */
#define HOST32                                                                                               \
	f->ia32e = false;                                                                                    \
	v->exit_ctl &= ~(EXIT_HOST_64 | EXIT_LOAD_EFER);                                                     \
	v->entry_ctl &= ~ENTRY_IA32E;                                                                        \
	v->host_rip = 0x1000

static void address_space_size(void **state)
{
	(void)state;
	GOOD("valid", (void)0);
	GOOD("32-bit", HOST32);
	BAD("H1", HOST32; f->ia32e = true);
	BAD("H2", HOST32; v->exit_ctl |= EXIT_HOST_64);
	BAD("H2", HOST32; v->entry_ctl |= ENTRY_IA32E);
	BAD("H17", HOST32; v->host_cr4 |= CR4_PCIDE);
	BAD("H17", HOST32; v->host_rip = BIT(32));
	GOOD("H17", HOST32; v->host_rip = BIT(32) - 1);
	BAD("H18", v->host_cr4 &= ~CR4_PAE);
	BAD("H18", v->host_rip = NOT_CAN);
	GOOD("H18", v->host_rip = LOW_EDGE);
	GOOD("H18 57 bits", v->host_rip = NOT_CAN; f->linear_bits = 57);
}

static void control_registers(void **state)
{
	static const u64 cr0_needs[] = {CR0_PE, CR0_NE, CR0_PG};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cr0_needs); i++)
		BAD("H3", v->host_cr0 &= ~cr0_needs[i]);
	BAD("H3", v->host_cr0 |= BIT(32));
	GOOD("H3", v->host_cr0 |= CR0_CD | CR0_NW);
	BAD("H4", v->host_cr4 &= ~CR4_VMXE);
	BAD("H4", v->host_cr4 |= CR4_LA57);
	BAD("H4", v->host_cr4 |= BIT(63));
	BAD("H5", caps->cr4_fixed1 |= CR4_CET; v->host_cr4 |= CR4_CET; v->host_cr0 &= ~CR0_WP);
	GOOD("H5", caps->cr4_fixed1 |= CR4_CET; v->host_cr4 |= CR4_CET);
	BAD("H6", v->host_cr3 = HIGH);
	GOOD("H6", v->host_cr3 = HIGH - 1);
	BAD("H6", v->host_cr3 |= BIT(63));
}

static void msrs(void **state)
{
	(void)state;
	BAD("H7", v->host_sysenter_esp = NOT_CAN);
	BAD("H7", v->host_sysenter_eip = TOP_EDGE - 1);
	GOOD("H7", v->host_sysenter_esp = TOP_EDGE);
	BAD("H8", v->exit_ctl |= EXIT_LOAD_PERF; v->host_perf_global_ctrl = 4; f->perf_global_bits = 3);
	GOOD("H8", v->exit_ctl |= EXIT_LOAD_PERF; v->host_perf_global_ctrl = 3; f->perf_global_bits = 3);
	GOOD("H8 off", v->host_perf_global_ctrl = ~0ull);
	for (u64 type = 0; type < 256; type++)
		for (unsigned byte = 0; byte < 64; byte += 8) {
			bool ok = type <= 7 && type != 2 && type != 3;

			CASE_FROM((void)0, "H9", ok ? 0 : 8, 0, v->host_pat = type << byte);
		}
	GOOD("H9 off", v->exit_ctl &= ~EXIT_LOAD_PAT; v->host_pat = ~0ull);
}

static void efer(void **state)
{
	(void)state;
	BAD("H10 reserved", v->host_efer |= BIT(1));
	BAD("H10 LMA", v->host_efer &= ~EFER_LMA);
	BAD("H10 LME", v->host_efer &= ~EFER_LME);
	GOOD("H10", v->host_efer |= EFER_SCE | EFER_NXE);
	GOOD("H10 off", v->exit_ctl &= ~EXIT_LOAD_EFER; v->host_efer = ~0ull);
	BAD("H10 32-bit", HOST32; v->exit_ctl |= EXIT_LOAD_EFER);
	BAD("H10 32-bit", HOST32; v->exit_ctl |= EXIT_LOAD_EFER; v->host_efer = EFER_LME);
	GOOD("H10 32-bit", HOST32; v->exit_ctl |= EXIT_LOAD_EFER; v->host_efer = EFER_NXE);
}

static void cet(void **state)
{
	(void)state;
	GOOD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET);
	BAD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET; v->host_s_cet = BIT(6));
	BAD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET; v->host_s_cet = BIT(10) | BIT(11));
	BAD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET; v->host_ssp = 2);
	BAD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET; v->host_ssp = NOT_CAN);
	BAD_ALL("H11", v->exit_ctl |= EXIT_LOAD_CET; v->host_ssp_table = NOT_CAN);
}

static void selectors(void **state)
{
	(void)state;
	for (unsigned bit = 1; bit <= 4; bit <<= 1) {
		BAD("H13", v->host_es_sel = (u16)bit);
		BAD("H13", v->host_cs_sel |= (u16)bit);
		BAD("H13", v->host_ss_sel |= (u16)bit);
		BAD("H13", v->host_ds_sel = (u16)bit);
		BAD("H13", v->host_fs_sel = (u16)bit);
		BAD("H13", v->host_gs_sel = (u16)bit);
		BAD("H13", v->host_tr_sel |= (u16)bit);
	}
	BAD("H14", v->host_cs_sel = 0);
	BAD("H14", v->host_tr_sel = 0);
	GOOD("H15", v->host_ss_sel = 0);
	BAD("H15", HOST32; v->host_ss_sel = 0);
}

static void bases(void **state)
{
	(void)state;
	BAD("H16", v->host_fs_base = NOT_CAN);
	BAD("H16", v->host_gs_base = NOT_CAN);
	BAD("H16", v->host_tr_base = NOT_CAN);
	BAD("H16", v->host_gdtr_base = NOT_CAN);
	BAD("H16", v->host_idtr_base = NOT_CAN);
	GOOD("H16", v->host_fs_base = LOW_EDGE; v->host_gs_base = TOP_EDGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_space_size),
		cmocka_unit_test(control_registers),
		cmocka_unit_test(msrs),
		cmocka_unit_test(efer),
		cmocka_unit_test(cet),
		cmocka_unit_test(selectors),
		cmocka_unit_test(bases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
