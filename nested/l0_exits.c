/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exits of L2 that L1 does not want: L0 does what the processor would have done for L1's L2. A handler of hv/
 * is used only where the row says so, because it acts on the current VMCS and means the same there. Pre,
 * everywhere: VMCS02 is current.
 */
#include "hv/exit.h"
#include "mm/guest_copy.h"
#include "nested/internal.h"

static void look_again(struct vcpu *v, u32 bits)
{
	__atomic_fetch_or(&v->pending, bits, __ATOMIC_RELAXED);
}

/* L0's own window: the event that waited for it is tried again in the gate. */
static enum exit_action l0_window(struct vcpu *v)
{
	look_again(v, PEND_NESTED);
	return RESUME;
}

static enum exit_action l0_ignore(struct vcpu *v)
{
	(void)v;
	return RESUME;
}

/* L1 lets L2 halt: the CPU is given up as for a HLT of L1; the gate wakes it. */
static enum exit_action l0_hlt(struct vcpu *v)
{
	insn_advance(v);
	v->nested->activity = ACTIVITY_HLT;
	v->state = VCPU_HALT;
	look_again(v, PEND_NESTED);
	return RESUME;
}

/* --- control registers --- */

/* SDM "PDPTE Registers": MOV to CR0 loads them when it begins PAE paging or changes CD, NW. */
static bool load_pdptes(struct vcpu *v, u64 cr0, u64 cr4, u64 efer)
{
	u64 pdpte[4], reserved = 0x1e6 | ~MASK(v->nested->facts.phys_bits);

	if (!(cr0 & CR0_PG) || !(cr4 & CR4_PAE) || efer & EFER_LME)
		return true;
	if (!l2_read_physical(v, NGPA(vmcs_read_nw(VMCS_GUEST_CR3) & 0xffffffe0), pdpte, sizeof(pdpte)))
		return false;
	for (unsigned i = 0; i < ARRAY_SIZE(pdpte); i++)
		if (pdpte[i] & 1 && pdpte[i] & reserved)
			return false;
	for (unsigned i = 0; i < ARRAY_SIZE(pdpte); i++)
		vmcs_write_raw(VMCS_GUEST_PDPTE0 + 2 * i, pdpte[i]);
	return true;
}

/* SDM "Restrictions on VMX Operation"; PE and PG are free with unrestricted guest. */
static bool cr0_allowed(const struct vcpu *v, const struct vmcs02 *e, u64 cr0, u64 old, u64 cr4, u64 efer)
{
	u64 fixed0 = v->nested->caps.cr0_fixed0;
	bool cs_l = vmcs_read32(VMCS_GUEST_CS_AR) & BIT32(13);

	if (v12_sec(e, SEC_UNRESTRICTED))
		fixed0 &= ~(CR0_PE | CR0_PG);
	if (cr0 >> 32 || (cr0 & fixed0) != fixed0)
		return false;
	if ((cr0 & CR0_PG && !(cr0 & CR0_PE)) || (cr0 & CR0_NW && !(cr0 & CR0_CD)))
		return false;
	if (cr0 & ~old & CR0_PG && efer & EFER_LME)
		return cr4 & CR4_PAE && !cs_l;
	if (old & ~cr0 & CR0_PG)
		return !(cr4 & CR4_PCIDE) && !(efer & EFER_LMA && cs_l);
	return true;
}

/* L2 changes CD or NW, which L0 keeps from hardware; other bits that L1 gave away may change with them. */
static enum exit_action mov_to_cr0(struct vcpu *v, u64 value)
{
	struct vmcs02 *e = v->nested->current;
	const struct l0_needs *l0 = &v->nested->needs;
	u64 old = merge_saved_cr0(&e->v12, l0, vmcs_read_nw(VMCS_GUEST_CR0), e->m.cr0_shadow);
	u64 cr4 = vmcs_read_nw(VMCS_GUEST_CR4), efer = vmcs_read64(VMCS_GUEST_EFER);
	u64 cr0 = (old & e->v12.cr0_mask) | (value & ~e->v12.cr0_mask) | CR0_ET;

