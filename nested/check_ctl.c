/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SDM "Checks on VMX Controls". Pure. A row for a control that VMCS12 has no field for is a comment: its bit
 * fails the capability rule already.
 */
#include "nested/check_rule.h"

#define EPTP_TYPE(eptp) ((eptp)&7u)
#define EPTP_WALK(eptp) ((eptp) & (7u << 3))
#define TPR_BITS        0xfu
#define LIST_ENTRY      16u
#define PI_DESC_ALIGN   64u

/* All bits of `must` are in `value`, and none that is not in `may`. */
static bool allowed(u32 value, u64 msr)
{
	return !(caps_must1(msr) & ~value) && !(value & ~caps_may1(msr));
}

static bool eptp_type_ok(u64 eptp, const struct vmx_caps *caps)
{
	if (EPTP_TYPE(eptp) == MEMTYPE_UC)
		return caps->ept_vpid & EPT_CAP_UC;
	return EPTP_TYPE(eptp) == MEMTYPE_WB && (caps->ept_vpid & EPT_CAP_WB);
}

/* An MSR list: 16-byte aligned, first and last byte within the physical width. The product needs 64 bits. */
static bool list_ok(u64 addr, u32 count, const struct check_facts *f)
{
	return !count || (!(addr & (LIST_ENTRY - 1)) && in_width(addr, f) &&
			  in_width(addr + (u64)count * LIST_ENTRY - 1, f));
}

/* SDM "VM-Execution Control Fields": the words themselves and the primary controls. */
static struct fail check_exec(const struct vmcs12 *v, const struct check_facts *f)
{
	const struct vmx_caps *caps = f->caps;
	u32 pin = v->pin_ctl, proc = v->proc_ctl, sec = vmcs12_sec(v);
	u32 tpr = v->tpr_threshold;

	RULE(allowed(pin, caps->true_pin), FAIL_CONTROLS);                            /* X1 */
	RULE(allowed(proc, caps->true_proc), FAIL_CONTROLS);                          /* X2 */
	RULE(implies(proc & PROC_SECONDARY, allowed(sec, caps->sec)), FAIL_CONTROLS); /* X3 */
	/* X4: tertiary controls have no field */
	RULE(v->cr3_target_count <= VMX_MISC_CR3_TARGETS(caps->misc), FAIL_CONTROLS);      /* X5 */
	RULE(implies(proc & PROC_IO_BITMAPS, page_ok(v->io_bitmap_a, f)), FAIL_CONTROLS);  /* X6 */
	RULE(implies(proc & PROC_IO_BITMAPS, page_ok(v->io_bitmap_b, f)), FAIL_CONTROLS);  /* X7 */
	RULE(implies(proc & PROC_MSR_BITMAPS, page_ok(v->msr_bitmap, f)), FAIL_CONTROLS);  /* X8 */
	RULE(implies(proc & PROC_TPR_SHADOW, page_ok(v->virtual_apic, f)), FAIL_CONTROLS); /* X9 */
	if ((proc & PROC_TPR_SHADOW) && !(sec & SEC_VID)) {
		RULE(!(tpr & ~TPR_BITS), FAIL_CONTROLS);                                            /* X10 */
		RULE((sec & SEC_APIC_ACCESSES) || (tpr & TPR_BITS) <= f->vtpr >> 4, FAIL_CONTROLS); /* X11 */
	}
	if (!(proc & PROC_TPR_SHADOW))
		RULE(!(sec & (SEC_X2APIC | SEC_APIC_REGS | SEC_VID)), FAIL_CONTROLS); /* X12 */
	RULE(implies(pin & PIN_VNMI, pin & PIN_NMI), FAIL_CONTROLS);                  /* X13 */
	RULE(implies(proc & PROC_NMI_WINDOW, pin & PIN_VNMI), FAIL_CONTROLS);         /* X14 */
	return PASS;
}

