/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SDM's checks of a VM entry, on L0's own copy of the VMCS. Pure: what lies in guest memory or in L1's
 * registers is handed in as facts. The order of calls is check_controls, check_host, check_guest, then
 * check_msr_load for each entry of the list.
 */
#ifndef NIDUS_NESTED_CHECKS_H
#define NIDUS_NESTED_CHECKS_H

#include "hv/types.h"
#include "nested/caps.h"
#include "nested/vmcs12.h"

/* err 0: passed. 7 and 8 are VM-instruction error numbers (VMfailValid), 33 and 34 exit reasons. `line` is
 * for the trace. */
struct fail {
	u8 err;
	u16 line;
	u32 qual; /* exit qualification of 33; 34's is the number of the list entry, which only the caller
		     knows */
};

/* What the rules need to know besides VMCS12. */
struct check_facts {
	const struct vmx_caps *caps; /* as L1 sees them */
	u8 phys_bits;                /* MAXPHYADDR that L1 is shown */
	u8 linear_bits;              /* 48, or 57 with LA57 */
	bool ia32e;                  /* L1's EFER.LMA */
	bool rtm;                    /* L1's CPUID offers RTM */
	u64 efer_bits;               /* bits that L1's IA32_EFER may hold */
	u64 debugctl_bits;           /* bits that its IA32_DEBUGCTL may hold */
	u64 perf_global_bits;        /* bits that its IA32_PERF_GLOBAL_CTRL may hold */

	/* From guest memory, copied once. */
	u8 vtpr;            /* byte 0x80 of the virtual-APIC page; looked at with TPR shadow only */
	gpa_t vmcs;         /* current-VMCS pointer */
	bool link_readable; /* the page at the link pointer is RAM; looked at when the pointer is not all ones
			     */
	u32 link_word;      /* its first dword */
	bool pdptes_readable; /* as below */
	u64 pdpte[4];         /* at CR3; looked at when check_needs_pdptes */
};

/* VMCS12's secondary controls count only when the primary ones activate them. */
static inline u32 vmcs12_sec(const struct vmcs12 *v12)
{
	return v12->proc_ctl & PROC_SECONDARY ? v12->sec_ctl : 0;
}

/* An EPTP as a VM entry and EPTP switching take it. */
bool eptp_ok(u64 eptp, const struct check_facts *f);
/* SDM "Checks on VMX Controls": error 7. */
struct fail check_controls(const struct vmcs12 *v12, const struct check_facts *f);
/* SDM "Checks on Host-State Area": error 8. */
struct fail check_host(const struct vmcs12 *v12, const struct check_facts *f);
/* SDM "Checking the Guest State": reason 33 with qualification. */
struct fail check_guest(const struct vmcs12 *v12, const struct check_facts *f);
/* The entry loads PDPTEs from memory at guest CR3: PAE paging without EPT. Then facts.pdpte is needed. */
bool check_needs_pdptes(const struct vmcs12 *v12);

/* SDM "VM-Exit and VM-Entry MSR areas". */
struct msr_entry {
	u32 index, reserved;
	u64 value;
};
/* One entry of an entry-load or exit-load list: SDM "Loading MSRs". Reason 34; the WRMSR itself may still
 * fail. */
struct fail check_msr_load(const struct msr_entry *e);
/* One entry of an exit-store list: SDM "Saving MSRs". A failure is a VMX abort. */
struct fail check_msr_store(const struct msr_entry *e);

#endif
