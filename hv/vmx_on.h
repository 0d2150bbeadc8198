/* SPDX-License-Identifier: Apache-2.0 */
/* Turning VMX on and off on a CPU, and whether it can be. */
#ifndef NIDUS_HV_VMX_ON_H
#define NIDUS_HV_VMX_ON_H

#include "hv/types.h"

/* Why this CPU cannot run guests ("this CPU has no VMX"), or NULL when it can. */
const char *vmx_refusal(void);
/* VMX root on this CPU. Pre: vmx_refusal said NULL on this CPU. False: VMXON failed. */
bool vmx_on(void);
void vmx_off(void);

#endif