	if (!cr0_allowed(v, e, cr0, old, cr4, efer))
		return fault_gp(v);
	if ((cr0 ^ old) & (CR0_PG | CR0_CD | CR0_NW) && !load_pdptes(v, cr0, cr4, efer))
		return fault_gp(v);
	if ((cr0 ^ old) & CR0_PG && efer & EFER_LME)
		vcpu_load_efer(v, cr0 & CR0_PG ? efer | EFER_LMA : efer & ~EFER_LMA);
	vmcs_write_nw(VMCS_GUEST_CR0, (cr0 & ~l0->cr0_mask) | (l0->cr0_value & l0->cr0_mask));
	e->m.cr0_shadow = (e->v12.cr0_shadow & e->v12.cr0_mask) | (cr0 & ~e->v12.cr0_mask);
	vmcs02_put(e, MIRROR_CR0_SHADOW, e->m.cr0_shadow);
	guest_area_plan(v, e);
	v->kept_written = true;
	return RESUME_NEXT;
}

/* Without a TPR shadow of its own CR8 of L2 is the task priority of L1's local APIC. */
static enum exit_action cr8_access(struct vcpu *v, const struct cr_qual *q)
{
	if (q->access == CR_ACCESS_FROM) {
		vcpu_set_reg(v, q->reg, vlapic_tpr(v) >> 4);
		return RESUME_NEXT;
	}
	if (vcpu_reg(v, q->reg) >> 4)
		return fault_gp(v);
	vlapic_set_tpr(v, (u8)(vcpu_reg(v, q->reg) << 4));
	look_again(v, PEND_INTR | PEND_TPR);
	return RESUME_NEXT;
}

static enum exit_action l0_cr(struct vcpu *v)
{
	struct cr_qual q = cr_qual_decode(vmcs_read_nw(VMCS_EXIT_QUAL));

	if (q.cr == 8)
		return cr8_access(v, &q);
	if (q.access == CR_ACCESS_TO && q.cr == 0)
		return mov_to_cr0(v, vcpu_64bit() ? vcpu_reg(v, q.reg) : (u32)vcpu_reg(v, q.reg));
	/* Of CR4 L0 keeps only bits that no processor of L1 has. */
	if (q.access == CR_ACCESS_TO && q.cr == 4)
		return fault_gp(v);
	return exit_unexpected(v, EXIT_CR_ACCESS);
}

/* --- ports: devices of L1 that L1 leaves to L2 --- */

#define IO_PORT(q) ((u16)((q) >> 16))
#define IO_SIZE(q) ((unsigned)((q)&7) + 1)
#define IO_IN      BIT(3)
#define IO_STRING  BIT(4)
#define IO_REP     BIT(5)

static u64 io_address_mask(void)
{
	unsigned size = vmcs_read32(VMCS_EXIT_INSN_INFO) >> 7 & 7;

	return size == 0 ? 0xffff : size == 1 ? 0xffffffff : ~0ull;
}

/* 32-bit register writes clear the upper half; 16-bit ones keep the rest. */
static void set_masked(struct vcpu *v, enum reg r, u64 mask, u64 value)
{
	v->regs[r] = mask == 0xffff ? (v->regs[r] & ~mask) | (value & mask) : value & mask;
}

/* The element lies in one page or in two; both are translated before the port is touched. */
static bool string_element(struct vcpu *v, u64 qual, u64 linear)
{
	const struct l1mem *mem = &v->guest->mem;
	unsigned size = IO_SIZE(qual);
	unsigned access = qual & IO_IN ? ACCESS_WRITE : ACCESS_READ;
	u8 buf[4] = {0xff, 0xff, 0xff, 0xff};
	gpa_t at[4];
	u32 value;

	for (unsigned i = 0; i < size; i++)
		if (!translate_l2(v, linear + i, access, &at[i]))
			return false;
	if (qual & IO_IN) {
		value = machine_in(v, IO_PORT(qual), size);
		for (unsigned i = 0; i < size; i++)
			guest_write(mem, at[i], (u8 *)&value + i, 1);
		return true;
	}
	for (unsigned i = 0; i < size; i++)
		guest_read(mem, at[i], &buf[i], 1);
	value = buf[0] | (u32)buf[1] << 8 | (u32)buf[2] << 16 | (u32)buf[3] << 24;
	machine_out(v, IO_PORT(qual), size, value);
	return true;
}

