/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of the MSR rules; the accesses themselves are msr_read and msr_write (hv/vcpu.h). */
#ifndef NIDUS_HV_MSR_H
#define NIDUS_HV_MSR_H

/* Build the bitmaps of hv/vcpu.h. Boot CPU, after cpuid_init. */
void msr_init(void);

#endif
