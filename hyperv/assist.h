/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the VP assist page and of the partition assist page, as far as L0 reads them. */
#ifndef NIDUS_HYPERV_ASSIST_H
#define NIDUS_HYPERV_ASSIST_H

#include "hv/types.h"

#define ASSIST_DIRECT_HYPERCALL BIT32(0) /* nested_features */

/* TLFS HV_VP_ASSIST_PAGE. */
struct assist_page {
	u32 apic_assist;
	u32 reserved0;
	u8 vtl_control[24];
	u32 nested_features;
	u32 hypercall_controls;
	u8 enlighten_vmentry;
	u8 reserved1[7];
	u64 current_nested_vmcs;
};

_Static_assert(offsetof(struct assist_page, nested_features) == 32, "TLFS");
_Static_assert(offsetof(struct assist_page, enlighten_vmentry) == 40, "TLFS");
_Static_assert(offsetof(struct assist_page, current_nested_vmcs) == 48, "TLFS");

#endif
