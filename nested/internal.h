/* SPDX-License-Identifier: Apache-2.0 */
/* Names shared by the files of nested/. Which VMCS must be current is said at each function. */
#ifndef NIDUS_NESTED_INTERNAL_H
#define NIDUS_NESTED_INTERNAL_H

#include "hv/apic_regs.h" /* of a virtual-APIC page too */
#include "hv/cpu.h"
#include "hv/timer.h"
#include "hv/vcpu.h"
#include "hv/vmcs.h"
#include "hv/vmcs_init.h"
#include "mm/guest_walk.h"
#include "nested/caps.h"
#include "nested/checks.h"
#include "nested/nested.h"
#include "nested/vmcs02.h"

#define NESTED_CACHE 8
#define MSR_LIST_MAX 512u /* SDM "Miscellaneous Data": bits 27:25 zero */
#define LINEAR_BITS  48

/* An L2 exit on its way to L1: what VMCS12's exit-information fields will say. */
struct l2_exit {
	u32 reason;
	u64 qual;
	struct event intr; /* exit interruption information and error code */
	struct event idt;  /* IDT-vectoring information and error code */
	u32 insn_len, insn_info;
	u64 linear, phys;
	bool from_hardware; /* insn_len, insn_info, linear and phys are meant to be stored */
};

/* An operand of a VMX instruction was read in this page: all that it depends on. */
struct operand_memo {
	u64 page; /* linear address; NO_PAGE or, as CR4 is never 0, a cr4 of 0: empty */
	u64 cr3, cr4, efer;
	const u8 *bytes; /* L0's view of the page, all of it RAM */
	struct walk_trail trail;
} __attribute__((aligned(128))); /* found by a shift */
#define NO_PAGE (~0ull)

struct nested {
	bool vmxon;
	u64 vmxon_ptr;
	struct vmcs02 *current; /* VMCS12 of the current-VMCS pointer; NULL: none */
	struct vmcs02 *cache[NESTED_CACHE];
	u64 clock;

	struct vmx_caps caps;     /* as L1 sees them */
	struct check_facts facts; /* the constant ones are filled in at creation */
	struct sept *sept;        /* of the guest, made by vCPU 0 */

	/* What carries out VMX instructions and runs L2; others when VMCSs may be enlightened
	 * (enlightened.c). */
	exit_fn *const *emul;
	const struct level *level_l2;
	const struct enlightened *enlightened; /* NULL: never */
	u64 evmcs; /* atomic: page of the enlightened VMCS this vCPU entered last, while no other has; or
		      NO_VMCS */
	u64 plain; /* the current-VMCS pointer while `current` is an enlightened one */

	/* While L2 runs (level_l2). */
	enum activity activity; /* of L2; hardware only ever sees "active" */
	bool event_in_entry;    /* VMCS02's entry fields hold an event that no entry has delivered yet */
	bool immediate_exit;    /* the next entry is to come back right after that delivery */
	bool fault_raised; /* v->inject is a fault of L2 that L1 may want; else an event given back to L2 */
	struct event fault_first; /* what was being delivered when it was raised */
	u32 l0_windows;           /* PROC_INTR_WINDOW, PROC_NMI_WINDOW: L0's own wish in VMCS02 */
	u32 l1_pending;           /* PEND_ bits seen while L2 ran that L1's gate must look at again */
	bool init, sipi, nmi;     /* events for L1 that wait */
	bool fresh;               /* no hardware entry has succeeded since L1's VMLAUNCH or VMRESUME */
	bool was_launched;        /* VMCS12's launch state before that */
	struct l2_exit queued;    /* an exit for L1 that the gate is to give; reason 0: none */
	u64 timer_deadline; /* L1's preemption timer: host TSC >> timer_shift; with PIN_TIMER in VMCS12 */
	u64 host_deadline;  /* the CPU's `timers.armed` as `cut` has taken it into account */
	u64 cut;            /* L2's run ends here for its sake; 0: it need not. Timer units */
	struct timer wake;  /* the preemption timer of an L2 that is not active */
	struct l0_needs needs;
	struct operand_memo operands[4];
	bool shadowing; /* L1 reaches fields of its current VMCS without an exit (shadow.c) */
	bool wide;      /* L1 is in IA-32e mode, its VMX instructions in 64-bit code: constant while vmxon */
	u32 refused;    /* entries that passed the checks and failed in hardware: should stay 0 */
	void *scratch;  /* stands for an APIC page of L1 that is no RAM */
	struct kept kept; /* what the last exit left in VMCS01; v->kept_written: no longer */
	u64 tsc_offset01; /* VMCS01's while L2 runs */
	u64 kept_held;    /* its number; 0: nothing yet */
	u64 kept_numbers; /* given so far */
};