/* One element an exit; a REP goes on by executing the instruction again. */
static enum exit_action io_string(struct vcpu *v, u64 qual)
{
	u64 mask = io_address_mask();
	u64 step = vmcs_read_nw(VMCS_GUEST_RFLAGS) & RFLAGS_DF ? -(u64)IO_SIZE(qual) : IO_SIZE(qual);
	enum reg index = qual & IO_IN ? RDI : RSI;
	u64 count = qual & IO_REP ? v->regs[RCX] & mask : 1;

	if (!count)
		return RESUME_NEXT;
	if (!string_element(v, qual, vmcs_read_nw(VMCS_GUEST_LINEAR)))
		return RESUME;
	set_masked(v, index, mask, v->regs[index] + step);
	if (qual & IO_REP)
		set_masked(v, RCX, mask, count - 1);
	return qual & IO_REP && count > 1 ? RESUME : RESUME_NEXT;
}

static enum exit_action l0_io(struct vcpu *v)
{
	u64 qual = vmcs_read_nw(VMCS_EXIT_QUAL);

	return qual & IO_STRING ? io_string(v, qual) : exit_io(v);
}

/* --- MSRs --- */

static enum exit_action l0_rdmsr(struct vcpu *v)
{
	u64 value;

	if (!l2_msr_read(v, (u32)v->regs[RCX], &value))
		return fault_gp(v);
	v->regs[RAX] = (u32)value;
	v->regs[RDX] = value >> 32;
	return RESUME_NEXT;
}

static enum exit_action l0_wrmsr(struct vcpu *v)
{
	if (!l2_msr_write(v, (u32)v->regs[RCX], v->regs[RDX] << 32 | (u32)v->regs[RAX]))
		return fault_gp(v);
	return RESUME_NEXT;
}

/* --- shadow EPT --- */

/* SDM "Exit Qualification for EPT Violations", bit 12: IRET had unblocked NMIs before its fault; it will be
 * executed again. */
static void block_nmi_again(u64 qual)
{
	if (qual & EPT_QUAL_NMI_UNBLOCK && !(vmcs_read32(VMCS_IDT_VECT_INFO) & INTR_VALID))
		vmcs_write32(VMCS_GUEST_INTR_STATE, vmcs_read32(VMCS_GUEST_INTR_STATE) | INTR_STATE_NMI);
}

/*
 * L1's device page. An event delivered through one cannot be carried out by instruction: that ends L2 as
 * broken tables do. Code fetched from one is all ones, which is no instruction.
 */
static enum exit_action device_access(struct vcpu *v, gpa_t gpa, u64 qual)
{
	if (vmcs_read32(VMCS_IDT_VECT_INFO) & INTR_VALID)
		return reflect_simple(v, EXIT_TRIPLE_FAULT, 0);
	if (qual & EPT_QUAL_FETCH)
		return fault_ud(v);
	return mmio_emulate(v, gpa);
}

/* Pages of shadow tables come free when every vCPU inside has entered anew. */
static enum exit_action sept_retry(struct vcpu *v)
{
	const struct guest *g = v->guest;

	for (u32 i = 0; i < g->nr_vcpus; i++)
		if (g->vcpu[i] != v)
			vcpu_request(g->vcpu[i], PEND_TLB);
	return RESUME;
}

static enum exit_action reflect_ept(struct vcpu *v, u32 reason, u64 qual)
{
	struct l2_exit x;

	l2_exit_read(&x, reason);
	x.qual = qual;
	return reflect(v, &x);
}

