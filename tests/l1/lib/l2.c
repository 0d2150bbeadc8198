/* SPDX-License-Identifier: Apache-2.0 */
/* A VMCS with sane defaults, entry and exit. SDM "Virtual-Machine Control Structures". */
#include "l2.h"
#include "cpu.h"
#include "page.h"
#include "report.h"

/* Segment access rights. */
#define AR_CODE64   0xa09b
#define AR_CODE32   0xc09b
#define AR_CODE16   0x009b
#define AR_DATA32   0xc093
#define AR_DATA16   0x0093
#define AR_TSS64    0x008b
#define AR_UNUSABLE 0x10000

struct l2_frame {
	u64 host_rsp;
	u64 scratch[63]; /* stack for an NMI that comes between the exit and the switch to the real stack */
	struct l2_regs regs;
} __attribute__((aligned(16)));

_Static_assert(offsetof(struct l2_frame, regs) == 512, "FRAME_REGS in l2.S");

struct l2_cpu {
	struct l2_frame frame;
	u64 vmcs, ept;
	u8 *msr_bitmap;
	bool launched;
};

u64 l2_switch(struct l2_frame *frame, bool resume);
extern const u8 l2_exit[], l2_start[];

static struct l2_cpu l2_cpus[MAX_CPUS];
static u8 l2_stacks[MAX_CPUS][16384] __attribute__((aligned(16)));

static struct l2_cpu *self(void)
{
	return &l2_cpus[cpu_index()];
}

u64 l2_vmcs(void)
{
	return self()->vmcs;
}

u64 l2_ept(void)
{
	struct l2_cpu *c = self();

	if (!c->ept)
		c->ept = ept_identity(BIT(32), PAGE_2M);
	return c->ept;
}

u8 *l2_msr_bitmap(void)
{
	struct l2_cpu *c = self();

	if (!c->msr_bitmap)
		c->msr_bitmap = page_alloc();
	return c->msr_bitmap;
}

struct l2_regs *l2_regs(void)
{
	return &self()->frame.regs;
}

u64 l2_stack_top(void)
{
	return addr_of(l2_stacks[cpu_index()]) + sizeof(l2_stacks[0]);
}

static void set_control(u32 field, u64 wish)
{
	vmwrite(field, ((u32)wish | ctl_must(field)) & ctl_may(field));
}

static void set_controls(void)
{
	set_control(VMCS_PIN_CTL, 0);
	set_control(VMCS_PROC_CTL, PROC_HLT | PROC_MSR_BITMAP | PROC_SECONDARY);
	if (ctl_has(VMCS_PROC_CTL, PROC_SECONDARY))
		set_control(VMCS_PROC2_CTL, PROC2_EPT | PROC2_UNRESTRICTED | PROC2_RDTSCP);
	set_control(VMCS_EXIT_CTL, EXIT_HOST64 | EXIT_SAVE_DEBUG | EXIT_SAVE_EFER | EXIT_LOAD_EFER);
	set_control(VMCS_ENTRY_CTL, ENTRY_IA32E | ENTRY_LOAD_DEBUG | ENTRY_LOAD_EFER);
	if (ctl_has(VMCS_PROC_CTL, PROC_MSR_BITMAP))
		vmwrite(VMCS_MSR_BITMAP, addr_of(l2_msr_bitmap()));
	if (proc2_has(PROC2_EPT))
		vmwrite(VMCS_EPTP, ept_pointer(l2_ept()));
	vmwrite(VMCS_LINK_POINTER, ~0ull);
}

/* Fields that are zero by default. A fresh region has no defined content, so all are written. */
static void set_zeros(void)
{
	static const u16 fields[] = {
		VMCS_EXCEPTION_BITMAP,
		VMCS_PF_MASK,
		VMCS_PF_MATCH,
		VMCS_CR3_TARGET_COUNT,
		VMCS_EXIT_MSR_STORE_COUNT,
		VMCS_EXIT_MSR_LOAD_COUNT,
		VMCS_ENTRY_MSR_LOAD_COUNT,
		VMCS_ENTRY_INTR_INFO,
		VMCS_ENTRY_ERROR_CODE,
		VMCS_ENTRY_INSN_LEN,
		VMCS_CR0_GUEST_HOST_MASK,
		VMCS_CR4_GUEST_HOST_MASK,
		VMCS_CR0_READ_SHADOW,
		VMCS_CR4_READ_SHADOW,
		VMCS_TSC_OFFSET,
		VMCS_GUEST_INTERRUPTIBILITY,
		VMCS_GUEST_ACTIVITY_STATE,
		VMCS_GUEST_PENDING_DEBUG,
		VMCS_GUEST_DEBUGCTL,
		VMCS_GUEST_SYSENTER_CS,
		VMCS_GUEST_SYSENTER_ESP,
		VMCS_GUEST_SYSENTER_EIP,
		VMCS_HOST_SYSENTER_CS,
		VMCS_HOST_SYSENTER_ESP,
		VMCS_HOST_SYSENTER_EIP,
		VMCS_GUEST_FS_BASE,
		VMCS_GUEST_GS_BASE,
		VMCS_HOST_FS_BASE,
		VMCS_HOST_GS_BASE,
		VMCS_HOST_FS_SEL,
		VMCS_HOST_GS_SEL,
	};

	for (u32 i = 0; i < ARRAY_SIZE(fields); i++)
		vmwrite(fields[i], 0);
}