extern const struct level level_l2;
/* nested.c: struct level's exit for L2. */
enum exit_action nested_exit(struct vcpu *v, u32 reason);
/* How an exit of L2 ends that L0 has dealt with. */
enum exit_action nested_go_on(struct vcpu *v, enum exit_action a);
/* enlightened.c: the current VMCS is an enlightened one and its error field has changed. */
void enlightened_error(struct vcpu *v);
/* An entry by it has failed in the guest area or the MSR list. */
void enlightened_failed_entry(struct vcpu *v);

static inline bool is_canonical(u64 a)
{
	return (u64)((s64)(a << (64 - LINEAR_BITS)) >> (64 - LINEAR_BITS)) == a;
}

static inline bool v12_pin(const struct vmcs02 *e, u32 bit)
{
	return e->v12.pin_ctl & bit;
}

static inline bool v12_proc(const struct vmcs02 *e, u32 bit)
{
	return e->v12.proc_ctl & bit;
}

static inline bool v12_sec(const struct vmcs02 *e, u32 bit)
{
	return vmcs12_sec(&e->v12) & bit;
}

/* --- result.c: flags of a VMX instruction. VMCS01 current. All return RESUME_NEXT. --- */
enum vmx_error {
	ERROR_VMCALL_IN_ROOT = 1,
	ERROR_VMCLEAR_ADDRESS = 2,
	ERROR_VMCLEAR_VMXON = 3,
	ERROR_VMLAUNCH_NOT_CLEAR = 4,
	ERROR_VMRESUME_NOT_LAUNCHED = 5,
	ERROR_ENTRY_CONTROLS = 7,
	ERROR_ENTRY_HOST = 8,
	ERROR_VMPTRLD_ADDRESS = 9,
	ERROR_VMPTRLD_VMXON = 10,
	ERROR_VMPTRLD_REVISION = 11,
	ERROR_NO_FIELD = 12,
	ERROR_READ_ONLY = 13,
	ERROR_VMXON_IN_ROOT = 15,
	ERROR_MOV_SS = 26,
	ERROR_INV_OPERAND = 28,
};
enum exit_action vmsucceed(struct vcpu *v);
enum exit_action vmfail_invalid(struct vcpu *v);
enum exit_action vmfail(struct vcpu *v, enum vmx_error error);

/* --- operand.c: VMCS01 current. False: the fault is raised, return RESUME. --- */
/* One or two words. `info`: the exit's instruction information. */
bool operand_read(struct vcpu *v, u32 info, u64 *buf, unsigned words);
/* For any level; its VMCS is current. */
bool operand_read_any(struct vcpu *v, void *buf, size_t n);
bool operand_write_any(struct vcpu *v, const void *buf, size_t n);
bool operand_pointer(struct vcpu *v, gpa_t *out);
/* A register that an instruction names, of the level whose VMCS is current. */
static inline u64 operand_register(const struct vcpu *v, unsigned number)
{
	return unlikely(number == RSP) ? vmcs_read_sure(VMCS_GUEST_RSP) : v->regs[number];
}

