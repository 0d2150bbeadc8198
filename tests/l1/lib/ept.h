/* SPDX-License-Identifier: Apache-2.0 */
/* EPT tables of an L1 program for its L2. Guest-physical (L2) to physical as the program sees it. */
#pragma once

#include "types.h"

#define EPT_R       BIT(0)
#define EPT_W       BIT(1)
#define EPT_X       BIT(2)
#define EPT_RWX     (EPT_R | EPT_W | EPT_X)
#define EPT_WB      (6ull << 3)
#define EPT_LARGE   BIT(7)
#define EPT_A       BIT(8)
#define EPT_D       BIT(9)
#define EPTP_WB     6ull
#define EPTP_WALK_4 (3ull << 3)
#define EPTP_AD     BIT(6)

#define EPT_CAP_EXEC_ONLY BIT(0)
#define EPT_CAP_1G        BIT(17)
#define EPT_CAP_2M        BIT(16)
#define EPT_CAP_AD        BIT(21)

/* Qualification bits of an EPT violation. */
#define EPT_Q_READ   BIT(0)
#define EPT_Q_WRITE  BIT(1)
#define EPT_Q_FETCH  BIT(2)
#define EPT_Q_R      BIT(3)
#define EPT_Q_W      BIT(4)
#define EPT_Q_X      BIT(5)
#define EPT_Q_LINEAR BIT(7)
#define EPT_Q_FINAL  BIT(8)

u64 ept_new(void);                                /* an empty root; its address */
u64 ept_identity(u64 limit, u64 page_size);       /* a root that maps 0..limit one to one, RWX, write-back */
u64 ept_pointer(u64 root);                        /* the EPTP for a root: write-back, 4 levels, no A/D */
u64 *ept_entry(u64 root, u64 gpa, u64 page_size); /* entry of that size; tables made, larger pages split */
void ept_map(u64 root, u64 gpa, u64 pa, u64 page_size, u64 flags);
