/* SPDX-License-Identifier: Apache-2.0 */
/* L0's own mistakes. A guest can never reach any of these. */
#ifndef NIDUS_HV_PANIC_H
#define NIDUS_HV_PANIC_H

#include "hv/types.h"

/* Print reason, registers, VMCS and back-trace, park the other CPUs, then do what panic= says. */
void panic(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* What panic= asks for; set once the command line is read. */
void panic_init(unsigned on_panic /* enum ending */);

#define BUG_ON(x)                                                                                            \
	do {                                                                                                 \
		if (unlikely(x))                                                                             \
			panic("BUG_ON(%s) at %s:%d", #x, __FILE__, __LINE__);                                \
	} while (0)

#endif
