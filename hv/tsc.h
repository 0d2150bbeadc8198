/* SPDX-License-Identifier: Apache-2.0 */
/* The frequency of the time-stamp counter, and short waits by it. */
#ifndef NIDUS_HV_TSC_H
#define NIDUS_HV_TSC_H

#include "hv/lib.h"
#include "hv/timer.h"
#include "hv/types.h"

/* Measure tsc_hz against the ACPI PM timer at `pm_port` (0: there is none), else against PIT channel 2. */
void tsc_measure(u16 pm_port);
/* Busy waits, microseconds. Before tsc_measure they return at once. */
void tsc_delay_us(u64 us);
static inline u64 tsc_from_us(u64 us)
{
	return mul_div(us, tsc_hz, 1000000);
}

#endif