/* SDM "VM-Execution Control Fields": APIC virtualization, posted interrupts and VPID. */
static struct fail check_exec_apic(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 pin = v->pin_ctl, sec = vmcs12_sec(v);

	RULE(implies(sec & SEC_APIC_ACCESSES, page_ok(v->apic_access, f)), FAIL_CONTROLS); /* X15 */
	RULE(implies(sec & SEC_X2APIC, !(sec & SEC_APIC_ACCESSES)), FAIL_CONTROLS);        /* X16 */
	RULE(implies(sec & SEC_VID, pin & PIN_EXT_INTR), FAIL_CONTROLS);                   /* X17 */
	if (pin & PIN_POSTED) {
		RULE(sec & SEC_VID, FAIL_CONTROLS);                                                  /* X18 */
		RULE(v->exit_ctl & EXIT_ACK_INTR, FAIL_CONTROLS);                                    /* X19 */
		RULE(v->pi_vector <= 0xff, FAIL_CONTROLS);                                           /* X20 */
		RULE(!(v->pi_desc & (PI_DESC_ALIGN - 1)) && in_width(v->pi_desc, f), FAIL_CONTROLS); /* X21 */
	}
	RULE(implies(sec & SEC_VPID, v->vpid != 0), FAIL_CONTROLS); /* X22 */
	return PASS;
}

/* X23: memory type. X24: walk length. X25: flags. X26: reserved bits; supervisor shadow stacks (bit 7) are
 * not offered. */
bool eptp_ok(u64 eptp, const struct check_facts *f)
{
	return eptp_type_ok(eptp, f->caps) && EPTP_WALK(eptp) == EPTP_WALK4 &&
	       implies(eptp & EPTP_AD, f->caps->ept_vpid & EPT_CAP_AD) && !(eptp & 0xf80) &&
	       in_width(eptp, f);
}

/* SDM "VM-Execution Control Fields": EPT and what builds on it. */
static struct fail check_exec_ept(const struct vmcs12 *v, const struct check_facts *f)
{
	const struct vmx_caps *caps = f->caps;
	u32 sec = vmcs12_sec(v);
	bool ept = sec & SEC_EPT;

	RULE(implies(ept, eptp_ok(v->eptp, f)), FAIL_CONTROLS);                  /* X23 to X26 */
	RULE(implies(sec & SEC_PML, ept), FAIL_CONTROLS);                        /* X27 */
	RULE(implies(sec & SEC_PML, page_ok(v->pml_address, f)), FAIL_CONTROLS); /* X28 */
	RULE(implies(sec & SEC_UNRESTRICTED, ept), FAIL_CONTROLS);               /* X29 */
	RULE(implies(sec & SEC_MBE, ept), FAIL_CONTROLS);                        /* X30 */
	/* X31: the sub-page table pointer has no field */
	if (sec & SEC_VMFUNC) {
		RULE(!(v->vmfunc_ctl & ~caps->vmfunc), FAIL_CONTROLS); /* X32 */
		RULE(implies(v->vmfunc_ctl & BIT(0), ept && page_ok(v->eptp_list, f)),
		     FAIL_CONTROLS); /* X33 */
	}
	if (sec & SEC_SHADOW_VMCS) {
		RULE(page_ok(v->vmread_bitmap, f), FAIL_CONTROLS); /* X34 */
		RULE(page_ok(v->vmwrite_bitmap, f), FAIL_CONTROLS);
	}
	RULE(implies(sec & SEC_VE, page_ok(v->ve_info, f)), FAIL_CONTROLS); /* X35 */
	/* X36: no processor-trace controls */
	RULE(implies(sec & SEC_TSC_SCALING, v->tsc_multiplier != 0), FAIL_CONTROLS); /* X37 */
	/* X38, X39: nothing to check. X40, X41: tertiary controls have no field */
	return PASS;
}

/* SDM "VM-Exit Control Fields". */
static struct fail check_exit(const struct vmcs12 *v, const struct check_facts *f)
{
	RULE(allowed(v->exit_ctl, f->caps->true_exit), FAIL_CONTROLS);                       /* E1 */
	RULE(implies(v->exit_ctl & EXIT_SAVE_TIMER, v->pin_ctl & PIN_TIMER), FAIL_CONTROLS); /* E2 */
	RULE(list_ok(v->exit_msr_store_addr, v->exit_msr_store_count, f), FAIL_CONTROLS);    /* E3 */
	RULE(list_ok(v->exit_msr_load_addr, v->exit_msr_load_count, f), FAIL_CONTROLS);      /* E4 */
	return PASS;
}

