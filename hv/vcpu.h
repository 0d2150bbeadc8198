/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One virtual CPU of an L1 guest. It has no stack of its own: each exit starts on the stack of the physical
 * CPU, and ends by returning the vCPU to enter next. What differs between running L1 and running its L2 is a
 * `struct level`; nested/ switches it, hv/ knows only the type.
 */
#ifndef NIDUS_HV_VCPU_H
#define NIDUS_HV_VCPU_H

#include "hv/dev/machine.h"
#include "hv/guest.h"
#include "hv/types.h"
#include "hv/vmcs.h"
#include "hv/x86.h"

struct cpu;
struct insn_memo;
struct nested;
struct pmu;
struct vcpu;

/* Register numbers as in instruction information and ModRM. RSP lives in the VMCS; its slot here is unused.
 */
enum reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

/* What a handler wants done. It never touches RIP itself. */
enum exit_action {
	RESUME, /* enter again where the guest stands (it was given a fault, or repeats the instruction) */
	RESUME_NEXT, /* the instruction was carried out: advance RIP */
	RESCHEDULE,  /* as RESUME, but this vCPU may not be runnable any more */
};
typedef enum exit_action exit_fn(struct vcpu *v);

/* Requests to a vCPU, set atomically from any CPU; all are looked at in the event gate. */
enum pending {
	PEND_INJECT = BIT32(0), /* v->inject is to be delivered (own CPU only) */
	PEND_INTR = BIT32(1),   /* look at the local APIC and the PIC again */
	PEND_NMI = BIT32(2),
	PEND_INIT = BIT32(3),
	PEND_SIPI = BIT32(4),
	PEND_STOP = BIT32(5),    /* the guest is ending or restarting */
	PEND_RESCHED = BIT32(6), /* time slice over */
	PEND_TLB = BIT32(7),     /* EPT01 or a shadow EPT changed on another CPU: INVEPT before entry */
	PEND_NESTED = BIT32(8),  /* nested/ wants its gate called */
	PEND_TPR = BIT32(9),     /* TPR threshold to be set again */
	PEND_VPID = BIT32(10),   /* INVVPID of VMCS01's tag before entry */
};

/* VM-entry event fields. */
struct event {
	u32 info; /* 0: none */
	u32 error;
	u32 insn_len;
};

/* What runs on this vCPU now: L1 (hv/exit.c) or its L2 (nested/). */
struct level {
	enum exit_action (*exit)(struct vcpu *v, u32 reason); /* reason: the full exit-reason field */
	enum exit_action (*gate)(struct vcpu *v); /* called before an entry while v->pending is not 0 */
	void (*fault)(struct vcpu *v, const struct event *e); /* an exception L0 raises in what runs */
	/* Linear address of what runs to L1's gpa, for an access by L0 on its behalf (enum access of
	 * mm/guest_copy.h). False: a fault or an exit to L1 is queued, the caller returns RESUME. */
	bool (*translate)(struct vcpu *v, u64 linear, unsigned access, gpa_t *out);
};
extern const struct level level_l1;

/* START: to be reset on its own CPU, then RUN (vCPU 0) or WAIT_SIPI. */
enum vcpu_state { VCPU_OFF, VCPU_START, VCPU_RUN, VCPU_HALT, VCPU_WAIT_SIPI };

struct vcpu {
	u64 regs[16];      /* must stay first: entry.S stores here through HOST_RSP */
	struct vmcs *vmcs; /* what is entered: &vmcs01, or a VMCS02 */
	u32 pending;       /* enum pending, atomic */
	enum vcpu_state state;
	const struct level *level;
	struct event inject; /* with PEND_INJECT */

	struct cpu *cpu; /* pinned here */
	struct vcpu *next_on_cpu;
	struct guest *guest;
	u64 ran;        /* TSC ticks it had its CPU for, up to cpu->since */
	u32 index;      /* in guest->vcpu; also the APIC id */
	u16 vpid;       /* of VMCS01 */
	bool preempt;   /* shares its CPU: the preemption timer runs */
	u32 cpuid1_ecx; /* cpuid_own_ecx */