/* L2's own #VE, else L1's exit. */
static enum exit_action ept_violation(struct vcpu *v, const struct ept12_result *r, u64 hw_qual)
{
	u64 nmi = hw_qual & EPT_QUAL_NMI_UNBLOCK;

	if (!raise_ve(v, r, r->qual, vmcs_read_nw(VMCS_GUEST_LINEAR), vmcs_read64(VMCS_GUEST_PHYS)))
		return reflect_ept(v, EXIT_EPT_VIOLATION, r->qual | nmi);
	block_nmi_again(hw_qual);
	return RESUME;
}

static enum exit_action l0_ept(struct vcpu *v, u64 qual)
{
	struct nested *n = v->nested;
	u64 phys = vmcs_read64(VMCS_GUEST_PHYS);
	struct ept12_log log;
	struct ept12_result r;

	if (!v12_sec(n->current, SEC_EPT))
		return device_access(v, GPA(phys), qual);
	switch (sept_fault(n->sept, n->current->root, v->index, NGPA(phys), qual, l1_log(v, &log), &r)) {
	case SEPT_FILLED:
		block_nmi_again(qual);
		return RESUME;
	case SEPT_RETRY:
		block_nmi_again(qual);
		return sept_retry(v);
	case SEPT_MMIO:
		return device_access(v, r.gpa, qual);
	case SEPT_VIOLATION:
		return ept_violation(v, &r, qual);
	case SEPT_LOG_FULL:
		return reflect_ept(v, EXIT_PML_FULL, qual & EPT_QUAL_NMI_UNBLOCK);
	case SEPT_MISCONFIG:
		return reflect_ept(v, EXIT_EPT_MISCONFIG, 0);
	}
	return RESUME;
}

static enum exit_action l0_ept_violation(struct vcpu *v)
{
	return l0_ept(v, vmcs_read_nw(VMCS_EXIT_QUAL));
}

/* L0 makes no entry that hardware calls misconfigured; the walk of EPT12 decides. */
static enum exit_action l0_ept_misconfig(struct vcpu *v)
{
	return l0_ept(v, 0);
}

static enum exit_action l0_machine_check(struct vcpu *v)
{
	guest_end(v->guest, "killed: machine check");
	return RESUME;
}

static exit_fn *const l0_table[EXIT_REASONS] = {
	[EXIT_EXCEPTION_NMI] = exit_exception, /* #DB, #AC, NMI, #MC: as for L1 */
	[EXIT_EXT_INTR] = exit_external_interrupt,
	[EXIT_INIT] = l0_ignore,
	[EXIT_SIPI] = l0_ignore,
	[EXIT_INTR_WINDOW] = l0_window,
	[EXIT_NMI_WINDOW] = l0_window,
	[EXIT_HLT] = l0_hlt,
	[EXIT_RDPMC] = exit_rdpmc,
	[EXIT_VMREAD] = l0_vmread,
	[EXIT_VMWRITE] = l0_vmwrite,
	[EXIT_CR_ACCESS] = l0_cr,
	[EXIT_IO] = l0_io,
	[EXIT_RDMSR] = l0_rdmsr,
	[EXIT_WRMSR] = l0_wrmsr,
	[EXIT_MWAIT] = exit_ud, /* L1's CPUID has no MONITOR */
	[EXIT_MONITOR] = exit_ud,
	[EXIT_MCE_DURING_ENTRY] = l0_machine_check,
	[EXIT_EPT_VIOLATION] = l0_ept_violation,
	[EXIT_EPT_MISCONFIG] = l0_ept_misconfig,
	[EXIT_TIMER] = timer_exit,
	[EXIT_VMFUNC] = eptp_switch,
	[EXIT_WBINVD] = exit_skip, /* L1's memory is coherent */
};

enum exit_action l0_exit(struct vcpu *v, u16 reason)
{
	exit_fn *fn = reason < EXIT_REASONS ? l0_table[reason] : NULL;

	return fn ? fn(v) : exit_unexpected(v, reason);
}
