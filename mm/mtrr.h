/* SPDX-License-Identifier: Apache-2.0 */
/* Memory types the firmware set by MTRRs. mtrr_read looks at this CPU; the rest is pure and compiles on the
 * host. */
#ifndef NIDUS_MM_MTRR_H
#define NIDUS_MM_MTRR_H

#include "hv/types.h"

#define MTRR_VARIABLE_MAX 32

enum memory_type { MT_UC = 0, MT_WC = 1, MT_WT = 4, MT_WP = 5, MT_WB = 6 };

struct mtrrs {
	u64 def;       /* IA32_MTRR_DEF_TYPE */
	bool fixed_ok; /* IA32_MTRRCAP bit 8 */
	u64 fixed[11]; /* 64K_00000, 16K_80000, 16K_A0000, 4K_C0000 ... 4K_F8000 */
	unsigned nr_var;
	u64 base[MTRR_VARIABLE_MAX], mask[MTRR_VARIABLE_MAX];
	u64 phys_mask; /* bits of a physical address, page offset excluded */
};

extern struct mtrrs host_mtrrs;

/* Fill host_mtrrs from this CPU. */
void mtrr_read(void);
/* Memory type of the byte at `a`. SDM "MTRR Precedences". */
enum memory_type mtrr_type_at(const struct mtrrs *m, u64 a);
/* One type for all of [a, a + size) (4 KiB multiples)? *type is the type at `a` in any case. */
bool mtrr_uniform(const struct mtrrs *m, u64 a, u64 size, enum memory_type *type);

#endif
