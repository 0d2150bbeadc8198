/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names shared by the files of hyperv/: the state of a partition (a guest) and of a virtual processor (a
 * vCPU). What L1 wrote stands here only after it was checked.
 */
#ifndef NIDUS_HYPERV_INTERNAL_H
#define NIDUS_HYPERV_INTERNAL_H

#include "hv/guest.h"
#include "hv/personality.h"
#include "hv/spinlock.h"
#include "hv/timer.h"
#include "hyperv/interface.h"

#define HYPERCALL_LOCKED    BIT(1)
#define HYPERCALL_CODE_SIZE 8

struct hv_partition {
	struct spinlock lock; /* everything here but the counters */
	u64 os_id, hypercall, reference_tsc;
	u8 covered[HYPERCALL_CODE_SIZE]; /* what the hypercall page's code stands on */
	u64 crash[5];
	bool crash_reported;
};

#define STIMERS 4

#define SINTS 16

/* TLFS "Virtual Interrupt Controller". Its own CPU only. */
struct hv_synic {
	u64 control, event_page, message_page;
	u64 sint[SINTS];
};

/* TLFS "Synthetic Timers". Its own CPU only. */
struct hv_stimer {
	u64 config, count;
	u64 due;    /* reference time; 0: not running */
	u64 unsent; /* time of an expiry whose message found no room; 0: none */
	struct timer timer;
	struct vcpu *vcpu;
	unsigned index;
};

/* One hypercall's whole input; longer ones are refused (TLFS: it may not cross a page). */
#define INPUT_WORDS 512

/* For the line at the guest's end, in its order. */
enum hv_counter {
	COUNT_ENTRIES,      /* of L2 through an enlightened VMCS */
	COUNT_CLEAN_GROUPS, /* groups of fields not read for them */
	COUNT_BITMAPS_KEPT, /* MSR bitmaps not merged for them */
	COUNT_SPACE_FLUSH,  /* from here on calls that were carried out: of L1... */
	COUNT_LIST_FLUSH,
	COUNT_MAPPING_FLUSH,
	COUNT_IPI,
	COUNT_OTHER,
	COUNT_DIRECT_FLUSH, /* ...and of L2 */
	COUNTERS
};

struct hv_vp {
	u64 assist;      /* HV_MSR_VP_ASSIST_PAGE */
	hpa_t assist_at; /* while enabled */
	u64 l2_vps;      /* atomic: numbers modulo 64 of the L2 VPs that were entered here */
	u64 evmcs_gpa;   /* the eVMCS used last, and where it is; ~0: none */
	hpa_t evmcs_at;
	struct hv_synic synic;
	struct hv_stimer stimer[STIMERS];

	/* A flush that waits for other CPUs: wait.c. */
	u64 wait_vps; /* asked, and not yet seen to have done it */
	u64 wait_key[4];
	bool wait_second; /* gpa.c: the second of two rounds */
	u64 input[INPUT_WORDS];

	u64 count[COUNTERS];
};

static inline struct hv_partition *hv_partition(const struct vcpu *v)
{
	return v->guest->partition;
}

static inline struct hv_vp *hv_vp(const struct vcpu *v)
{
	return v->vp;
}

/* The page that an MSR value names lies wholly in L1's RAM. */
static inline bool hv_page_ok(const struct guest *g, u64 msr, hpa_t *at)
{
	u64 run;

	return l1mem_translate(&g->mem, GPA(HV_PAGE_GPA(msr)), at, &run) && run >= PAGE_SIZE;
}

/* cpuid.c */
struct cpuid hv_cpuid(struct vcpu *v, u32 leaf);

/* msr.c */
bool hv_msr_read(struct vcpu *v, u32 msr, u64 *value);
bool hv_msr_write(struct vcpu *v, u32 msr, u64 value);

/* hypercall_page.c: both MSRs of the interface. */
void hypercall_page_reset(struct guest *g);
bool os_id_write(struct vcpu *v, u32 msr, u64 value);
bool hypercall_page_write(struct vcpu *v, u32 msr, u64 value);

/* time.c */
u64 reference_time(const struct guest *g); /* 100 ns units since the guest started */
u64 vp_runtime(const struct vcpu *v);      /* likewise, while it had its CPU; on that CPU */
bool reference_tsc_write(struct vcpu *v, u32 msr, u64 value);
void reference_tsc_moved(struct vcpu *v);

/* assist.c */
bool assist_read(struct vcpu *v, u32 msr, u64 *value);
bool assist_write(struct vcpu *v, u32 msr, u64 value);
void assist_reset(struct vcpu *v);

/* crash.c */
bool crash_read(struct vcpu *v, u32 msr, u64 *value);
bool crash_write(struct vcpu *v, u32 msr, u64 value);

/* hypercall.c */
exit_fn hypercall;

/* direct_flush.c: VMCALL of L2. False: it is L1's. */
struct vmcs02;
bool direct_flush(struct vcpu *v, struct vmcs02 *e, enum exit_action *action);

/* enlighten.c: nested/'s questions about the enlightened VMCS. */
struct enlightened;
extern const struct enlightened hv_enlightened;

#endif
