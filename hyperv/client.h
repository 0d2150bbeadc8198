/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nidus as the guest of a hypervisor with Hyper-V's interface (Hyper-V, KVM, Nidus): it keeps its VMCSs as
 * enlightened ones, pages of memory that VMREAD and VMWRITE never touch. TLFS "Enlightened VMCS". Nothing of
 * this runs anywhere else.
 */
#ifndef NIDUS_HYPERV_CLIENT_H
#define NIDUS_HYPERV_CLIENT_H

#include "hv/types.h"

/* Whether the hypervisor below recommends enlightened VMCSs. */
bool hv_client_offered(void);
/* Replace every VMREAD, VMWRITE and VMPTRLD of the image. Boot CPU, before the image is write-protected and
 * before a VMCS exists. */
void hv_client_patch(void);
/* With L0's own page tables: the routines that were written become code. A no-op without hv_client_patch. */
void hv_client_protect(void);
/* On each CPU before VMXON. A no-op without hv_client_patch. False: no memory. */
bool hv_client_cpu(void);
extern bool hv_client;

#endif
