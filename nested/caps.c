/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capability MSRs of a guest with plain VMX. One table for each control word, in the manual's order; a
 * control that is in no table, or withheld, reads as "must be 0". Whatever the tables say, nothing is offered
 * that hardware lacks.
 */
#include "nested/caps.h"
#include "hv/x86.h"
#include "nested/vmcs12.h"

struct control {
	u32 bit;
	enum { WITHHELD, OFFERED } offer;
};

/* SDM "Reserved Controls and Default Settings": bits that are 1 in every VMCS, and those the TRUE MSRs let
 * go. */
#define PIN_DEFAULT1     0x00000016u
#define PROC_DEFAULT1    0x04006172u
#define PROC_CLEARABLE1  (PROC_CR3_LOAD | PROC_CR3_STORE)
#define EXIT_DEFAULT1    0x00036dfbu
#define EXIT_CLEARABLE1  EXIT_SAVE_DEBUG
#define ENTRY_DEFAULT1   0x000011fbu
#define ENTRY_CLEARABLE1 ENTRY_LOAD_DEBUG
#define CR3_TARGETS      4u
#define REGION_SIZE      4096u

/* clang-format off */
/* SDM "Pin-Based VM-Execution Controls". */
static const struct control pin_controls[] = {
	{ PIN_EXT_INTR, OFFERED },
	{ PIN_NMI,	OFFERED },
	{ PIN_VNMI,	OFFERED },
	{ PIN_TIMER,	OFFERED },
	{ PIN_POSTED,	OFFERED },
};

/* SDM "Processor-Based VM-Execution Controls". */
static const struct control proc_controls[] = {
	{ PROC_INTR_WINDOW, OFFERED },
	{ PROC_TSC_OFFSET,  OFFERED },
	{ PROC_HLT,	    OFFERED },
	{ PROC_INVLPG,	    OFFERED },
	{ PROC_MWAIT,	    OFFERED },
	{ PROC_RDPMC,	    OFFERED },
	{ PROC_RDTSC,	    OFFERED },
	{ PROC_CR3_LOAD,    OFFERED },
	{ PROC_CR3_STORE,   OFFERED },
	{ PROC_TERTIARY,    WITHHELD }, /* no tertiary control is emulated */
	{ PROC_CR8_LOAD,    OFFERED },
	{ PROC_CR8_STORE,   OFFERED },
	{ PROC_TPR_SHADOW,  OFFERED },
	{ PROC_NMI_WINDOW,  OFFERED },
	{ PROC_MOV_DR,	    OFFERED },
	{ PROC_UNCOND_IO,   OFFERED },
	{ PROC_IO_BITMAPS,  OFFERED },
	{ PROC_MTF,	    OFFERED },
	{ PROC_MSR_BITMAPS, OFFERED },
	{ PROC_MONITOR,	    OFFERED },
	{ PROC_PAUSE,	    OFFERED },
	{ PROC_SECONDARY,   OFFERED },
};

/* SDM "Secondary Processor-Based VM-Execution Controls". */
static const struct control sec_controls[] = {
	{ SEC_APIC_ACCESSES, OFFERED },
	{ SEC_EPT,	     OFFERED },
	{ SEC_DESC_TABLE,    OFFERED },
	{ SEC_RDTSCP,	     OFFERED },
	{ SEC_X2APIC,	     OFFERED },
	{ SEC_VPID,	     OFFERED },
	{ SEC_WBINVD,	     OFFERED },
	{ SEC_UNRESTRICTED,  OFFERED },
	{ SEC_APIC_REGS,     OFFERED },
	{ SEC_VID,	     OFFERED },
	{ SEC_PLE,	     OFFERED },
	{ SEC_RDRAND,	     OFFERED },
	{ SEC_INVPCID,	     OFFERED },
	{ SEC_VMFUNC,	     OFFERED },
	{ SEC_SHADOW_VMCS,   OFFERED },
	{ SEC_ENCLS,	     OFFERED },
	{ SEC_RDSEED,	     OFFERED },
	{ SEC_PML,	     OFFERED },
	{ SEC_VE,	     OFFERED },
	{ SEC_CONCEAL_VMX,   WITHHELD }, /* processor trace is not offered */
	{ SEC_XSAVES,	     OFFERED },
	{ SEC_MBE,	     OFFERED },
	{ SEC_TSC_SCALING,   OFFERED },
	{ SEC_WAITPKG,	     WITHHELD }, /* CPUID does not offer the instructions */
};