/* --- insn*.c: VMX instructions of L1 behind the prologue. VMCS01 current. --- */
exit_fn emul_vmread, emul_vmwrite, emul_invept, emul_invvpid;
exit_fn emul_vmcall, emul_vmclear, emul_vmptrld, emul_vmptrst, emul_vmxoff, emul_vmxon;
extern exit_fn *const emul_plain[EXIT_REASONS]; /* by exit reason */
/* Parts of VMREAD: the field asked for; its value to the destination, then success. */
u64 vmread_encoding(struct vcpu *v);
enum exit_action vmread_give(struct vcpu *v, u64 value);
/* The same of L2, on the VMCS at VMCS12's link pointer. VMCS02 current. */
exit_fn l0_vmread, l0_vmwrite;
/* What L1's VMREAD or VMWRITE bitmap says of L2's instruction. */
bool l1_wants_field(const struct vcpu *v, const struct vmcs02 *e, bool write);
/* enter.c */
exit_fn emul_vmlaunch, emul_vmresume;

/* --- switching --- */
/* The one place where a vCPU changes between L1 and L2: `vmcs` becomes current and is what is entered. */
static inline void nested_switch(struct vcpu *v, struct vmcs *vmcs, const struct level *level)
{
	v->vmcs = vmcs;
	v->level = level;
	vmcs_load(vmcs);
}

/* --- enter.c --- */
/* The CR0 and CR4 bits L0 holds to itself while L2 runs, and its other wishes that never change. At creation.
 */
void needs_init(struct l0_needs *needs) __attribute__((cold));
/* Refresh what an entry into L2 needs right before it: shadow-EPT root, preemption timer. RESCHEDULE: later.
 * VMCS02 current. */
enum exit_action nested_before_entry(struct vcpu *v);

/* --- guest_area.c --- */
void guest_area_init(void) __attribute__((cold));
/* VMCS12's guest area into VMCS02: dirty groups, and what L0 merged. VMCS02 current. */
void guest_area_load(struct vcpu *v, struct vmcs02 *e) __attribute__((cold));
/* How exits will save the control registers: after e->m or the read shadows changed. */
void guest_area_plan(struct vcpu *v, struct vmcs02 *e) __attribute__((cold));
/* The same when neither controls nor control registers have changed since the last exit. VMCS02 current. */
void guest_area_reload(struct vmcs02 *e);
/* As at an exit: what L1 always looks at; the other groups become stale in VMCS12. VMCS02 current. */
void guest_area_save(struct vcpu *v, struct vmcs02 *e);
/* Saved from VMCS02 only when L1 (or a check) looks: after an exit VMCS12 is behind in these, e->stale says
 * so. */
#define LAZY_GROUPS (BIT32(GROUP_CRDR) | BIT32(GROUP_GUEST_GRP1) | BIT32(GROUP_GUEST_GRP2))
/* What is left of that when an enlightened VMCS takes the guest area: activity, and what is stale. */
static inline void guest_area_leave(const struct nested *n, struct vmcs02 *e)
{
	e->v12.guest_activity = n->activity;
	e->stale = LAZY_GROUPS;
}
/* Bring stale groups up to date. sync: VMCS02 current; fetch: L1 runs, VMCS01 current before and after. */
void guest_area_sync(struct vmcs02 *e, u32 groups);
void guest_area_fetch(struct vcpu *v, struct vmcs02 *e, u32 groups);

/* --- host_area.c --- */
#define CR0_NOT_LOADED (CR0_CD | CR0_NW | CR0_ET)

/* What an exit leaves in registers that VMCS12 may not load. */
struct left_over {
	u64 efer, pat, cr0;
};
/* CR0.CD and NW as L2 has them (the other bits mean nothing): L2's where it may write them, else L1's. */
static inline u64 l2_uncached_bits(const struct vmcs02 *e)
{
	return (e->v12.guest_cr0 & e->v12.cr0_mask) | (e->m.cr0_shadow & ~e->v12.cr0_mask) | CR0_ET;
}
/* Work out what exits will load; host_area_keep: the kept part alone. `left`: as things stand now. */
void host_area_prepare(struct nested *n, struct vmcs02 *e, const struct left_over *left)
	__attribute__((cold));
