/* SPDX-License-Identifier: Apache-2.0 */
/* What an arriving application processor needs before it has a stack: shared by ap_entry.S and smp.c. */
#ifndef NIDUS_BOOT_AP_SLOT_H
#define NIDUS_BOOT_AP_SLOT_H

#define AP_SLOT_APIC_ID 0
#define AP_SLOT_STATE   4
#define AP_SLOT_STACK   8
#define AP_SLOT_SIZE    16

/* States; each change is one compare-and-swap, so that a CPU either arrives or is given up, never both. */
#define AP_WAITED_FOR 1
#define AP_ARRIVED    2
#define AP_GIVEN_UP   3

#ifndef __ASSEMBLY__
#include "hv/types.h"

struct ap_slot {
	u32 apic_id;
	u32 state;
	u64 stack_top;
};

_Static_assert(offsetof(struct ap_slot, apic_id) == AP_SLOT_APIC_ID, "ap_entry.S");
_Static_assert(offsetof(struct ap_slot, state) == AP_SLOT_STATE, "ap_entry.S");
_Static_assert(offsetof(struct ap_slot, stack_top) == AP_SLOT_STACK, "ap_entry.S");
_Static_assert(sizeof(struct ap_slot) == AP_SLOT_SIZE, "ap_entry.S");
#endif

#endif
