/* SPDX-License-Identifier: Apache-2.0 */
/* Which controls L0 uses for an L1, and the parts of a VMCS that do not change while a guest runs. */
#include "hv/vmcs_init.h"
#include "hv/cpu.h"
#include "hv/pmu.h"
#include "hv/print.h"
#include "hv/tlb.h"
#include "hv/vcpu.h"
#include "mm/hostpt.h"

struct l0_controls l0_controls;

extern char vmx_exit[];

/* Between two looks at a vCPU that never exits: short when others wait for the CPU, else only so that nobody
 * escapes. */
#define SLICE_SHARED_HZ 200u
#define SLICE_ALONE_HZ  20u

/* SDM "VMX Capability Reporting Facility": bits 31:0 must be 1, bits 63:32 may be 1. */
static bool choose(const char *name, u32 msr, u32 need, u32 want, u32 *out)
{
	u64 cap = rdmsr(msr);
	u32 must = (u32)cap, may = (u32)(cap >> 32);

	if (need & ~may) {
		log_error("this CPU's VMX lacks %s controls %#x", name, need & ~may);
		return false;
	}
	*out = must | ((need | want) & may);
	return true;
}

bool vmcs_init_caps(void)
{
	struct l0_controls *l0 = &l0_controls;
	bool true_ctls = rdmsr(MSR_VMX_BASIC) & BIT(55);
	u32 off = true_ctls ? 0 : MSR_VMX_TRUE_PIN_CTLS - MSR_VMX_PIN_CTLS;
	u32 timer = vmcs_format ? 0 : PIN_TIMER; /* an enlightened VMCS has no field for it */
	bool ok;

	ok = choose("pin-based", MSR_VMX_TRUE_PIN_CTLS - off, PIN_EXT_INTR | PIN_NMI, PIN_VNMI | timer,
		    &l0->pin);
	/* The plain processor-based MSR forces CR3 exiting on: such early parts have no EPT either. */
	ok &= choose("processor-based", true_ctls ? MSR_VMX_TRUE_PROC_CTLS : MSR_VMX_PROC_CTLS,
		     PROC_HLT | PROC_TSC_OFFSET | PROC_IO_BITMAPS | PROC_MSR_BITMAPS | PROC_SECONDARY |
			     PROC_MWAIT | PROC_MONITOR | PROC_RDPMC | PROC_TPR_SHADOW,
		     0, &l0->proc);
	ok &= choose("secondary", MSR_VMX_SEC_CTLS, SEC_EPT | SEC_VPID | SEC_UNRESTRICTED,
		     SEC_RDTSCP | SEC_INVPCID | SEC_XSAVES | SEC_WBINVD, &l0->sec);
	ok &= choose("exit", true_ctls ? MSR_VMX_TRUE_EXIT_CTLS : MSR_VMX_EXIT_CTLS,
		     EXIT_HOST_64 | EXIT_ACK_INTR | EXIT_SAVE_EFER | EXIT_LOAD_EFER | EXIT_SAVE_PAT |
			     EXIT_LOAD_PAT | EXIT_SAVE_DEBUG,
		     timer ? EXIT_SAVE_TIMER : 0, &l0->exit);
	ok &= choose("entry", true_ctls ? MSR_VMX_TRUE_ENTRY_CTLS : MSR_VMX_ENTRY_CTLS,
		     ENTRY_LOAD_DEBUG | ENTRY_LOAD_EFER | ENTRY_LOAD_PAT, 0, &l0->entry);
	if (!ok)
		return false;
	l0->exceptions = BIT32(VEC_DB) | BIT32(VEC_AC) | BIT32(VEC_MC);
	l0->timer_shift = (unsigned)rdmsr(MSR_VMX_MISC) & 31;
	l0->ept_vpid_cap = rdmsr(MSR_VMX_EPT_VPID_CAP);
	/* SDM "Extended-Page-Table Pointer (EPTP)": WB walks when the CPU has them. */
	l0->eptp_flags = EPTP_WALK4 | (l0->ept_vpid_cap & BIT(14) ? MEMTYPE_WB : MEMTYPE_UC) |
			 (l0->ept_vpid_cap & BIT(21) ? EPTP_AD : 0);
	l0->ept_max_leaf = l0->ept_vpid_cap & BIT(17) ? 3 : l0->ept_vpid_cap & BIT(16) ? 2 : 1;
	return true;
}

