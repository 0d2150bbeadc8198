/* SPDX-License-Identifier: Apache-2.0 */
/* The real local APIC of this CPU (not a guest's: that is hv/dev/vlapic). x2APIC where the CPU has it. */
#ifndef NIDUS_HV_LAPIC_H
#define NIDUS_HV_LAPIC_H

#include "hv/types.h"

/* On each CPU once: switch it on, mask everything but our own vectors. `boot` also chooses the mode for all.
 */
void lapic_init(bool boot);
/* Once, after tsc_measure: how the APIC timer's ticks relate to the TSC (not needed with TSC-deadline mode).
 */
void lapic_measure(void);
u32 lapic_id(void);
/* The same from CPUID, before lapic_init. */
u32 lapic_cpuid_id(void);
void lapic_eoi(void);
/* Interrupt HOST_VEC_PMI when a performance counter runs over; delivering it switches it off. */
void lapic_set_pmi(bool on);
/* One fixed interrupt to one physical CPU by APIC id. */
void lapic_ipi(u32 apic_id, u8 vector);
void lapic_nmi(u32 apic_id);
/* The MP start-up protocol's two messages; the caller keeps the times between them. `page`: 4 KiB page below
 * 1 MiB. */
void lapic_send_init(u32 apic_id);
void lapic_send_startup(u32 apic_id, hpa_t page);
/* Interrupt HOST_VEC_TIMER at this host TSC value, or as soon as possible after. One shot. */
void lapic_timer_set(u64 deadline);

#endif
