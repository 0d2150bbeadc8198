/* SPDX-License-Identifier: Apache-2.0 */
/* One entry of an MSR list. Pure: whether the MSR exists and takes the value is hv/msr's to say. */
#include "nested/check_rule.h"

#define X2APIC_RANGE        0x8u /* bits 31:8 of the index */
#define MSR_SMM_MONITOR_CTL 0x9bu
#define MSR_SMBASE          0x9eu

/* SDM "Loading MSRs". */
struct fail check_msr_load(const struct msr_entry *e)
{
	RULE(e->index != MSR_FS_BASE && e->index != MSR_GS_BASE, FAIL_MSR);       /* M1 */
	RULE(e->index >> 8 != X2APIC_RANGE, FAIL_MSR);                            /* M2 */
	RULE(e->index != MSR_SMM_MONITOR_CTL, FAIL_MSR);                          /* M3 */
	RULE(e->index != MSR_UCODE_WRITE && e->index != MSR_UCODE_REV, FAIL_MSR); /* M4 */
	RULE(!e->reserved, FAIL_MSR);                                             /* M5 */
	return PASS;
}

/* SDM "Saving MSRs". FS and GS base may be stored. */
struct fail check_msr_store(const struct msr_entry *e)
{
	RULE(e->index >> 8 != X2APIC_RANGE, FAIL_MSR);
	RULE(e->index != MSR_SMBASE, FAIL_MSR);
	RULE(!e->reserved, FAIL_MSR);
	return PASS;
}
