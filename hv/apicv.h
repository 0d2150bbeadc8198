/* SPDX-License-Identifier: Apache-2.0 */
/*
 * L1's local APIC served by the processor: register reads, EOI, TPR and interrupt delivery need no exit.
 * hv/dev/vlapic keeps the model; this keeps VMCS01 in step with it. SDM "APIC Virtualization and Virtual
 * Interrupts".
 */
#ifndef NIDUS_HV_APICV_H
#define NIDUS_HV_APICV_H

#include "hv/vcpu.h"

/* Whether the CPUs can do it at all, and the bitmap for x2APIC mode. Boot CPU, after msr_init. */
void apicv_init(void);
extern bool apicv_available;
/* Give guest-physical L1_LAPIC the page whose accesses the processor recognises. False: no memory. */
bool apicv_map_page(struct guest *g);
void apicv_unmap(struct guest *g);
/* Into VMCS01 what the model holds: mode, level-triggered vectors, RVI and SVI. Pre: VMCS01 current,
 * v->apicv. */
void apicv_sync(struct vcpu *v);
/* Whether the processor would deliver an interrupt, were IF set. Pre: VMCS01 current, v->apicv_mode. */
bool apicv_pending(const struct vcpu *v);

exit_fn exit_apic_access, exit_apic_write, exit_virtualized_eoi;

#endif
