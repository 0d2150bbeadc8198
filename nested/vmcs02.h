/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One VMCS of L1 as L0 has it: VMCS12 (L0's copy, which VMREAD and VMWRITE act on) and the hardware VMCS that
 * runs its L2, with everything derived from VMCS12. A vCPU caches several, so that an L1 that alternates
 * between VMCSs pays nothing for it.
 */
#ifndef NIDUS_NESTED_VMCS02_H
#define NIDUS_NESTED_VMCS02_H

#include "hv/vmcs.h"
#include "nested/enlightened.h"
#include "nested/merge.h"
#include "nested/sept.h"
#include "nested/shadow.h"
#include "nested/vmcs12.h"
#include "nested/watch.h"

#define NO_VMCS (~0ull)

/*
 * Fields of VMCS02 that hardware never changes, in the order of their encoding: L0 remembers what it wrote
 * and writes only differences. ENTRY_CTL is not here: hv/ changes it with EFER.LMA.
 */
/* clang-format off */
#define MIRROR_FIELDS(X) \
	X(VPID) X(IO_BITMAP_A) X(IO_BITMAP_B) X(MSR_BITMAP) X(TSC_OFFSET) X(VIRTUAL_APIC) \
	X(APIC_ACCESS) X(EPTP) X(EOI_EXIT_BITMAP_0) X(EOI_EXIT_BITMAP_1) X(EOI_EXIT_BITMAP_2) \
	X(EOI_EXIT_BITMAP_3) X(XSS_EXITING_BITMAP) X(ENCLS_EXITING_BITMAP) X(TSC_MULTIPLIER) \
	X(PIN_CTL) X(PROC_CTL) X(EXCEPTION_BITMAP) X(PF_MASK) X(PF_MATCH) X(CR3_TARGET_COUNT) \
	X(EXIT_CTL) X(TPR_THRESHOLD) X(SEC_CTL) X(PLE_GAP) X(PLE_WINDOW) X(CR0_MASK) X(CR4_MASK) \
	X(CR0_SHADOW) X(CR4_SHADOW) X(CR3_TARGET0) X(CR3_TARGET1) X(CR3_TARGET2) X(CR3_TARGET3)
/* clang-format on */

enum mirror {
#define X(name) MIRROR_##name,
	MIRROR_FIELDS(X)
#undef X
		MIRRORS
};

/* L0's bitmaps OR L1's, as hardware reads them. Each page aligned. */
struct bitmaps02 {
	u8 msr[4096], io[8192];
} __attribute__((aligned(4096)));

/* Of L1's MSR bitmap, see nested/bitmap_watch.c. */
struct bitmap_watch {
	struct watch watch; /* its gpa is right before it has begun, too */
	u8 wait;            /* merges until the next attempt to know */
	bool begun;
};

/* L1's registers as the last merge saw them. */
struct seen_of_l1 {
	u64 tsc_offset, efer, pat, debugctl, dr7;
};

/*
 * Guest fields of VMCS01 that every exit to L1 writes, with their values from VMCS12 (c): what L1 may change
 * without L0. See nested/host_area.c, which also has those that are the same for every VMCS12.
 */
/* clang-format off */
#define HOST_AREA(X) \
	X(GUEST_ES_SEL, c->host_es_sel) X(GUEST_CS_SEL, c->host_cs_sel) X(GUEST_SS_SEL, c->host_ss_sel) \
	X(GUEST_DS_SEL, c->host_ds_sel) X(GUEST_FS_SEL, c->host_fs_sel) X(GUEST_GS_SEL, c->host_gs_sel) \
	X(GUEST_TR_SEL, c->host_tr_sel) \
	X(GUEST_ES_AR, access_rights(c->host_es_sel, AR_DATA)) \
	X(GUEST_CS_AR, c->exit_ctl & EXIT_HOST_64 ? AR_CODE64 : AR_CODE32) \
	X(GUEST_SS_AR, access_rights(c->host_ss_sel, AR_DATA)) \
	X(GUEST_DS_AR, access_rights(c->host_ds_sel, AR_DATA)) \
	X(GUEST_FS_AR, access_rights(c->host_fs_sel, AR_DATA)) \
	X(GUEST_GS_AR, access_rights(c->host_gs_sel, AR_DATA)) \
	X(GUEST_FS_BASE, c->host_fs_base) X(GUEST_GS_BASE, c->host_gs_base) X(GUEST_TR_BASE, c->host_tr_base) \
	X(GUEST_GDTR_BASE, c->host_gdtr_base) X(GUEST_IDTR_BASE, c->host_idtr_base) \
	X(GUEST_CR0, vcpu_hardware_cr0(c->host_cr0)) X(GUEST_CR3, c->host_cr3) \
	X(GUEST_CR4, vcpu_hardware_cr4(host_cr4(c))) X(GUEST_RSP, c->host_rsp) X(GUEST_RIP, c->host_rip)
/* clang-format on */

struct host_area {
#define X(name, value) u64 name;
	HOST_AREA(X)
#undef X
};

/* The others: L1 changes them only by an exit. */
struct kept {
	u64 cr0, cr4, efer, pat, sysenter_cs, sysenter_esp, sysenter_eip;
};

/*
 * L0's time slice in VMCS02: not begun; what is left of it is in the timer field, which exits save; or the
 * field holds less and the slice ends at slice_end.
 */
enum slice { SLICE_NONE, SLICE_IN_FIELD, SLICE_ENDS };

/* A control register as an exit saves it: what hardware has in L2's own bits, and the rest, which is known.
 */
struct saved_cr {
	u64 free, rest;
};

struct vmcs02 {
	u64 ptr; /* address of the VMCS in L1's memory; NO_VMCS: free for another */
	struct vmcs12 v12;
	bool launched;  /* launch state as L1 knows it */
	bool is_shadow; /* its region has the shadow-VMCS indicator: it cannot be entered */
	u32 dirty;      /* BIT32(enum vmcs12_group) written since the last entry */
	u32 stale;    /* groups in which VMCS02 is newer than VMCS12: guest_area_fetch before reading them */
	u32 eager;    /* groups that L1 reads after exits: not left stale */
	u32 exits;    /* counts reflections */
	u64 exit_rip; /* RIP at the last one */
	bool checked; /* all checks passed at the last entry, with... */
	bool checked_ia32e; /* ...L1's EFER.LMA */
	struct seen_of_l1 seen;
	void *page;        /* the enlightened VMCS; NULL: a plain one */
	bool enlightened;  /* `ptr` names an enlightened VMCS: v12 is never written back there */
	bool bitmap_clean; /* L1 says that its MSR bitmap is the one merged last */
	struct bitmap_watch bitmap_watch;
	struct enlightenments ext;
	u64 used; /* nested->clock at the last use */

	struct vmcs hw;
	struct shadow shadow;
	struct bitmaps02 *bitmaps;
	struct merged m; /* the controls hardware has */
	enum slice slice;
	struct saved_cr cr0_saved, cr4_saved;
	bool rare_due;    /* the next exit saves registers that L2 seldom changes, see hyperv/evmcs_save.c */
	bool pat_written; /* L2 may have written its PAT since the last entry */
	u64 slice_end;    /* host TSC >> timer_shift */
	struct host_area host;
	bool rest; /* an exit loads more than that */
	struct kept kept;
	u64 kept_number; /* of nested->kept, when that holds the same */
	u64 to_l1[2];    /* by exit reason: L1's controls want it (reasons that controls alone decide) */
	u64 eptp;        /* VMCS12's with EPT12_MBE: what the shadow goes by */
	struct sept_root *root;   /* last one used; only a hint for sept_enter, or where the vCPU is inside */
	struct sept_place *place; /* of this vCPU in it */
	u16 vpid;                 /* the tag hardware uses, this VMCS02's own */
	u16 vpid12;               /* what it stands for since its last flush; 0: nothing */
	u64 known;                /* bit per mirror: its value is what the field holds */
	u64 mirror[MIRRORS];
};

_Static_assert(MIRRORS <= 64, "one bit each");
_Static_assert(sizeof(struct vmcs02) <= 4096, "allocated as one page");

struct vcpu;

/* The cached entry for `ptr`, or NULL. */
struct vmcs02 *vmcs02_find(struct vcpu *v, u64 ptr);
/* The entry for `ptr`, read from L1's page if it was not cached; another may be written back for it. NULL: no
 * memory. */
struct vmcs02 *vmcs02_get(struct vcpu *v, u64 ptr);
/* Write VMCS12 back to L1's page and free the entry for another VMCS. */
void vmcs02_release(struct vcpu *v, struct vmcs02 *e);
/* VMCLEAR of a VMCS that is not cached: only the launch state in L1's page changes. */
void vmcs02_clear_page(struct vcpu *v, u64 ptr);
/* Put an abort indicator into L1's page. SDM "VMX Aborts". */
void vmcs02_write_abort(struct vcpu *v, const struct vmcs02 *e, u32 code);
/* Make all of the vCPU's hardware VMCSs inactive and give the memory back. On the vCPU's own CPU, or when it
 * never ran. */
void vmcs02_free_all(struct vcpu *v);

/* Write a mirrored field if it does not hold `value`. Pre: e->hw is current. */
extern const u32 mirror_encoding[MIRRORS];
static inline void vmcs02_put(struct vmcs02 *e, enum mirror slot, u64 value)
{
	if (likely(e->known & BIT(slot) && e->mirror[slot] == value))
		return;
	e->known |= BIT(slot);
	e->mirror[slot] = value;
	VMCS_WRITE_AS(volatile inline, value, mirror_encoding[slot], VMCS_KEY_ANY);
}

#endif