static void set_host(struct l2_cpu *c)
{
	vmwrite(VMCS_HOST_CR0, read_cr0());
	vmwrite(VMCS_HOST_CR3, read_cr3());
	vmwrite(VMCS_HOST_CR4, read_cr4());
	vmwrite(VMCS_HOST_EFER, rdmsr(MSR_EFER));
	vmwrite(VMCS_HOST_CS_SEL, SEL_CODE64);
	vmwrite(VMCS_HOST_SS_SEL, SEL_DATA);
	vmwrite(VMCS_HOST_DS_SEL, SEL_DATA);
	vmwrite(VMCS_HOST_ES_SEL, SEL_DATA);
	vmwrite(VMCS_HOST_TR_SEL, str());
	vmwrite(VMCS_HOST_TR_BASE, tss_base(cpu_index()));
	vmwrite(VMCS_HOST_GDTR_BASE, sgdt().base);
	vmwrite(VMCS_HOST_IDTR_BASE, sidt().base);
	vmwrite(VMCS_HOST_RSP, addr_of(&c->frame.regs + 1));
	vmwrite(VMCS_HOST_RIP, addr_of(l2_exit));
}

struct segment {
	u16 selector;
	u32 rights, limit;
	u64 base;
};

/* i counts in the manual's order: ES CS SS DS FS GS LDTR TR; the field encodings go up by two. */
static void set_segment(u32 i, struct segment s)
{
	vmwrite(VMCS_GUEST_ES_SEL + 2 * i, s.selector);
	vmwrite(VMCS_GUEST_ES_LIMIT + 2 * i, s.limit);
	vmwrite(VMCS_GUEST_ES_AR + 2 * i, s.rights);
	vmwrite(VMCS_GUEST_ES_BASE + 2 * i, s.base);
}

enum { SEG_ES, SEG_CS, SEG_SS, SEG_DS, SEG_FS, SEG_GS, SEG_LDTR, SEG_TR };

static void set_segments(struct segment cs, struct segment data)
{
	set_segment(SEG_CS, cs);
	for (u32 i = SEG_ES; i <= SEG_GS; i++)
		if (i != SEG_CS)
			set_segment(i, data);
	set_segment(SEG_LDTR, (struct segment){0, AR_UNUSABLE, 0, 0});
	set_segment(SEG_TR, (struct segment){str(), AR_TSS64, 0x67, tss_base(cpu_index())});
}

static void set_guest(void)
{
	set_segments((struct segment){SEL_CODE64, AR_CODE64, ~0u, 0},
		     (struct segment){SEL_DATA, AR_DATA32, ~0u, 0});
	vmwrite(VMCS_GUEST_GDTR_BASE, sgdt().base);
	vmwrite(VMCS_GUEST_GDTR_LIMIT, 0x40 + 16 * MAX_CPUS - 1);
	vmwrite(VMCS_GUEST_IDTR_BASE, sidt().base);
	vmwrite(VMCS_GUEST_IDTR_LIMIT, 0xfff);
	vmwrite(VMCS_GUEST_CR0, read_cr0());
	vmwrite(VMCS_GUEST_CR3, read_cr3());
	vmwrite(VMCS_GUEST_CR4, read_cr4());
	vmwrite(VMCS_GUEST_EFER, rdmsr(MSR_EFER));
	vmwrite(VMCS_GUEST_DR7, 0x400);
	vmwrite(VMCS_GUEST_RFLAGS, 2);
}

void l2_set_entry(l2_fn *fn)
{
	vmwrite(VMCS_GUEST_RIP, addr_of(l2_start));
	vmwrite(VMCS_GUEST_RSP, l2_stack_top());
	*l2_regs() = (struct l2_regs){.rdi = addr_of((const void *)(uintptr_t)fn)};
}