	struct vmcs vmcs01;
	struct vlapic *lapic;
	bool apicv;            /* the processor serves L1's APIC (hv/apicv) */
	u32 apicv_mode;        /* secondary controls in force for it */
	u64 apicv_eoi[4];      /* EOI-exit bitmaps in VMCS01 */
	struct nested *nested; /* NULL: vmx=off */
	void *vp;              /* of guest->personality */

	/* L1's own view of what VMCS01 holds in a changed form. */
	u64 cr0_fixed, cr4_mask; /* bits L0 holds to itself, see hv/exit_cr.c */
	u64 efer, xcr0, xss, apic_base;
	u64 feature_control, misc_enable, tsc_aux, tsc_adjust;
	u64 tsc_offset; /* L1's TSC = host TSC + this */
	u64 mtrr_def, mtrr_fixed[11], mtrr_var[16];
	u32 sipi_vector;
	/* Something wrote a register that is changed only by L0 (CR0 and CR4 masks and shadows, EFER, PAT,
	 * DEBUGCTL, SYSENTER MSRs) into the current VMCS. nested/ clears it. */
	bool kept_written;
	bool intr_window, nmi_window; /* window exiting is on in VMCS01 */
	u8 tpr_threshold;             /* in VMCS01 */
	u8 nmi_waiting;               /* an NMI is held back by blocking */
	u32 nmis_sent;                /* atomic; since the gate looked last */
	bool init_waiting;            /* INIT is held back by VMX root operation */

	/* State that stays in the registers until another vCPU is loaded on this CPU. */
	u64 cr2, dr[4], dr6;
	u64 star, lstar, cstar, fmask, kernel_gs;
	void *fpu;       /* XSAVE area */
	struct pmu *pmu; /* hv/pmu; NULL: none */

	struct insn_memo *memos; /* of L1's accesses to devices */

	/* Counters, for the end-of-guest line and debugging. */
	u64 exits[EXIT_REASONS];
	u64 l2_exits[EXIT_REASONS];
};

/* Allocate with VMCS01, local APIC and nested state; state OFF. NULL: no memory. */
struct vcpu *vcpu_create(struct guest *g, u32 index, struct cpu *cpu);
void vcpu_destroy(struct vcpu *v);
/* Power-on or INIT state into VMCS01 and *v. SDM "Processor State After Reset". Pre: none (loads VMCS01). */
void vcpu_reset(struct vcpu *v, bool init);
/* vCPU 0's first state from a loader. Pre: vcpu_reset was called. */
void vcpu_set_entry(struct vcpu *v, const struct entry_state *e);
/* Set `bits` in v->pending and make its CPU look. Any CPU. */
void vcpu_request(struct vcpu *v, u32 bits);
/* One more NMI for it. Any CPU. */
void vcpu_nmi(struct vcpu *v);

/* Called by entry.S. Returns the vCPU to enter. */
struct vcpu *vcpu_exit(struct vcpu *v);

/* --- RIP, faults, state of the level that runs (current VMCS) --- */

/* RIP behind the instruction that exited; STI/MOV-SS blocking ends; RFLAGS.TF raises #DB. hv/insn_len.c */
void insn_advance(struct vcpu *v);
/* The same where the exit does not give the length: EPT violations. */
void insn_advance_by(struct vcpu *v, u32 length);
/* Raise an exception at the instruction. #PF: also sets CR2. */
void inject_exception(struct vcpu *v, enum vector vec);
void inject_exception_error(struct vcpu *v, enum vector vec, u32 error);
static inline enum exit_action fault_ud(struct vcpu *v);
static inline enum exit_action fault_gp(struct vcpu *v);
void inject_page_fault(struct vcpu *v, u64 linear, u32 error);
/* General register by number; RSP from the current VMCS. */
u64 vcpu_reg(const struct vcpu *v, unsigned reg);
void vcpu_set_reg(struct vcpu *v, unsigned reg, u64 value);
/* CPL of what runs: DPL of SS. */
unsigned vcpu_cpl(void);
/* EFER.LMA and CS.L of what runs. */
bool vcpu_64bit(void);
/* Base of a segment of what runs (ES CS SS DS FS GS = 0..5). */
u64 vcpu_seg_base(unsigned seg);
/* How linear addresses of what runs translate, for mm/guest_copy. Pre: VMCS01 is current (L1 runs). */
struct paging;
void vcpu_paging(struct vcpu *v, struct paging *out);

