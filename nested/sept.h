/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadow EPTs: for each EPTP an L1 uses, tables that hold EPT12 AND EPT01, filled on demand and shared by all
 * vCPUs of the guest. L2 without EPT12 runs on EPT01 itself and needs nothing from here.
 *
 * Empty entries are filled without a lock. Tables that are taken out may be in other CPUs' paging-structure
 * caches, so they are used again only when every vCPU inside that root has entered anew since.
 */
#ifndef NIDUS_NESTED_SEPT_H
#define NIDUS_NESTED_SEPT_H

#include "hv/types.h"
#include "mm/ept.h"
#include "mm/l1mem.h"
#include "nested/ept12.h"

struct vcpu;
struct sept;      /* of one guest */
struct sept_root; /* of one EPTP12 */

enum sept_result {
	SEPT_FILLED,    /* repeat the access */
	SEPT_VIOLATION, /* exit 48 to L1, result.qual */
	SEPT_MISCONFIG, /* exit 49 to L1 */
	SEPT_LOG_FULL,  /* exit 62 to L1 */
	SEPT_MMIO,  /* EPT01 does not allow it: L1's device page, or one L0 protects; do for L2 what is done
		       for L1 at result.gpa */
	SEPT_RETRY, /* no page free now, or L1 changes its tables: kick the guest's other vCPUs (PEND_TLB) and
		       repeat the access */
};

/*
 * NULL: no memory. `ept_vpid` and `phys_bits` as L1 sees them; `ept01` must outlive it; `twin` shares its
 * tables (or NULL); `dirty_bits`: hardware sets those of EPT01.
 */
struct sept *sept_create(const struct l1mem *mem, struct ept *ept01, struct ept *twin, bool dirty_bits,
			 u64 ept_vpid, u8 phys_bits);
/* Pre: no vCPU is inside. The caller flushes all CPUs (INVEPT) before the pages serve anybody else. */
void sept_destroy(struct sept *s);

/*
 * Before each hardware entry into L2 with EPT12: find the root of `eptp12` (`hint`: the one of last time, or
 * NULL) and mark the vCPU as inside it. *flush: INVEPT single-context for sept_eptp(root) must come before
 * the entry. NULL: no memory; enter later. The vCPU stays inside over exits that L0 keeps.
 */
struct sept_root *sept_enter(struct sept *s, struct sept_root *hint, u64 eptp12, unsigned vcpu, bool *flush);
/* L1 runs again, or the vCPU ends. */
void sept_leave(struct sept_root *root, unsigned vcpu);
/* EPTP for VMCS02. Constant for the root's life; the A/D bit follows EPTP12. */
u64 sept_eptp(const struct sept_root *root);

/* An EPT violation or misconfiguration of L2 at `addr`. Pre: the vCPU is inside `root`. `hw_qual` as in
 * ept12_walk (0 for a misconfiguration: then read is assumed). `log`: where L1 wants to read of dirty pages,
 * or NULL.
 */
enum sept_result sept_fault(struct sept *s, struct sept_root *root, unsigned vcpu, ngpa_t addr, u64 hw_qual,
			    const struct ept12_log *log, struct ept12_result *out);

/*
 * INVEPT single-context by L1 on `v`: drop what was made of `eptp12` and is not what EPT12 says now; v
 * flushes its TLB before it enters again, and so do the others when anything was dropped. Nothing to do when
 * it has no root.
 */
void sept_flush(struct sept *s, struct vcpu *v, u64 eptp12);
/* INVEPT all-context by L1. */
void sept_flush_all(struct sept *s, struct vcpu *v);
/* Drop everything, whatever EPT12 says. */
void sept_drop_all(struct sept *s);
/* Drop the leaves of [from, from + bytes) in what was derived from `eptp12`, and no others (a larger leaf
 * goes whole). See sept_range.c for what the caller owes. */
void sept_flush_range(struct sept *s, u64 eptp12, ngpa_t from, u64 bytes);
/* The vCPUs (one bit each) that are inside a root of `eptp12`: they may have its translations cached. */
u64 sept_inside(struct sept *s, u64 eptp12);

/* Debugging and tests: the number of leaves that are not EPT12 AND EPT01. Pre: L1 has changed nothing since
 * its last INVEPT. */
unsigned sept_audit(struct sept *s, struct sept_root *root);

#endif