void host_area_keep(struct nested *n, struct vmcs02 *e, const struct left_over *left) __attribute__((cold));
/* VMCS01 holds the kept part, and nothing that `left` says can have changed since it was worked out. */
static inline bool host_area_is_kept(const struct vcpu *v, const struct vmcs02 *e)
{
	return !v->kept_written && e->kept_number == v->nested->kept_held;
}
/* A real processor shuts down; L1's end is that of a triple fault. SDM "VMX Aborts". */
enum abort { ABORT_SAVE_MSRS = 1, ABORT_HOST_PDPTES = 2, ABORT_LOAD_MSRS = 4 };
void vmx_abort(struct vcpu *v, enum abort code);
/* L1's host state into VMCS01, which is current. */
void host_area_load(struct vcpu *v, const struct vmcs02 *e, bool nmi_blocked);

/* --- quick.c --- */
/* Nothing that the checks look at, or that is merged, has changed since the last exit but in ways that cannot
 * fail. VMCS01 current. */
bool entry_is_quick(struct vcpu *v, const struct vmcs02 *e);

/* --- reflect.c --- */
/* Describe the exit that hardware reported. VMCS02 current. */
void l2_exit_read(struct l2_exit *x, u32 reason);
/* Give an exit of L2 to L1: afterwards L1 runs, VMCS01 is current. Pre: VMCS02 current. */
enum exit_action reflect(struct vcpu *v, const struct l2_exit *x);
/* The same as hardware reported it. */
enum exit_action reflect_hardware(struct vcpu *v, u32 reason);
enum exit_action reflect_simple(struct vcpu *v, u32 reason, u64 qual);
/* A VM entry that failed in the guest area or the MSR list (33, 34). VMCS01 or VMCS02 current; VMCS01
 * afterwards. */
enum exit_action reflect_failed_entry(struct vcpu *v, u32 reason, u64 qual) __attribute__((cold));

/* --- msr_area.c --- */
typedef bool msr_write_fn(struct vcpu *v, u32 msr, u64 value);
/* Entry-load list (l2_msr_write, VMCS02 current) or exit-load list (msr_write, VMCS01 current). 0, or the
 * 1-based number of the entry that failed. */
u32 msr_area_load(struct vcpu *v, u64 list, u32 count, msr_write_fn *write);
/* Exit-store list, VMCS02 current. False: VMX abort. */
bool msr_area_store(struct vcpu *v, u64 list, u32 count);
/* L2's view of an MSR: as L1's but for what VMCS02 holds. VMCS02 current. False: #GP. */
bool l2_msr_read(struct vcpu *v, u32 msr, u64 *value);
bool l2_msr_write(struct vcpu *v, u32 msr, u64 value);

/* --- owner.c --- */
enum owner { OWNER_L0, OWNER_L1 };
enum owner exit_owner(struct vcpu *v, u16 reason);
/* Fill e->to_l1 from VMCS12's controls. */
void owner_plan(struct vmcs02 *e);
/* L1's exception bitmap, with the page-fault filter. */
bool l1_wants_exception(const struct vmcs02 *e, u8 vector, u32 error);

/* SDM table "Exit Qualification for Control-Register Accesses". */
struct cr_qual {
	u8 cr, access, reg;
	u16 lmsw;
};
enum { CR_ACCESS_TO, CR_ACCESS_FROM, CR_ACCESS_CLTS, CR_ACCESS_LMSW };
static inline struct cr_qual cr_qual_decode(u64 q)
{
	return (struct cr_qual){
		.cr = q & 15, .access = q >> 4 & 3, .reg = q >> 8 & 15, .lmsw = (u16)(q >> 16)};
}

/* --- l0_exits.c: exits of L2 that L0 keeps. VMCS02 current. --- */
enum exit_action l0_exit(struct vcpu *v, u16 reason);