/* #DF, #TS, #NP, #SS, #GP, #PF and #AC push an error code; #CP too where the CPU has it. */
static bool vector_has_error(u8 vec, const struct vmx_caps *caps)
{
	u32 with_error = BIT32(VEC_DF) | BIT32(VEC_TS) | BIT32(VEC_NP) | BIT32(VEC_SS) | BIT32(VEC_GP) |
			 BIT32(VEC_PF) | BIT32(VEC_AC);

	if (caps->cr4_fixed1 & CR4_CET)
		with_error |= BIT32(21);
	return vec < 32 && (with_error >> vec & 1);
}

/* T9: which injections deliver an error code. */
static bool error_code_ok(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 info = v->entry_intr_info;
	bool protected = !(vmcs12_sec(v) & SEC_UNRESTRICTED) || (v->guest_cr0 & CR0_PE);
	bool possible = protected && INTR_TYPE(info) == INTR_TYPE_HW_EXC;

	if (f->caps->basic & VMX_BASIC_ANY_ERROR)
		return implies(info & INTR_ERROR_CODE, possible);
	return !!(info & INTR_ERROR_CODE) == (possible && vector_has_error(INTR_VECTOR(info), f->caps));
}

/* SDM "VM-Entry Control Fields", the fields of event injection. Pre: the information is valid. */
static struct fail check_injection(const struct vmcs12 *v, const struct check_facts *f)
{
	u32 info = v->entry_intr_info, type = INTR_TYPE(info), len = v->entry_insn_len;
	u8 vec = INTR_VECTOR(info);
	bool mtf = caps_may1(f->caps->true_proc) & PROC_MTF;
	bool software =
		type == INTR_TYPE_SOFT_INT || type == INTR_TYPE_PRIV_SOFT || type == INTR_TYPE_SOFT_EXC;
	u32 least = f->caps->misc & VMX_MISC_ZERO_LEN ? 0 : 1;

	RULE(type != 1 && implies(type == INTR_TYPE_OTHER, mtf), FAIL_CONTROLS);            /* T5 */
	RULE(implies(type == INTR_TYPE_NMI, vec == VEC_NMI), FAIL_CONTROLS);                /* T6 */
	RULE(implies(type == INTR_TYPE_HW_EXC, vec <= 31), FAIL_CONTROLS);                  /* T7 */
	RULE(implies(type == INTR_TYPE_OTHER, vec == 0), FAIL_CONTROLS);                    /* T8 */
	RULE(error_code_ok(v, f), FAIL_CONTROLS);                                           /* T9 */
	RULE(implies(info & INTR_ERROR_CODE, !(v->entry_error_code >> 16)), FAIL_CONTROLS); /* T10 */
	RULE(!(info & 0x7ffff000u), FAIL_CONTROLS);                                         /* T11 */
	RULE(implies(software, len >= least && len <= 15), FAIL_CONTROLS);                  /* T12 */
	return PASS;
}

/* SDM "VM-Entry Control Fields". */
static struct fail check_entry(const struct vmcs12 *v, const struct check_facts *f)
{
	RULE(allowed(v->entry_ctl, f->caps->true_entry), FAIL_CONTROLS); /* T1 */
	RULE(!(v->entry_ctl & ENTRY_SMM), FAIL_CONTROLS);                /* T2, T4 */
	RULE(!(v->entry_ctl & ENTRY_DUAL_MONITOR), FAIL_CONTROLS);       /* T3 */
	if (v->entry_intr_info & INTR_VALID)
		RULES(check_injection(v, f));                                             /* T5 to T12 */
	RULE(list_ok(v->entry_msr_load_addr, v->entry_msr_load_count, f), FAIL_CONTROLS); /* T13 */
	/* T14: with an enlightened VMCS the capabilities of that personality hide those controls */
	return PASS;
}

struct fail check_controls(const struct vmcs12 *v12, const struct check_facts *f)
{
	RULES(check_exec(v12, f));
	RULES(check_exec_apic(v12, f));
	RULES(check_exec_ept(v12, f));
	RULES(check_exit(v12, f));
	RULES(check_entry(v12, f));
	return PASS;
}