/* SDM "VM-Exit Controls". */
static const struct control exit_controls[] = {
	{ EXIT_SAVE_DEBUG,    OFFERED },
	{ EXIT_HOST_64,	      OFFERED },
	{ EXIT_LOAD_PERF,     OFFERED },
	{ EXIT_ACK_INTR,      OFFERED },
	{ EXIT_SAVE_PAT,      OFFERED },
	{ EXIT_LOAD_PAT,      OFFERED },
	{ EXIT_SAVE_EFER,     OFFERED },
	{ EXIT_LOAD_EFER,     OFFERED },
	{ EXIT_SAVE_TIMER,    OFFERED },
	{ EXIT_CLEAR_BNDCFGS, WITHHELD }, /* CPUID does not offer MPX */
	{ EXIT_LOAD_CET,      WITHHELD }, /* CPUID does not offer CET */
};

/* SDM "VM-Entry Controls". */
static const struct control entry_controls[] = {
	{ ENTRY_LOAD_DEBUG,   OFFERED },
	{ ENTRY_IA32E,	      OFFERED },
	{ ENTRY_SMM,	      WITHHELD }, /* no L1 is ever in SMM */
	{ ENTRY_DUAL_MONITOR, WITHHELD },
	{ ENTRY_LOAD_PERF,    OFFERED },
	{ ENTRY_LOAD_PAT,     OFFERED },
	{ ENTRY_LOAD_EFER,    OFFERED },
	{ ENTRY_LOAD_BNDCFGS, WITHHELD },
	{ ENTRY_LOAD_CET,     WITHHELD },
};
/* clang-format on */

/* All of "VPID and EPT Capabilities" that is emulated. */
#define EPT_VPID_OFFERED                                                                                     \
	(EPT_CAP_EXEC_ONLY | EPT_CAP_WALK4 | EPT_CAP_UC | EPT_CAP_WB | EPT_CAP_2M | EPT_CAP_1G |             \
	 EPT_CAP_INVEPT | EPT_CAP_AD | EPT_CAP_ADVANCED | EPT_CAP_INVEPT_SINGLE | EPT_CAP_INVEPT_ALL |       \
	 VPID_CAP_INVVPID | VPID_CAP_ADDRESS | VPID_CAP_SINGLE | VPID_CAP_ALL | VPID_CAP_SINGLE_GLOBALS)

u64 *caps_slot(struct vmx_caps *c, u32 msr)
{
	u64 *first = &c->basic;

	_Static_assert(sizeof(*c) == 8 * (MSR_VMX_VMFUNC - MSR_VMX_BASIC + 1), "one member for each MSR");
	if (msr < MSR_VMX_BASIC || msr > MSR_VMX_VMFUNC)
		return NULL;
	return first + (msr - MSR_VMX_BASIC);
}

/* `must1` is what the manual fixes to 1; what hardware forces beyond it is forced here too. */
static u64 offer(const struct control *c, size_t n, u32 must1, u64 hw)
{
	u32 may1 = 0;

	must1 |= caps_must1(hw);
	for (size_t i = 0; i < n; i++)
		if (c[i].offer == OFFERED)
			may1 |= c[i].bit;
	return (u64)((may1 & caps_may1(hw)) | must1) << 32 | must1;
}

#define OFFER(table, must1, hw) offer(table, ARRAY_SIZE(table), must1, hw)

/* The older MSR of a pair: default1 controls cannot be cleared there. */
static u64 without_true(u64 true_msr, u32 clearable)
{
	return true_msr | (caps_may1(true_msr) & clearable);
}

/* Our own revision; region size, type and what hardware reports for INS and OUTS. SDM "Basic VMX
 * Information". */
