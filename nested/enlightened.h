/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one interface between nested VMX and an enlightened VMCS: a VMCS in L1's memory that L1 reads and
 * writes like any memory, and whose clean fields tell what it did not change. nested/ runs the entries and
 * exits; where the page is and how it looks only the implementer of `struct enlightened` knows.
 */
#ifndef NIDUS_NESTED_ENLIGHTENED_H
#define NIDUS_NESTED_ENLIGHTENED_H

#include "hv/vcpu.h"

struct vmcs02;

/* What the page has beside VMCS fields: TLFS "Enlightened VMCS", nested enlightenments. */
struct enlightenments {
	u32 control, vp_id;
	u64 vm_id, partition_assist;
};
#define ENLIGHTENED_NESTED_FLUSH   BIT32(0) /* control: L2's flush calls are L0's */
#define ENLIGHTENED_MSR_BITMAP     BIT32(1) /* control: the MSR bitmap changes only with its clean bit */
#define ENLIGHTENED_MSR_BITMAP_BIT 1

struct enlightened {
	/* Address in L1's memory of what the next VM entry uses; ~0: none, the ordinary rules hold. */
	u64 (*active)(struct vcpu *v);
	/*
	 * The page's fields into e->v12, and every group is clean. `fresh`: all of them, else those that are
	 * not marked clean. What differs from before is added to e->dirty; e->bitmap_clean says whether L1's
	 * MSR bitmap is the one merged last. False: no RAM, or not a page of a version we know; nothing was
	 * changed.
	 */
	bool (*copy_in)(struct vcpu *v, struct vmcs02 *e, bool fresh);
	/* The next VM entry uses e's page, and every group is clean: what has no clean bit is in e->v12.
	 * False: nothing was done. */
	bool (*copy_in_again)(struct vcpu *v, struct vmcs02 *e);
	/* An exit of L2, VMCS02 current: guest state into the page (VMCS12 has what entries compare and is
	 * stale in the rest), and the information of an exit that hardware reported; `rare`: L2's MSRs too.
	 */
	void (*save)(struct vmcs02 *e, bool rare);
	void (*save_exit)(struct vmcs02 *e, u32 reason, bool rare);
	/* From VMCS12: information of an exit L0 made; reason and qualification of a failed entry; the
	 * VM-instruction error. */
	void (*put_info)(struct vmcs02 *e);
	void (*put_failed)(struct vmcs02 *e);
	void (*put_error)(struct vmcs02 *e);
	/* A field as it stands in the page. False: the page does not have it. */
	bool (*read)(struct vcpu *v, struct vmcs02 *e, u64 encoding, u64 *value);
	/* VMCALL of L2. False: it is L1's. VMCS02 current. */
	bool (*l2_call)(struct vcpu *v, struct vmcs02 *e, enum exit_action *action);
	/* The abort indicator is at the same place in both forms: nested/vmcs02.c. */
};

/* Once, after nested_create: from now on the vCPU's entries ask `en`, and controls without a place in the
 * page are not offered any more. */
void nested_enlighten(struct vcpu *v, const struct enlightened *en);
/* L1 took the page away from where L0 looks for it: it is never written again. Pre: L1 runs. */
void nested_leave_enlightened(struct vcpu *v);

/* Bring groups of e->v12 up to date that an exit left stale. Pre: L1 runs. */
void nested_fetch(struct vcpu *v, struct vmcs02 *e, u32 groups);

/* What hypercalls about L2's memory need: by the address in an EPTP of L1, drop a range (bytes ~0: all of
 * it), and tell which vCPUs may still use what was there. */
void nested_flush_gpa(struct vcpu *v, u64 eptp12, ngpa_t from, u64 bytes);
u64 nested_inside(struct vcpu *v, u64 eptp12);

/* What L2's calls need. VMCS02 current. */
/* Copy from L2's physical memory. False: EPT12 or L1's memory does not have it. */
bool nested_read_l2(struct vcpu *v, ngpa_t at, void *buf, size_t n);
/* Flush what this CPU holds of these VPs of the L2 with this identity; VP n is bit n modulo 64. */
void nested_flush_vm(struct vcpu *v, u64 vm_id, u64 vps);
/* The instruction is done; L1 gets an exit with a reason of its own. */
enum exit_action nested_exit_after(struct vcpu *v, u32 reason);

#endif
