/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMCS shadowing for L1: its VMREADs and VMWRITEs of the fields that exits and entries are made of go to a
 * hardware VMCS (type "shadow") and do not exit. SDM "VMCS Shadowing", "VMCS Types: Ordinary and Shadow".
 *
 * While L1 runs, the shadow of its current VMCS may hold newer values than VMCS12 in the fields that it may
 * write, and holds the same in all others. VMCS12 is what counts: it is made up to date before an entry looks
 * at it (shadow_collect) and before it leaves the cache, and the shadow after an exit (shadow_publish).
 */
#ifndef NIDUS_NESTED_SHADOW_H
#define NIDUS_NESTED_SHADOW_H

#include "hv/vmcs.h"
#include "nested/vmcs12.h"

/* clang-format off */
/* Read without an exit; what an exit may have changed. */
#define SHADOW_INFO(X) \
	X(32, EXIT_REASON, exit_reason) X(NW, EXIT_QUAL, exit_qual) X(32, EXIT_INSN_LEN, exit_insn_len) \
	X(32, EXIT_INSN_INFO, exit_insn_info) X(32, EXIT_INTR_INFO, exit_intr_info) \
	X(32, EXIT_ERROR_CODE, exit_error_code) X(32, IDT_VECT_INFO, idt_vect_info) \
	X(32, IDT_VECT_ERROR, idt_vect_error) X(NW, GUEST_LINEAR, guest_linear) X(64, GUEST_PHYS, guest_phys)
/* Written too: L1 may have changed them, and so may an exit. */
#define SHADOW_LIVE(X) \
	X(NW, GUEST_RIP, guest_rip) X(NW, GUEST_RSP, guest_rsp) X(NW, GUEST_RFLAGS, guest_rflags) \
	X(32, GUEST_INTR_STATE, guest_intr_state) X(32, ENTRY_INTR_INFO, entry_intr_info)
/* Only L1 changes these. */
#define SHADOW_CONTROL(X) X(32, PROC_CTL, proc_ctl)
/* Only L1; they mean nothing to an entry without the control that uses them. */
#define SHADOW_EVENT(X) X(32, ENTRY_ERROR_CODE, entry_error_code) X(32, ENTRY_INSN_LEN, entry_insn_len)
#define SHADOW_TPR(X)   X(32, TPR_THRESHOLD, tpr_threshold)
#define SHADOW_TIMER(X) X(32, PREEMPT_TIMER, preempt_timer)
/* clang-format on */

#define SHADOW_WRITTEN(X) SHADOW_LIVE(X) SHADOW_CONTROL(X) SHADOW_EVENT(X) SHADOW_TPR(X) SHADOW_TIMER(X)
#define SHADOW_FIELDS(X)  SHADOW_INFO(X) SHADOW_WRITTEN(X)

struct shadow {
	struct vmcs hw;
	bool live;  /* has been the current VMCS's since VMCS12 was read in: `hw` may be newer */
	bool known; /* `holds` is what L0 wrote or read last in `hw`; else nothing is known */
	struct {
#define X(width, name, member) vmcs12_##width member;
		SHADOW_FIELDS(X)
#undef X
	} holds;
};

/* VMREAD and VMWRITE bitmaps, SDM "VMCS Shadowing Bitmap Addresses": a set bit exits. */
struct shadow_maps {
	u8 read[4096], write[4096];
} __attribute__((aligned(4096)));

/* All bits but those of the fields above that exist with these capabilities. Pure. */
void shadow_maps_fill(struct shadow_maps *maps, const struct vmx_caps *caps);
/* SDM "VMCS Shadowing Bitmap Addresses": a field's bit; operands of more than 15 bits always exit. */
#define SHADOW_MAP_BYTE(encoding)  ((encoding) / 8)
#define SHADOW_MAP_BIT(encoding)   BIT32((encoding) % 8)
#define SHADOW_MAP_RANGE(encoding) ((encoding) >> 15)

struct vcpu;
struct vmcs02;

/* Whether L1's VMCSs are shadowed; makes the bitmaps. At creation. */
bool shadow_possible(const struct vmx_caps *hw, const struct vmx_caps *l1);
bool shadow_create(struct shadow *s);
void shadow_free(struct shadow *s);
/* L1 enters or leaves VMX operation; its current VMCS is another. VMCS01 current before and after. */
void shadow_switch(struct vcpu *v, bool on);
void shadow_link(struct vcpu *v);
/* What L1 may have written, into VMCS12: what the next entry reads of it, or all. Leaves the shadow current.
 */
void shadow_collect(struct vmcs02 *e, bool all);
/* The VMCS is L2's now: all into VMCS12, and nothing of it is in the shadow until L1 makes it current again.
 * Leaves what the vCPU runs on current. */
void shadow_settle(struct vcpu *v, struct vmcs02 *e);
/* VMCS12 has changed by an exit. Leaves the shadow current. */
void shadow_publish(struct vmcs02 *e);

#endif
