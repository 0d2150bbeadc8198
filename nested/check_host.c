/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "Checks on Host-State Area". Pure. */
#include "nested/check_rule.h"

#define SEL_RPL_TI 7u

/* SDM "Checks Related to Address-Space Size" and "Checks on Host Control Registers, MSRs, and SSP". */
static struct fail check_host_registers(const struct vmcs12 *v, const struct check_facts *f)
{
	const struct vmx_caps *caps = f->caps;
	bool host64 = v->exit_ctl & EXIT_HOST_64;
	u64 mode = host64 ? EFER_LMA | EFER_LME : 0;

	RULE(implies(f->ia32e, host64), FAIL_HOST);                                                /* H1 */
	RULE(f->ia32e || (!host64 && !(v->entry_ctl & ENTRY_IA32E)), FAIL_HOST);                   /* H2 */
	RULE(fixed_ok(v->host_cr0, caps->cr0_fixed0, caps->cr0_fixed1), FAIL_HOST);                /* H3 */
	RULE(fixed_ok(v->host_cr4, caps->cr4_fixed0, caps->cr4_fixed1), FAIL_HOST);                /* H4 */
	RULE(implies(v->host_cr4 & CR4_CET, v->host_cr0 & CR0_WP), FAIL_HOST);                     /* H5 */
	RULE(in_width(v->host_cr3, f), FAIL_HOST);                                                 /* H6 */
	RULE(canonical(v->host_sysenter_esp, f) && canonical(v->host_sysenter_eip, f), FAIL_HOST); /* H7 */
	RULE(implies(v->exit_ctl & EXIT_LOAD_PERF, !(v->host_perf_global_ctrl & ~f->perf_global_bits)),
	     FAIL_HOST);                                                            /* H8 */
	RULE(implies(v->exit_ctl & EXIT_LOAD_PAT, pat_ok(v->host_pat)), FAIL_HOST); /* H9 */
	if (v->exit_ctl & EXIT_LOAD_EFER) {
		RULE(!(v->host_efer & ~f->efer_bits), FAIL_HOST); /* H10 */
		RULE((v->host_efer & (EFER_LMA | EFER_LME)) == mode, FAIL_HOST);
	}
	RULE(implies(v->exit_ctl & EXIT_LOAD_CET, cet_ok(v->host_s_cet, v->host_ssp, v->host_ssp_table, f)),
	     FAIL_HOST); /* H11 */
	/* H12: protection keys for supervisor pages have no field */
	return PASS;
}

/* SDM "Checks on Host Segment and Descriptor-Table Registers". */
static struct fail check_host_segments(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 selectors = v->host_es_sel | v->host_cs_sel | v->host_ss_sel | v->host_ds_sel | v->host_fs_sel |
			v->host_gs_sel | v->host_tr_sel;

	RULE(!(selectors & SEL_RPL_TI), FAIL_HOST);                                      /* H13 */
	RULE(v->host_cs_sel && v->host_tr_sel, FAIL_HOST);                               /* H14 */
	RULE((v->exit_ctl & EXIT_HOST_64) || v->host_ss_sel, FAIL_HOST);                 /* H15 */
	RULE(canonical(v->host_fs_base, f) && canonical(v->host_gs_base, f), FAIL_HOST); /* H16 */
	RULE(canonical(v->host_gdtr_base, f) && canonical(v->host_idtr_base, f), FAIL_HOST);
	RULE(canonical(v->host_tr_base, f), FAIL_HOST);
	return PASS;
}

/* SDM "Checks Related to Address-Space Size", the part that looks at the host's registers. */
static struct fail check_host_size(const struct vmcs12 *v, const struct check_facts *f)
{
	if (!(v->exit_ctl & EXIT_HOST_64)) { /* H17 */
		RULE(!(v->entry_ctl & ENTRY_IA32E), FAIL_HOST);
		RULE(!(v->host_cr4 & CR4_PCIDE), FAIL_HOST);
		RULE(!(v->host_rip >> 32), FAIL_HOST);
	} else { /* H18 */
		RULE(v->host_cr4 & CR4_PAE, FAIL_HOST);
		RULE(canonical(v->host_rip, f), FAIL_HOST);
	}
	return PASS;
}

struct fail check_host(const struct vmcs12 *v12, const struct check_facts *f)
{
	RULES(check_host_registers(v12, f));
	RULES(check_host_segments(v12, f));
	RULES(check_host_size(v12, f));
	return PASS;
}
