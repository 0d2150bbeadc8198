/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The virtual platform of one L1 guest: everything that is not a CPU core. One lock per machine covers all
 * devices but the local APICs, whose request registers are changed with atomic operations from any CPU.
 */
#ifndef NIDUS_HV_DEV_MACHINE_H
#define NIDUS_HV_DEV_MACHINE_H

#include "hv/types.h"

struct guest;
struct vcpu;
struct machine;

/* Reset everything to its power-on state (also at a guest's restart). `machine_create` allocates; NULL: no
 * memory. */
struct machine *machine_create(struct guest *g);
void machine_reset(struct machine *m);
/* Write ACPI tables (and what else stands in memory) into the guest's RAM; before the loader runs. False: no
 * room. */
bool machine_write_tables(struct guest *g);

/* Port access of any vCPU; size 1, 2, 4. Unknown ports read all ones and swallow writes. The lock is taken
 * inside. Of a value written only the low
 * `size` bytes count. */
u32 machine_in(struct vcpu *v, u16 port, unsigned size);
void machine_out(struct vcpu *v, u16 port, unsigned size, u32 value);
/* MMIO access at an address that is no RAM; size 1, 2, 4, 8. Absent addresses read all ones and swallow
 * writes. */
u64 machine_mmio_read(struct vcpu *v, gpa_t gpa, unsigned size);
void machine_mmio_write(struct vcpu *v, gpa_t gpa, unsigned size, u64 value);

/* Drive interrupt line `gsi` (0-23): goes to the PIC pair (0-15) and the IO-APIC (ISA IRQ 0 is GSI 2). Pre:
 * the machine's lock is held. */
void machine_irq(struct machine *m, unsigned gsi, bool level);

/* Input typed for this guest. */
void machine_console_input(struct machine *m, u8 c);

/* INTA cycle: the vector (spurious 7/15 as the 8259 does). */
u8 machine_pic_ack(struct machine *m);
/* A level-triggered vector was EOIed at a local APIC. */
void machine_eoi(struct machine *m, u8 vector);

/* --- local APICs: hv/dev/vlapic.c --- */
struct vlapic;

struct vlapic *vlapic_create(
	struct vcpu *v); /* one zeroed page for the registers, laid out as the SDM's APIC page */
void vlapic_destroy(struct vlapic *l);
void vlapic_reset(struct vcpu *v, bool init); /* init: INIT keeps the APIC id and (on hardware) mode rules of
						 SDM "Local APIC State After ..." */
/* xAPIC page access (offset below 0x1000, any size; the SDM wants aligned 32-bit accesses). */
u32 vlapic_mmio_read(struct vcpu *v, u32 offset);
void vlapic_mmio_write(struct vcpu *v, u32 offset, u32 value);
/* MSRs 0x800-0x8ff in x2APIC mode, IA32_APIC_BASE, IA32_TSC_DEADLINE. False: #GP(0). */
bool vlapic_msr_read(struct vcpu *v, u32 msr, u64 *value);
bool vlapic_msr_write(struct vcpu *v, u32 msr, u64 value);
/* The same for 0x800-0x8ff alone, with a short way for EOI and SELF IPI. */
bool vlapic_x2apic_write(struct vcpu *v, u32 msr, u64 value);
u64 vlapic_base(const struct vcpu *v); /* IA32_APIC_BASE */
/* L1's TSC moved (v->tsc_offset changed): the TSC deadline is elsewhere now. Own CPU. */
void vlapic_tsc_changed(struct vcpu *v);
u8 vlapic_tpr(const struct vcpu *v);
void vlapic_set_tpr(struct vcpu *v, u8 tpr); /* CR8 << 4 */
void vlapic_eoi(struct vcpu *v);
/* A performance counter of its CPU ran over: the LVT entry delivers, and masks itself. Own CPU. */
void vlapic_pmi(struct vcpu *v);
/* Highest vector that the APIC would deliver now (above PPR), or -1. Only the vCPU's own CPU calls these
 * three. */
int vlapic_pending(struct vcpu *v);
/* IRR -> ISR for that vector. */
void vlapic_ack(struct vcpu *v, u8 vector);
/* Both at once. */
int vlapic_take(struct vcpu *v);
/* Something is requested, be it held back or not. */
bool vlapic_requested(const struct vcpu *v);
/* The TPR threshold: the class of the highest request that TPR holds back, 0: none. */
u8 vlapic_threshold(struct vcpu *v);
/* ExtINT reaches this vCPU (LAPIC off, or LINT0 unmasked in ExtINT mode). */
bool vlapic_accepts_extint(const struct vcpu *v);
/* For hv/apicv: guest interrupt status (SVI << 8 | RVI) with what was requested since `old`; whether the set
 * of level-triggered vectors changed since the last call; 64 of them. Own CPU. */
u16 vlapic_status(struct vcpu *v, u16 old);
bool vlapic_levels_moved(struct vcpu *v);
u64 vlapic_level_vectors(struct vcpu *v, unsigned i);
/* The register page, as VM entries use it for the TPR shadow. */
void *vlapic_page(struct vcpu *v);
/* A message from the IO-APIC, an MSI or an IPI. Any CPU may call; the target is kicked. SDM "Interrupt
 * Message Format". */
struct apic_message {
	u32 dest; /* physical id or logical mask; all ones: everybody (also an 8-bit sender's 0xff is to be
		     given so) */
	bool logical, level, lowest_priority_done;
	u8 vector, mode; /* delivery mode 0 fixed 1 lowest 2 SMI 4 NMI 5 INIT 6 SIPI 7 ExtINT */
};
void apic_deliver(struct guest *g, const struct apic_message *msg);

#endif
