/* SPDX-License-Identifier: Apache-2.0 */
/* See hv/apicv.h. The model's page is the virtual-APIC page, so registers need no copying; what the processor
 * keeps outside of it is written here. */
#include "hv/apicv.h"
#include "hv/exit.h"
#include "hv/lib.h"
#include "hv/vmcs_init.h"
#include "mm/palloc.h"

#define SEC_XAPIC_MODE  (SEC_APIC_ACCESSES | SEC_APIC_REGS | SEC_VID)
#define SEC_X2APIC_MODE (SEC_X2APIC | SEC_APIC_REGS | SEC_VID)
#define SEC_ALL_MODES   (SEC_XAPIC_MODE | SEC_X2APIC_MODE)

/* x2APIC MSRs by their low byte. SDM "Virtualizing MSR-Based APIC Accesses". */
#define X2_TPR      0x08u
#define X2_EOI      0x0bu
#define X2_SELF_IPI 0x3fu

bool apicv_available;

/* As l1_msr_bitmap, but for what the processor serves in x2APIC mode. */
static u8 x2apic_bitmap[4096] __attribute__((aligned(4096)));

static void pass(u32 msr, bool write)
{
	x2apic_bitmap[(write ? 2048 : 0) + msr / 8] &= (u8)~BIT32(msr % 8);
}

/*
 * Reads that the page answers: ID, version, TPR, PPR, LDR, SVR, ISR, TMR, IRR, ESR, the LVT, initial count
 * and divide. The current count is computed, the ICR is 64 bits wide, reserved ones fault: those keep their
 * exits.
 */
static const u8 plain_reads[] = {0x02, 0x03, 0x08, 0x0a, 0x0d, 0x0f, 0x28, 0x32,
				 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x3e};

void apicv_init(void)
{
	u32 may = (u32)(rdmsr(MSR_VMX_SEC_CTLS) >> 32);

	apicv_available = (may & SEC_ALL_MODES) == SEC_ALL_MODES && l0_controls.proc & PROC_TPR_SHADOW &&
			  !vmcs_format; /* an enlightened VMCS has no fields for it */
	memcpy(x2apic_bitmap, l1_msr_bitmap, sizeof(x2apic_bitmap));
	for (size_t i = 0; i < ARRAY_SIZE(plain_reads); i++)
		pass(MSR_X2APIC_BASE + plain_reads[i], false);
	for (u32 i = 0x10; i < 0x28; i++) /* ISR, TMR, IRR */
		pass(MSR_X2APIC_BASE + i, false);
	pass(MSR_X2APIC_BASE + X2_TPR, true);
	pass(MSR_X2APIC_BASE + X2_EOI, true);
	pass(MSR_X2APIC_BASE + X2_SELF_IPI, true);
}

/* All of RAM: the APIC stands in the GiB between low and high RAM. */
static bool apicv_share(struct guest *g, const struct ept *ept01)
{
	return ept_share(&g->ept01_apic, ept01, 0, L1MEM_LOW_MAX) &&
	       ept_share(&g->ept01_apic, ept01, L1MEM_HIGH, ALIGN_UP(g->mem.high, GIB));
}

void apicv_unmap(struct guest *g)
{
	apicv_share(g, NULL);
	ept_destroy(&g->ept01_apic);
}

bool apicv_map_page(struct guest *g)
{
	g->apic_page = page_alloc();
	return g->apic_page && ept_init(&g->ept01_apic, g->ept01.source, g->ept01.max_leaf) &&
	       apicv_share(g, &g->ept01) &&
	       ept_map(&g->ept01_apic, L1_LAPIC, ptr_hpa(g->apic_page).v, PAGE_SIZE,
		       EPT_READ | EPT_WRITE | EPT_TYPE(MEMTYPE_WB) | EPT_ACCESSED | EPT_DIRTY);
}

/* Only at its usual address: the page elsewhere is emulated. */
static u32 wanted_mode(const struct vcpu *v)
{
	u64 base = vlapic_base(v);

	if (!(base & APIC_BASE_ENABLE))
		return 0;
	if (base & APIC_BASE_X2APIC)
		return SEC_X2APIC_MODE;
	return (base & ~0xfffull) == L1_LAPIC ? SEC_XAPIC_MODE : 0;
}

static void set_mode(struct vcpu *v, u32 mode)
{
	v->apicv_mode = mode;
	vmcs_write32(VMCS_SEC_CTL, (vmcs_read32(VMCS_SEC_CTL) & ~SEC_ALL_MODES) | mode);
	vmcs_write64(VMCS_EPTP, mode & SEC_APIC_ACCESSES
					? ptr_hpa(v->guest->ept01_apic.root).v | l0_controls.eptp_flags
					: v->guest->eptp01);
	vmcs_write64(VMCS_APIC_ACCESS, ptr_hpa(v->guest->apic_page).v);
	vmcs_write64(VMCS_MSR_BITMAP, ptr_hpa(mode & SEC_X2APIC ? x2apic_bitmap : l1_msr_bitmap).v);
	vmcs_write32(VMCS_TPR_THRESHOLD, v->tpr_threshold = 0);
}

/* The EOI of a level-triggered interrupt must reach the IO-APIC. */
static void write_eoi_bitmap(struct vcpu *v)
{
	for (unsigned i = 0; i < 4; i++) {
		u64 tmr = vlapic_level_vectors(v, i);

		if (v->apicv_eoi[i] == tmr)
			continue;
		v->apicv_eoi[i] = tmr;
		vmcs_write_raw(VMCS_EOI_EXIT_BITMAP_0 + 2 * i, tmr);
	}
}

void apicv_sync(struct vcpu *v)
{
	u32 mode = wanted_mode(v);
	u16 old, status;

	if (unlikely(mode != v->apicv_mode))
		set_mode(v, mode);
	if (!mode)
		return;
	if (vlapic_levels_moved(v))
		write_eoi_bitmap(v);
	old = vmcs_read16(VMCS_GUEST_INTR_STATUS);
	status = vlapic_status(v, old);
	if (status != old)
		vmcs_write16(VMCS_GUEST_INTR_STATUS, status);
}

/* SDM "Evaluation of Pending Virtual Interrupts"; PPR is the higher class of TPR and SVI. */
bool apicv_pending(const struct vcpu *v)
{
	u16 status = vmcs_read16(VMCS_GUEST_INTR_STATUS);
	u8 request = (u8)status >> 4;

	return request > status >> 12 && request > vlapic_tpr(v) >> 4;
}

/* SDM table "Exit Qualification for APIC-Access VM Exits": the offset in bits 11:0. An access while an event
 * is delivered has no instruction to carry out. */
enum exit_action exit_apic_access(struct vcpu *v)
{
	u64 qual = vmcs_read_nw(VMCS_EXIT_QUAL);

	event_requeue(v);
	if (v->pending & PEND_INJECT) {
		guest_end(v->guest, "killed: event delivery through the APIC page");
		return RESUME;
	}
	return mmio_emulate_l1(v, GPA(L1_LAPIC | (qual & 0xfff)));
}

/* Trap-like: the value is in the page, RIP behind the instruction. */
enum exit_action exit_apic_write(struct vcpu *v)
{
	u32 offset = (u32)vmcs_read_nw(VMCS_EXIT_QUAL) & 0xff0;

	vlapic_mmio_write(v, offset, *(const u32 *)(const void *)((const u8 *)vlapic_page(v) + offset));
	return RESUME;
}

enum exit_action exit_virtualized_eoi(struct vcpu *v)
{
	machine_eoi(v->guest->machine, (u8)vmcs_read_nw(VMCS_EXIT_QUAL));
	return RESUME;
}
