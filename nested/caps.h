/* SPDX-License-Identifier: Apache-2.0 */
/* The VMX capability MSRs as an L1 sees them, computed from the hardware's. Pure: the caller reads the MSRs.
 */
#ifndef NIDUS_NESTED_CAPS_H
#define NIDUS_NESTED_CAPS_H

#include "hv/types.h"

/* The MSRs 0x480 to 0x491 in order. The true_ ones hold the plain ones where hardware has none (VMX_BASIC bit
 * 55). */
struct vmx_caps {
	u64 basic, pin, proc, exit, entry, misc;
	u64 cr0_fixed0, cr0_fixed1, cr4_fixed0, cr4_fixed1;
	u64 vmcs_enum, sec, ept_vpid;
	u64 true_pin, true_proc, true_exit, true_entry;
	u64 vmfunc;
};

/* SDM "Basic VMX Information". */
#define VMX_BASIC_SIZE(bytes) ((u64)(bytes) << 32)
#define VMX_BASIC_TYPE(t)     ((u64)(t) << 50)
#define VMX_BASIC_INS_OUTS    BIT(54)
#define VMX_BASIC_TRUE        BIT(55)
#define VMX_BASIC_ANY_ERROR   BIT(56)

/* SDM "Miscellaneous Data". */
#define VMX_MISC_TIMER_SHIFT(m) ((unsigned)((m)&31))
#define VMX_MISC_SAVE_IA32E     BIT(5)
#define VMX_MISC_HLT            BIT(6)
#define VMX_MISC_SHUTDOWN       BIT(7)
#define VMX_MISC_WAIT_SIPI      BIT(8)
#define VMX_MISC_CR3_TARGETS(m) ((u32)((m) >> 16) & 0x1ffu)
#define VMX_MISC_WRITE_INFO     BIT(29)
#define VMX_MISC_ZERO_LEN       BIT(30)

/* SDM "VM Functions". */
#define VMFUNC_EPTP_SWITCHING BIT(0)

/* SDM "VPID and EPT Capabilities". */
#define EPT_CAP_EXEC_ONLY       BIT(0)
#define EPT_CAP_WALK4           BIT(6)
#define EPT_CAP_UC              BIT(8)
#define EPT_CAP_WB              BIT(14)
#define EPT_CAP_2M              BIT(16)
#define EPT_CAP_1G              BIT(17)
#define EPT_CAP_INVEPT          BIT(20)
#define EPT_CAP_AD              BIT(21)
#define EPT_CAP_ADVANCED        BIT(22) /* advanced VM-exit information for EPT violations */
#define EPT_CAP_INVEPT_SINGLE   BIT(25)
#define EPT_CAP_INVEPT_ALL      BIT(26)
#define VPID_CAP_INVVPID        BIT(32)
#define VPID_CAP_ADDRESS        BIT(40)
#define VPID_CAP_SINGLE         BIT(41)
#define VPID_CAP_ALL            BIT(42)
#define VPID_CAP_SINGLE_GLOBALS BIT(43)

/* A control word's MSR: bits that must be 1, bits that may be 1. */
static inline u32 caps_must1(u64 msr)
{
	return (u32)msr;
}

static inline u32 caps_may1(u64 msr)
{
	return (u32)(msr >> 32);
}

/* The member that holds MSR 0x480-0x491; NULL for any other number. */
u64 *caps_slot(struct vmx_caps *c, u32 msr);
/*
 * What a guest with plain VMX is offered: never more than hardware has. `cr4` holds the CR4 bits that the
 * guest's CPUID offers (VMXE is added).
 */
void caps_plain(struct vmx_caps *out, const struct vmx_caps *hw, u64 cr4);

/* Take away what only a guest with a PMU has. */
void caps_without_pmu(struct vmx_caps *c);
/* Take away what an enlightened VMCS has no field for. */
void caps_enlightened(struct vmx_caps *c);

#endif