/* --- L1's control registers (VMCS01 current) --- */
u64 vcpu_cr0(void); /* as the guest reads them */
u64 vcpu_cr4(void);
/* Load L1's register without checks: fixed bits and shadows are put right, PDPTEs not touched. */
void vcpu_load_cr0(struct vcpu *v, u64 cr0);
void vcpu_load_cr4(struct vcpu *v, u64 cr4);
void vcpu_load_efer(struct vcpu *v, u64 efer); /* entry control IA-32e follows LMA */
/* What vcpu_load_cr0 and vcpu_load_cr4 put into the register itself. */
static inline u64 vcpu_hardware_cr0(u64 cr0)
{
	return (cr0 & ~(CR0_CD | CR0_NW)) | CR0_NE | CR0_ET;
}

static inline u64 vcpu_hardware_cr4(u64 cr4)
{
	return cr4 | CR4_VMXE;
}
/* WRMSR/RDMSR by the explicit table (hv/msr.c) as if L1 executed it; side effects included. False: #GP(0). */
bool msr_read(struct vcpu *v, u32 msr, u64 *value);
bool msr_write(struct vcpu *v, u32 msr, u64 value);
/* CPUID as L1 sees it. hv/cpuid.c */
struct cpuid vcpu_cpuid(struct vcpu *v, u32 leaf, u32 sub);
/* The MSR bitmap in force for L1 (4 KiB, L0's memory): a set bit means L0 intercepts. nested/ ORs L1's own
 * into it. */
extern u8 l1_msr_bitmap[4096];
extern u8 l1_io_bitmap[8192];

/* --- interrupts due for L1 (whatever level runs) --- */
/* A maskable interrupt waits for L1 (APIC above PPR, or ExtINT). */
bool vcpu_intr_pending(struct vcpu *v);
/* Acknowledge it: its vector. Pre: vcpu_intr_pending. */
u8 vcpu_intr_ack(struct vcpu *v);

/* False: no interrupt waits for L1, at a look that costs little. Pre: L1 has run; VMCS01 is current. */
bool vcpu_intr_possible(const struct vcpu *v);

/* --- nested/ as hv/ sees it (nested/nested.h has the rest) --- */
bool nested_create(struct vcpu *v) __attribute__((cold));
void nested_reset(struct vcpu *v) __attribute__((cold)); /* back to VMCS01, not in VMX operation */
void nested_destroy(struct vcpu *v) __attribute__((cold));
/* A field that VMCS02s hold for L1 changed: all are written whole at their next entry. */
void nested_write_anew(struct vcpu *v);
/* In VMX operation, root: CR0/CR4 fixed bits are enforced. */
bool nested_vmxon(const struct vcpu *v);
/* All VMX instructions of L1: exits 18-27 (VMCALL only when in VMX operation), 50, 53, 59. */
enum exit_action exit_vmx_insn(struct vcpu *v);
/* Capability MSRs 0x480-0x491 and IA32_FEATURE_CONTROL reads. False: #GP. */
bool nested_msr_read(struct vcpu *v, u32 msr, u64 *value) __attribute__((cold));

static inline enum exit_action fault_ud(struct vcpu *v)
{
	inject_exception(v, VEC_UD);
	return RESUME;
}

static inline enum exit_action fault_gp(struct vcpu *v)
{
	inject_exception_error(v, VEC_GP, 0);
	return RESUME;
}

#endif
