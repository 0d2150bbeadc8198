/* SPDX-License-Identifier: Apache-2.0 */
/* VPID numbers and the INVEPT/INVVPID types the CPU has. Says nothing about when to flush. */
#include "hv/tlb.h"
#include "hv/spinlock.h"
#include "hv/vmcs_init.h"

/* IA32_VMX_EPT_VPID_CAP. */
#define CAP_INVEPT_SINGLE BIT(25)
#define CAP_INVVPID_ADDR  BIT(40)

static u64 vpid_map[65536 / 64];
static struct spinlock vpid_lock;

u16 vpid_alloc(void)
{
	u16 vpid = 0;

	spin_lock(&vpid_lock);
	vpid_map[0] |= 1; /* VPID 0 is L0's own */
	for (unsigned w = 0; w < ARRAY_SIZE(vpid_map); w++) {
		if (vpid_map[w] == ~0ull)
			continue;
		unsigned bit = (unsigned)__builtin_ctzll(~vpid_map[w]);
		vpid_map[w] |= BIT(bit);
		vpid = (u16)(w * 64 + bit);
		break;
	}
	spin_unlock(&vpid_lock);
	return vpid;
}

void vpid_free(u16 vpid)
{
	if (!vpid)
		return;
	spin_lock(&vpid_lock);
	vpid_map[vpid / 64] &= ~BIT(vpid % 64);
	spin_unlock(&vpid_lock);
}

void invept_single(u64 eptp)
{
	invept(l0_controls.ept_vpid_cap & CAP_INVEPT_SINGLE ? INV_SINGLE : INV_ALL, eptp);
}

void invept_all(void)
{
	invept(INV_ALL, 0);
}

void invvpid_address(u16 vpid, u64 linear)
{
	if (l0_controls.ept_vpid_cap & CAP_INVVPID_ADDR)
		invvpid(INV_ADDRESS, vpid, linear);
	else
		invvpid_single(vpid);
}

void invvpid_all(void)
{
	invvpid(INV_ALL, 0, 0);
}
