/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the other CPUs. */
#ifndef NIDUS_BOOT_SMP_H
#define NIDUS_BOOT_SMP_H

#include "hv/types.h"

/*
 * Start every CPU of `ids` but this one; each ends up in VMX root, waiting for smp_release. Those that do not
 * answer in time, or cannot run guests, are named and left out: cpus[] is dense again behind the call.
 */
void smp_start(const u32 *ids, unsigned count);
/* Let them go on to sched_loop. */
void smp_release(void);

#endif
