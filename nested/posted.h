/* SPDX-License-Identifier: Apache-2.0 */
/* Posted-interrupt processing on L1's memory. It decides nothing about when. */
#ifndef NIDUS_NESTED_POSTED_H
#define NIDUS_NESTED_POSTED_H

#include "mm/l1mem.h"

/*
 * The notification has come: clear ON in the descriptor and move its requests into those of the virtual-APIC
 * page. The highest of them, for RVI; 0: there was none. Memory that is not there has none.
 */
u8 posted_take(const struct l1mem *mem, gpa_t desc, gpa_t vapic);

#endif
