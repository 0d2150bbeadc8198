/* SPDX-License-Identifier: Apache-2.0 */
/* Time: ACPI PM timer, PIT, TSC. */
#pragma once

#include "types.h"
#include "x86.h"

#define PM_TIMER_HZ 3579545u
#define PIT_HZ      1193182u

u32 pm_timer(void); /* 24 bits */

u64 tsc_hz(void); /* measured once against the PM timer */
u64 us_to_tsc(u64 microseconds);
void delay_us(u64 microseconds);

enum pit_mode { PIT_ONE_SHOT = 0, PIT_RATE = 2, PIT_SQUARE = 3 };

void pit_set(u32 channel, enum pit_mode mode, u16 count);
u16 pit_read(u32 channel); /* latched count */