void l2_prepare_in(u64 vmcs, l2_fn *fn)
{
	if (!vmx_start() || vmclear(vmcs) != VM_OK || vmptrld(vmcs) != VM_OK) {
		expect_true("vmcs-usable", false);
		report_done();
	}
	self()->launched = false;
	set_zeros();
	set_controls();
	set_host(self());
	set_guest();
	l2_set_entry(fn);
}

void l2_prepare(l2_fn *fn)
{
	struct l2_cpu *c = self();

	if (!c->vmcs)
		c->vmcs = vmcs_alloc();
	l2_prepare_in(c->vmcs, fn);
}

u64 l2_enter_raw(bool resume)
{
	return l2_switch(&self()->frame, resume);
}

static struct vm_result enter(bool resume)
{
	struct vm_result r = {0};
	u64 flags;

	trap_forget();
	flags = l2_enter_raw(resume);
	if (flags) {
		r.kind = VM_FAIL;
		r.fail = trap_last()         ? trap_last()
			 : flags & RFLAGS_CF ? VMFAIL_INVALID
					     : VMFAIL_VALID(vmread(VMCS_INSN_ERROR));
		return r;
	}
	r.reason = (u32)vmread(VMCS_EXIT_REASON);
	r.qual = vmread(VMCS_EXIT_QUAL);
	r.rip = vmread(VMCS_GUEST_RIP);
	r.insn_len = (u32)vmread(VMCS_EXIT_INSN_LEN);
	r.insn_info = (u32)vmread(VMCS_EXIT_INSN_INFO);
	r.intr_info = (u32)vmread(VMCS_EXIT_INTR_INFO);
	r.intr_error = (u32)vmread(VMCS_EXIT_INTR_ERROR);
	r.idt_info = (u32)vmread(VMCS_IDT_INFO);
	r.idt_error = (u32)vmread(VMCS_IDT_ERROR);
	r.gla = vmread(VMCS_GUEST_LINEAR);
	if (proc2_has(PROC2_EPT))
		r.gpa = vmread(VMCS_GUEST_PHYSICAL);
	if (!(r.reason & EXIT_ENTRY_FAILED))
		self()->launched = true;
	return r;
}

struct vm_result l2_launch(void)
{
	return enter(false);
}

struct vm_result l2_resume(void)
{
	return enter(true);
}

struct vm_result l2_run(void)
{
	return enter(self()->launched);
}

void l2_skip(const struct vm_result *r)
{
	vmwrite(VMCS_GUEST_RIP, r->rip + r->insn_len);
}

struct vm_result l2_run_past(const struct vm_result *r)
{
	l2_skip(r);
	return l2_run();
}

bool l2_called(const struct vm_result *r, u64 number)
{
	return r->kind == VM_EXIT && r->reason == EXIT_VMCALL && l2_regs()->rax == number;
}

u64 l2_outcome(const struct vm_result *r)
{
	return r->kind == VM_EXIT ? r->reason : FAILED(r->fail);
}

static void set_flat_state(u64 cr0, u64 cr4, u64 efer)
{
	vmcs_clear_bits(VMCS_ENTRY_CTL, ENTRY_IA32E);
	vmwrite(VMCS_GUEST_CR0, (cr0 | CR0_NE));
	vmwrite(VMCS_GUEST_CR4, cr4 | CR4_VMXE);
	vmwrite(VMCS_GUEST_EFER, efer);
}

void l2_enter_real_mode(u16 segment, u16 offset)
{
	struct segment code = {segment, 0x93, 0xffff, (u64)segment << 4};

	set_flat_state(0, 0, 0);
	set_segments(code, (struct segment){segment, AR_DATA16, 0xffff, (u64)segment << 4});
	vmwrite(VMCS_GUEST_IDTR_BASE, 0);
	vmwrite(VMCS_GUEST_IDTR_LIMIT, 0x3ff);
	vmwrite(VMCS_GUEST_RIP, offset);
	vmwrite(VMCS_GUEST_RSP, 0xff0);
}

void l2_enter_protected(u32 eip, u64 cr3, bool paging, bool pae)
{
	struct segment code = {SEL_CODE32, AR_CODE32, ~0u, 0};

	set_flat_state(CR0_PE | (paging ? CR0_PG | CR0_WP : 0), pae ? CR4_PAE : CR4_PSE, 0);
	set_segments(code, (struct segment){SEL_DATA, AR_DATA32, ~0u, 0});
	vmwrite(VMCS_GUEST_CR3, cr3);
	vmwrite(VMCS_GUEST_RIP, eip);
	vmwrite(VMCS_GUEST_RSP, l2_stack_top());
}
