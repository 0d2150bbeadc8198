/* SPDX-License-Identifier: Apache-2.0 */
/* Paging-structure entries and page-fault error codes, the host's and a guest's. SDM "Paging". No code. */
#ifndef NIDUS_MM_PTE_H
#define NIDUS_MM_PTE_H

#include "hv/types.h"

#define PTE_P   BIT(0)
#define PTE_RW  BIT(1)
#define PTE_US  BIT(2)
#define PTE_PWT BIT(3)
#define PTE_PCD BIT(4)
#define PTE_A   BIT(5)
#define PTE_D   BIT(6)
#define PTE_PS  BIT(7) /* above the page table */
#define PTE_XD  BIT(63)

#define PF_PRESENT  BIT32(0)
#define PF_WRITE    BIT32(1)
#define PF_USER     BIT32(2)
#define PF_RESERVED BIT32(3)
#define PF_FETCH    BIT32(4)
#define PF_KEY      BIT32(5)

#endif