static u64 basic(const struct vmx_caps *hw)
{
	return VMCS12_REVISION | VMX_BASIC_SIZE(REGION_SIZE) | VMX_BASIC_TYPE(6) | VMX_BASIC_TRUE |
	       (hw->basic & (VMX_BASIC_INS_OUTS | VMX_BASIC_ANY_ERROR));
}

/*
 * SDM "Miscellaneous Data". Writing exit information needs no hardware: L0 carries out VMWRITE itself.
 */
static u64 misc(const struct vmx_caps *hw)
{
	u64 same = VMX_MISC_SAVE_IA32E | VMX_MISC_HLT | VMX_MISC_SHUTDOWN | VMX_MISC_WAIT_SIPI |
		   VMX_MISC_ZERO_LEN;
	u32 targets = MIN(CR3_TARGETS, VMX_MISC_CR3_TARGETS(hw->misc));

	return VMX_MISC_TIMER_SHIFT(hw->misc) | (hw->misc & same) | (u64)targets << 16 | VMX_MISC_WRITE_INFO;
}

void caps_plain(struct vmx_caps *out, const struct vmx_caps *hw, u64 cr4)
{
	*out = (struct vmx_caps){
		.basic = basic(hw),
		.misc = misc(hw),
		.cr0_fixed0 = hw->cr0_fixed0,
		.cr0_fixed1 = hw->cr0_fixed1,
		.cr4_fixed0 = hw->cr4_fixed0,
		.cr4_fixed1 = hw->cr4_fixed1 & (cr4 | CR4_VMXE | hw->cr4_fixed0),
		.sec = OFFER(sec_controls, 0, hw->sec),
		.ept_vpid = hw->ept_vpid & EPT_VPID_OFFERED,
		.vmfunc = hw->vmfunc & VMFUNC_EPTP_SWITCHING,
		.true_pin = OFFER(pin_controls, PIN_DEFAULT1, hw->true_pin),
		.true_proc = OFFER(proc_controls, PROC_DEFAULT1, hw->true_proc),
		.true_exit = OFFER(exit_controls, EXIT_DEFAULT1, hw->true_exit),
		.true_entry = OFFER(entry_controls, ENTRY_DEFAULT1, hw->true_entry),
	};
	/* Which of the two execute permissions a fetch needed only that information tells. */
	if (!(hw->ept_vpid & EPT_CAP_ADVANCED))
		out->sec &= ~((u64)SEC_MBE << 32);
	out->pin = out->true_pin;
	out->proc = without_true(out->true_proc, PROC_CLEARABLE1);
	out->exit = without_true(out->true_exit, EXIT_CLEARABLE1);
	out->entry = without_true(out->true_entry, ENTRY_CLEARABLE1);
	out->vmcs_enum = (u64)vmcs12_max_index(out) << 1;
}

/* May-be-1 bits of a control word, in both of its MSRs. */
static void withhold(u64 *plain, u64 *true_msr, u32 bits)
{
	*plain &= ~((u64)bits << 32);
	*true_msr &= ~((u64)bits << 32);
}

void caps_without_pmu(struct vmx_caps *c)
{
	withhold(&c->exit, &c->true_exit, EXIT_LOAD_PERF);
	withhold(&c->entry, &c->true_entry, ENTRY_LOAD_PERF);
}

/*
 * TLFS "Enlightened VMCS" has no field for these. Controls that only work in pairs go together. TSC scaling
 * has one since lately: an L1 that does not know of it would leave the multiplier at 0.
 */
void caps_enlightened(struct vmx_caps *c)
{
	const u32 sec = SEC_APIC_ACCESSES | SEC_APIC_REGS | SEC_VID | SEC_PLE | SEC_VMFUNC | SEC_SHADOW_VMCS |
			SEC_PML | SEC_VE | SEC_TSC_SCALING;

	withhold(&c->pin, &c->true_pin, PIN_TIMER | PIN_POSTED);
	withhold(&c->proc, &c->true_proc, PROC_TERTIARY);
	withhold(&c->exit, &c->true_exit, EXIT_SAVE_TIMER);
	caps_without_pmu(c);
	c->sec &= ~((u64)sec << 32);
	c->vmfunc = 0;
	c->vmcs_enum = (u64)vmcs12_max_index(c) << 1;
}
