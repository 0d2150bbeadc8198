/* SPDX-License-Identifier: Apache-2.0 */
/* Names of L0's own functions, for back-traces. The table is made from the linked image by the second link
 * step. */
#ifndef NIDUS_HV_SYMBOLS_H
#define NIDUS_HV_SYMBOLS_H

#include "hv/types.h"

#define SYMBOL_MAX 40

/* The function that holds address `a`, and how far into it. False: there is none. */
bool symbol_at(u64 a, char name[SYMBOL_MAX], u64 *offset);

#endif
