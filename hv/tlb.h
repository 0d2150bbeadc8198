/* SPDX-License-Identifier: Apache-2.0 */
/* VPIDs and invalidation. One VPID belongs to one VMCS on one CPU; tags are never given to another guest
 * without a flush. */
#ifndef NIDUS_HV_TLB_H
#define NIDUS_HV_TLB_H

#include "hv/vmcs_init.h"

/* A VPID nobody else uses; 0 when there are none left (the caller then shares one and flushes at each
 * switch). */
u16 vpid_alloc(void);
void vpid_free(u16 vpid);

enum { INV_ADDRESS, INV_SINGLE, INV_ALL };
#define CAP_INVVPID_SINGLE BIT(41) /* IA32_VMX_EPT_VPID_CAP */

static inline void invept(u64 type, u64 eptp)
{
	struct {
		u64 eptp, zero;
	} d = {eptp, 0};

	asm volatile("invept %0, %1" : : "m"(d), "r"(type) : "cc", "memory");
}

static inline void invvpid(u64 type, u16 vpid, u64 linear)
{
	struct {
		u64 vpid, linear;
	} d = {vpid, linear};

	asm volatile("invvpid %0, %1" : : "m"(d), "r"(type) : "cc", "memory");
}

/* Guest-physical and combined mappings of one EPTP, on this CPU. */
void invept_single(u64 eptp); /* hyperv/client has another one */
void invept_all(void);
/* Linear and combined mappings of one VPID, on this CPU. */
static inline void invvpid_single(u16 vpid)
{
	invvpid(l0_controls.ept_vpid_cap & CAP_INVVPID_SINGLE ? INV_SINGLE : INV_ALL, vpid, 0);
}
void invvpid_address(u16 vpid, u64 linear);
void invvpid_all(void);

#endif