/* --- functions.c: what L1 leaves to the processor in its EPT. VMCS02 current. --- */
/* VM function 0, or exit 59 to L1. */
exit_fn eptp_switch;
/* L1's log of dirty pages, NULL when it has none. */
const struct ept12_log *l1_log(struct vcpu *v, struct ept12_log *log);
/* An EPT violation of L2 that L1 has turned into #VE: raise that. False: it is an exit. */
bool raise_ve(struct vcpu *v, const struct ept12_result *r, u64 qual, u64 linear, u64 phys);

/* --- l2mem.c: memory as L2 sees it. VMCS02 current. --- */
/* struct level's translate for L2: through L2's own tables and EPT12. */
bool translate_l2(struct vcpu *v, u64 linear, unsigned access, gpa_t *out);

/* Copy from L2's physical memory. False: EPT12 or L1's memory does not have it. */
bool l2_read_physical(struct vcpu *v, ngpa_t a, void *buf, size_t n);

/* --- events.c --- */
enum exit_action gate_l2(struct vcpu *v);
void fault_l2(struct vcpu *v, const struct event *e);
/* Put an event into VMCS02's entry fields. */
void l2_inject(struct vcpu *v, const struct event *e);
/* Let the gate give this exit to L1. */
void queue_exit(struct vcpu *v, const struct l2_exit *x);

/* --- timer.c: preemption timers, VMCS02 current --- */
/* L2 begins to run with VMCS12's value. */
void timer_start(struct vcpu *v);
/* Value for the next entry: the sooner of L1's, L0's, and now. */
void timer_write(struct vcpu *v) __attribute__((cold));
static inline void timer_set(struct vcpu *v, const struct vmcs02 *e)
{
	const struct nested *n = v->nested;

	/* Else what is left of the slice is in the field, where the last exit saved it. */
	if (unlikely(e->slice != SLICE_IN_FIELD || v12_pin(e, PIN_TIMER) || n->immediate_exit || n->cut ||
		     v->cpu->timers.armed != n->host_deadline))
		timer_write(v);
}
bool timer_expired(const struct vcpu *v);
/* What is left, in timer units. */
u32 timer_left(const struct vcpu *v);
/* Exit 52 that is not L1's. */
exit_fn timer_exit;
/* L1's timer goes on while L2 is halted: the gate is called when it runs out. */
void timer_wait(struct vcpu *v);
static inline void timer_stop(struct vcpu *v)
{
	if (unlikely(v->nested->wake.cpu))
		timer_cancel(&v->nested->wake);
}

/* --- bitmaps.c --- */
void bitmaps_init(void) __attribute__((cold));
/* All ones, as merging expects them first. */
void bitmaps_reset(struct bitmaps02 *b);
/* L1's MSR bitmap is the one merged last, as far as anybody can know. */
static inline bool bitmap_is_known(const struct vmcs02 *e)
{
	return e->bitmap_clean || watch_is_clean(&e->bitmap_watch.watch);
}
/* Merge L1's bitmaps with L0's and point VMCS02 to the result. Pre: VMCS02 current, e->m is made. */
void bitmaps_load(struct vcpu *v, struct vmcs02 *e);
/* The same when only the bitmaps' contents may have changed since: if they may. */
static inline bool bitmaps_may_change(const struct vmcs02 *e)
{
	return (v12_proc(e, PROC_MSR_BITMAPS) && !bitmap_is_known(e)) || v12_proc(e, PROC_IO_BITMAPS);
}
void bitmaps_refresh(struct vcpu *v, struct vmcs02 *e);

/* --- bitmap_watch.c --- */
/* The MSR bitmap is about to be merged: see whether its next merges can be left out. */
void bitmap_watch_merge(struct vcpu *v, struct vmcs02 *e);
void bitmap_watch_init(struct bitmap_watch *b);
void bitmap_watch_end(struct vcpu *v, struct bitmap_watch *b);

/* What L1's bitmaps and controls say of an access. */
bool l1_wants_msr(const struct vcpu *v, const struct vmcs02 *e, u32 msr, bool write);
bool l1_wants_io(const struct vcpu *v, const struct vmcs02 *e, u16 port, unsigned size);

#endif
