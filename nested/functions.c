/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an L1 leaves to the processor in its EPT: switching to another one by VMFUNC, the log of dirty pages,
 * and violations that L2 gets as #VE. All of it is carried out by L0, on EPT12: hardware only knows the
 * shadow. Pre, everywhere: VMCS02 is current.
 */
#include "mm/guest_copy.h"
#include "nested/internal.h"

#define EPTP_LIST_ENTRIES 512u
#define VE_BUSY           0xffffffffu

/* SDM "EPTP Switching". Another root is entered before L2 goes on (nested_before_entry). */
enum exit_action eptp_switch(struct vcpu *v)
{
	struct nested *n = v->nested;
	struct vmcs02 *e = n->current;
	u32 index = (u32)v->regs[RCX];
	struct l2_exit x;
	u64 eptp;

	if (index >= EPTP_LIST_ENTRIES ||
	    !guest_read64(&v->guest->mem, GPA(e->v12.eptp_list + index * sizeof(eptp)), &eptp) ||
	    !eptp_ok(eptp, &n->facts)) {
		l2_exit_read(&x, EXIT_VMFUNC);
		return reflect(v, &x);
	}
	sept_leave(e->root, v->index);
	e->v12.eptp = eptp;
	e->eptp = eptp | (e->eptp & EPT12_MBE);
	e->v12.eptp_index = (u16)index;
	return RESUME_NEXT;
}

const struct ept12_log *l1_log(struct vcpu *v, struct ept12_log *log)
{
	struct vmcs02 *e = v->nested->current;

	if (likely(!v12_sec(e, SEC_PML)))
		return NULL;
	*log = (struct ept12_log){e->v12.pml_address, &e->v12.pml_index};
	return log;
}

/* SDM "Virtualization-Exception Information". */
struct ve_info {
	u32 reason, busy;
	u64 qual, linear, phys;
	u16 eptp_index;
} __attribute__((packed));

/* SDM "Convertible EPT Violations", "Virtualization Exceptions". */
bool raise_ve(struct vcpu *v, const struct ept12_result *r, u64 qual, u64 linear, u64 phys)
{
	const struct l1mem *mem = &v->guest->mem;
	const struct vmcs02 *e = v->nested->current;
	struct ve_info info;

	if (likely(!v12_sec(e, SEC_VE)) || r->no_ve)
		return false;
	if (!(vmcs_read_nw(VMCS_GUEST_CR0) & CR0_PE) || vmcs_read32(VMCS_IDT_VECT_INFO) & INTR_VALID)
		return false;
	if (!guest_read(mem, GPA(e->v12.ve_info), &info, sizeof(info)) || info.busy)
		return false;
	info = (struct ve_info){EXIT_EPT_VIOLATION, VE_BUSY, qual, linear, phys, e->v12.eptp_index};
	guest_write(mem, GPA(e->v12.ve_info), &info, sizeof(info));
	inject_exception(v, VEC_VE);
	return true;
}
