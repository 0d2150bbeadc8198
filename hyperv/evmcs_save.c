/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exit of L2 straight from VMCS02 into the page of an enlightened VMCS: VMREADs in the order of the page.
 * VMCS12 gets only what the next entry compares; the rest of it is behind from now on (e->stale). Pre,
 * everywhere: VMCS02 is current. SDM "Saving Guest State".
 */
#include "hyperv/evmcs.h"
#include "mm/guest_access.h"
#include "nested/checks.h"
#include "nested/exit_info.h"
#include "nested/vmcs02.h"

#define AT64(page, name) (*(u64 *)(void *)((char *)(page) + EVMCS_AT_##name))
#define AT32(page, name) (*(u32 *)(void *)((char *)(page) + EVMCS_AT_##name))

#define MOVE64(page, name) vmcs_read_to(VMCS_##name, (char *)(page) + EVMCS_AT_##name)
#define MOVE32(page, name) (AT32(page, name) = (u32)vmcs_read_sure(VMCS_##name))

/* What L2 cannot change without an exit that L0 sees, but for debug exceptions, which clear DEBUGCTL.BTF. */
static __attribute__((noinline, cold)) void save_rare(void *page, struct vmcs02 *e)
{
	u32 ctl = e->v12.exit_ctl;
	u64 debugctl = vmcs_read64(VMCS_GUEST_DEBUGCTL);

	e->rare_due = debugctl;
	if (ctl & EXIT_SAVE_DEBUG)
		AT64(page, GUEST_DEBUGCTL) = debugctl;
	if (ctl & EXIT_SAVE_PAT)
		MOVE64(page, GUEST_PAT);
	MOVE32(page, GUEST_SYSENTER_CS);
	MOVE64(page, GUEST_SYSENTER_ESP);
	MOVE64(page, GUEST_SYSENTER_EIP);
}

static __attribute__((noinline, cold)) void save_pdptes(void *page)
{
	AT64(page, GUEST_PDPTE0) = vmcs_read64(VMCS_GUEST_PDPTE0);
	AT64(page, GUEST_PDPTE1) = vmcs_read64(VMCS_GUEST_PDPTE1);
	AT64(page, GUEST_PDPTE2) = vmcs_read64(VMCS_GUEST_PDPTE2);
	AT64(page, GUEST_PDPTE3) = vmcs_read64(VMCS_GUEST_PDPTE3);
}

/* SDM "Saving Control Registers, Debug Registers, and MSRs". */
static inline void save_registers(void *page, struct vmcs02 *e)
{
	struct vmcs12 *c = &e->v12;
	u64 cr0 = vmcs_read_sure(VMCS_GUEST_CR0), cr4 = vmcs_read_sure(VMCS_GUEST_CR4);
	u64 efer = vmcs_read_sure(VMCS_GUEST_EFER);
	u32 mode = efer & EFER_LMA ? ENTRY_IA32E : 0;

	if (unlikely((c->entry_ctl & ENTRY_IA32E) != mode)) { /* VMX_MISC bit 5 */
		c->entry_ctl = (c->entry_ctl & ~ENTRY_IA32E) | mode;
		e->dirty |= BIT32(GROUP_CONTROL_ENTRY);
	}
	if (unlikely(!mode) && cr0 & CR0_PG && cr4 & CR4_PAE && vmcs12_sec(c) & SEC_EPT)
		save_pdptes(page);
	AT64(page, GUEST_CR0) = (cr0 & e->cr0_saved.free) | e->cr0_saved.rest;
	AT64(page, GUEST_CR4) = (cr4 & e->cr4_saved.free) | e->cr4_saved.rest;
	if (c->exit_ctl & EXIT_SAVE_EFER)
		AT64(page, GUEST_EFER) = efer;
	if (c->exit_ctl & EXIT_SAVE_DEBUG)
		MOVE64(page, GUEST_DR7);
	AT32(page, ENTRY_CTL) = c->entry_ctl;
}

/* What the next entry looks at. */
static inline void save_basic(void *page, struct vmcs02 *e)
{
	struct vmcs12 *c = &e->v12;

	AT64(page, GUEST_RIP) = c->guest_rip = e->exit_rip = vmcs_read_sure(VMCS_GUEST_RIP);
	AT64(page, GUEST_RSP) = c->guest_rsp = vmcs_read_sure(VMCS_GUEST_RSP);
	AT64(page, GUEST_RFLAGS) = c->guest_rflags = vmcs_read_sure(VMCS_GUEST_RFLAGS);
	/* There is no SMM: the bit an SMI would set must not show. */
	c->guest_intr_state = (u32)vmcs_read_sure(VMCS_GUEST_INTR_STATE) & ~INTR_STATE_SMI;
	AT32(page, GUEST_INTR_STATE) = c->guest_intr_state;
	AT32(page, GUEST_ACTIVITY) = c->guest_activity;
	/* SDM "Basic VM-Exit Information": an exit clears the valid bit. */
	AT32(page, ENTRY_INTR_INFO) = c->entry_intr_info &= ~INTR_VALID;
}

static inline __attribute__((always_inline)) void save_area(void *page, struct vmcs02 *e, bool rare)
{
	save_basic(page, e);
	save_registers(page, e);
	if (unlikely(rare || e->rare_due))
		save_rare(page, e);
		/* Stores are 8 bytes wide: what one spills over is written after it. */
#define X(at, bytes, name, member, group, out)                                                               \
	if (PUT_##out == PUT_RAW)                                                                            \
		vmcs_read_to(VMCS_##name, (char *)page + (at));
	EVMCS_FIELDS(X)
#undef X
}

/* Fields that this exit leaves undefined are not touched. */
static __attribute__((noinline, cold)) void save_more_info(void *page, u32 reason)
{
	u32 intr = (u32)vmcs_read_sure(VMCS_EXIT_INTR_INFO), idt = (u32)vmcs_read_sure(VMCS_IDT_VECT_INFO);

	MOVE64(page, EXIT_QUAL);
	AT32(page, EXIT_INTR_INFO) = intr;
	AT32(page, IDT_VECT_INFO) = idt;
	MOVE32(page, EXIT_INSN_INFO);
	if (intr & INTR_VALID && intr & INTR_ERROR_CODE)
		MOVE32(page, EXIT_ERROR_CODE);
	if (idt & INTR_VALID && idt & INTR_ERROR_CODE)
		MOVE32(page, IDT_VECT_ERROR);
	if (exit_has_linear(reason))
		MOVE64(page, GUEST_LINEAR);
	if (exit_has_phys(reason))
		AT64(page, GUEST_PHYS) = vmcs_read64(VMCS_GUEST_PHYS);
}

static inline void save_info(void *page, u32 reason)
{
	AT32(page, EXIT_REASON) = reason;
	MOVE32(page, EXIT_INSN_LEN);
	if (unlikely(!exit_is_simple(reason))) {
		save_more_info(page, reason);
		return;
	}
	AT64(page, EXIT_QUAL) = 0;
	AT32(page, EXIT_INTR_INFO) = AT32(page, IDT_VECT_INFO) = 0;
}

void evmcs_save_exit(struct vmcs02 *e, u32 reason, bool rare)
{
	void *page = e->page;

	guest_access_begin();
	save_info(page, reason);
	save_area(page, e, rare);
	guest_access_end();
}

/* An exit that hardware did not report; its information comes from VMCS12. */
void evmcs_save(struct vmcs02 *e, bool rare)
{
	evmcs_save_exit(e, 0, rare);
}
