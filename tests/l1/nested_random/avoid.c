/* SPDX-License-Identifier: Apache-2.0 */
/* Where Bochs 2.7 is known to leave the manual (the Q and rule numbers are those of the project's notes on
 * it), the state is changed to one that both see alike; the rules themselves are tested by nested_checks and
 * by unit tests. */
#include "random.h"

static void put_low(u32 field, u64 mask, u64 value)
{
	vmwrite(field, (vmread(field) & ~mask) | value);
}

/* S12, S13, Q49: Bochs takes CPL from the selector of CS and compares that with the descriptor's. */
static void code_segment(bool real)
{
	u64 ar = vmread(VMCS_GUEST_CS_AR), dpl = ar >> 5 & 3;

	if ((ar & 15) == 3 || real)
		dpl = 0;
	put_low(VMCS_GUEST_CS_SEL, 3, dpl);
	put_low(VMCS_GUEST_CS_AR, 0x60, dpl << 5);
	put_low(VMCS_GUEST_SS_AR, 0x60, dpl << 5);
}

/* S5: with CS.L and a null RPL Bochs looks no further at SS. S16: it forgets type 11. */
static void data_segments(bool ia32e)
{
	if (ia32e && vmread(VMCS_GUEST_CS_AR) & 0x2000 && !(vmread(VMCS_GUEST_SS_SEL) & 3)) {
		put_low(VMCS_GUEST_SS_AR, ~0x60ul, 0xc093);
		vmwrite(VMCS_GUEST_SS_LIMIT, ~0u);
		vmwrite(VMCS_GUEST_SS_BASE, 0);
	}
	for (u32 i = 0; i < 6; i++)
		if (i != 1 && i != 2 && (vmread(VMCS_GUEST_ES_AR + 2 * i) & 15) == 11)
			put_low(VMCS_GUEST_ES_SEL + 2 * i, 3, 0);
}

/* G6: Bochs forgets CR0.PG of a 64-bit guest. P2, Q24: it enters with a RIP that is not canonical. P4: and
 * with RFLAGS.VM in real mode. */
static void registers(bool ia32e)
{
	u64 cr0 = vmread(VMCS_GUEST_CR0), rip = vmread(VMCS_GUEST_RIP);

	if (ia32e && !(cr0 & CR0_PG))
		vmcs_clear_bits(VMCS_GUEST_CR4, CR4_PAE);
	if (rip >> 47 && rip >> 47 != 0x1ffff)
		vmwrite(VMCS_GUEST_RIP, L2_CODE);
	if (!(cr0 & CR0_PE))
		vmcs_clear_bits(VMCS_GUEST_RFLAGS, BIT(17));
}

/* A4: Bochs lets every event into HLT, and too many into shutdown. A10, A16, Q3, Q18: blocking, single steps,
 * windows and the timer. No entry sleeps in wait-for-SIPI: nothing would wake it. Q62: with TF every exit
 * leaves a single step pending, so one that L0 keeps would show; and no debug trap wakes from HLT. */
static void activity(void)
{
	u64 info = vmread(VMCS_ENTRY_INTR_INFO), type = info >> 8 & 7,
	    state = vmread(VMCS_GUEST_ACTIVITY_STATE);
	bool injects = info & INTR_VALID;

	if (state == 3)
		state = 4;
	if (state == 2 && injects && type != 2)
		state = 0;
	if (state == 1 && ((injects && type != 0 && type != 2) || vmread(VMCS_PROC_CTL) & PROC_INTR_WINDOW))
		state = 0;
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, state);
	if (vmread(VMCS_GUEST_INTERRUPTIBILITY) & 3)
		vmcs_clear_bits(VMCS_GUEST_PENDING_DEBUG, BIT(14));
	if (state)
		vmcs_clear_bits(VMCS_GUEST_PENDING_DEBUG, BIT(14) | BIT(12) | 15);
	vmcs_clear_bits(VMCS_GUEST_RFLAGS, RFLAGS_TF);
	if (!vmread(VMCS_PREEMPTION_TIMER) || (injects && type == 2))
		vmcs_clear_bits(VMCS_GUEST_INTERRUPTIBILITY, BLOCK_STI | BLOCK_MOV_SS);
}

/* The link pointer's qualification is its own, and the order of the checks is nobody's promise. */
static void link_alone(void)
{
	if (vmread(VMCS_LINK_POINTER) == ~0ul)
		return;
	vmwrite(VMCS_GUEST_INTERRUPTIBILITY, 0);
	vmwrite(VMCS_GUEST_ACTIVITY_STATE, 0);
	vmwrite(VMCS_GUEST_PENDING_DEBUG, 0);
	vmcs_clear_bits(VMCS_ENTRY_INTR_INFO, INTR_VALID);
}

/* What ends each case, or would show traces of earlier ones: the timer stays, and no NMI window (Q5). */
static void controls(void)
{
	vmcs_set_bits(VMCS_PIN_CTL, PIN_TIMER);
	vmcs_set_bits(VMCS_PROC_CTL, world_needs);
	if (vmread(VMCS_PIN_CTL) & PIN_VNMI)
		vmcs_clear_bits(VMCS_PROC_CTL, PROC_NMI_WINDOW);
}

void avoid(void)
{
	bool ia32e = vmread(VMCS_ENTRY_CTL) & ENTRY_IA32E;
	bool vm86 = vmread(VMCS_GUEST_RFLAGS) & BIT(17);

	registers(ia32e);
	if (!vm86) {
		code_segment(!(vmread(VMCS_GUEST_CR0) & CR0_PE));
		data_segments(ia32e);
	}
	link_alone();
	activity();
	controls();
}