void vmcs_write_host_state(struct vcpu *v)
{
	struct cpu *c = this_cpu();

	vmcs_write16(VMCS_HOST_CS_SEL, SEL_CODE);
	vmcs_write16(VMCS_HOST_SS_SEL, SEL_DATA);
	vmcs_write16(VMCS_HOST_DS_SEL, 0);
	vmcs_write16(VMCS_HOST_ES_SEL, 0);
	vmcs_write16(VMCS_HOST_FS_SEL, 0);
	vmcs_write16(VMCS_HOST_GS_SEL, 0);
	vmcs_write16(VMCS_HOST_TR_SEL, SEL_TSS);
	vmcs_write64(VMCS_HOST_PAT, rdmsr(MSR_PAT));
	vmcs_write64(VMCS_HOST_EFER, rdmsr(MSR_EFER));
	vmcs_write32(VMCS_HOST_SYSENTER_CS, 0);
	vmcs_write_nw(VMCS_HOST_SYSENTER_ESP, 0);
	vmcs_write_nw(VMCS_HOST_SYSENTER_EIP, 0);
	vmcs_write_nw(VMCS_HOST_CR0, read_cr0());
	vmcs_write_nw(VMCS_HOST_CR3, read_cr3());
	vmcs_write_nw(VMCS_HOST_CR4, read_cr4());
	vmcs_write_nw(VMCS_HOST_FS_BASE, 0);
	vmcs_write_nw(VMCS_HOST_GS_BASE, (u64)(uintptr_t)c);
	vmcs_write_nw(VMCS_HOST_TR_BASE, (u64)(uintptr_t)c->tss);
	vmcs_write_nw(VMCS_HOST_GDTR_BASE, (u64)(uintptr_t)c->gdt);
	vmcs_write_nw(VMCS_HOST_IDTR_BASE, idt_base());
	vmcs_write_nw(VMCS_HOST_RSP, (u64)(uintptr_t)&v->regs[ARRAY_SIZE(v->regs)]);
	vmcs_write_nw(VMCS_HOST_RIP, (u64)(uintptr_t)vmx_exit);
}

static void write_controls(struct vcpu *v)
{
	const struct l0_controls *l0 = &l0_controls;

	vmcs_write32(VMCS_PIN_CTL, l0->pin);
	vmcs_write32(VMCS_PROC_CTL, l0->proc);
	vmcs_write32(VMCS_SEC_CTL, l0->sec);
	vmcs_write32(VMCS_EXIT_CTL, l0->exit);
	vmcs_write32(VMCS_ENTRY_CTL, l0->entry);
	vmcs_write32(VMCS_EXCEPTION_BITMAP, l0->exceptions);
	vmcs_write32(VMCS_PF_MASK, 0);
	vmcs_write32(VMCS_PF_MATCH, 0);
	vmcs_write32(VMCS_CR3_TARGET_COUNT, 0);
	vmcs_write32(VMCS_EXIT_MSR_STORE_COUNT, 0);
	vmcs_write32(VMCS_EXIT_MSR_LOAD_COUNT, 0);
	vmcs_write32(VMCS_ENTRY_MSR_LOAD_COUNT, 0);
	vmcs_write32(VMCS_ENTRY_INTR_INFO, 0);
	vmcs_write32(VMCS_TPR_THRESHOLD, v->tpr_threshold = 0);
	if (v->apicv) {
		vmcs_write16(VMCS_GUEST_INTR_STATUS, 0);
		for (unsigned i = 0; i < 4; i++)
			vmcs_write_raw(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, 0);
	}
	if (l0->sec & SEC_XSAVES)
		vmcs_write64(VMCS_XSS_EXITING_BITMAP, 0);
}

void vmcs_init_l1(struct vcpu *v)
{
	write_controls(v);
	vmcs_write64(VMCS_IO_BITMAP_A, ptr_hpa(l1_io_bitmap).v);
	vmcs_write64(VMCS_IO_BITMAP_B, ptr_hpa(l1_io_bitmap + PAGE_SIZE).v);
	vmcs_write64(VMCS_MSR_BITMAP, ptr_hpa(l1_msr_bitmap).v);
	vmcs_write64(VMCS_VIRTUAL_APIC, ptr_hpa(vlapic_page(v)).v);
	vmcs_write64(VMCS_EPTP, v->guest->eptp01);
	vmcs_write64(VMCS_LINK_POINTER, ~0ull);
	vmcs_write64(VMCS_TSC_OFFSET, v->tsc_offset);
	vmcs_write16(VMCS_VPID, v->vpid);
	vmcs_write_host_state(v);
	if (v->pmu)
		pmu_write_vmcs(v);
	if (l0_controls.pin & PIN_TIMER)
		vmcs_arm_slice(v, 0);
	vmcs_prove();
}

void vmcs_arm_slice(struct vcpu *v, u64 used)
{
	u64 ticks = tsc_hz / (v->preempt ? SLICE_SHARED_HZ : SLICE_ALONE_HZ);

	ticks = (ticks > used ? ticks - used : 0) >> l0_controls.timer_shift;
	vmcs_write32(VMCS_PREEMPT_TIMER, (u32)MIN(ticks, 0xffffffffull));
}
