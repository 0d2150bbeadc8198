/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of L1's own EPT in L1's memory. It decides nothing about L0's tables (nested/sept). */
#ifndef NIDUS_NESTED_EPT12_H
#define NIDUS_NESTED_EPT12_H

#include "hv/types.h"
#include "mm/ept.h"
#include "mm/l1mem.h"

/* SDM "Exit Qualification for EPT Violations". The low three bits are also EPT_READ, EPT_WRITE, EPT_EXEC. */
#define EPT_QUAL_READ        BIT(0)
#define EPT_QUAL_WRITE       BIT(1)
#define EPT_QUAL_FETCH       BIT(2)
#define EPT_QUAL_ACCESS      (EPT_QUAL_READ | EPT_QUAL_WRITE | EPT_QUAL_FETCH)
#define EPT_QUAL_PERM(p)     ((u64)(p) << 3)
#define EPT_QUAL_USER_EXEC   BIT(6)  /* with EPT12_MBE */
#define EPT_QUAL_LINEAR      BIT(7)  /* the guest-linear address field is valid */
#define EPT_QUAL_FINAL       BIT(8)  /* the access itself, not one to a paging structure */
#define EPT_QUAL_USER        BIT(9)  /* with EPT_CAP_ADVANCED, and both above: a user-mode linear address, */
#define EPT_QUAL_WRITABLE    BIT(10) /* ...writable, */
#define EPT_QUAL_NO_EXEC     BIT(11) /* ...no code, by L2's own paging */
#define EPT_QUAL_ADVANCED    (EPT_QUAL_USER | EPT_QUAL_WRITABLE | EPT_QUAL_NO_EXEC)
#define EPT_QUAL_NMI_UNBLOCK BIT(12)

/* In an EPTP with which L0 works, where VMCS12's is 0: the control "mode-based execute control for EPT" is 1.
 * The bit that counts in an entry only then. */
#define EPT12_MBE EPT_USER_EXEC

/* SDM "Page-Modification Logging": VMCS12's log. */
struct ept12_log {
	u64 page;   /* address in L1's memory */
	u16 *index; /* of the next entry, counting down; full when it is none */
};

struct ept12 {
	const struct l1mem *mem;
	u64 eptp;                    /* VMCS12's, checked; EPT12_MBE */
	u64 ept_vpid;                /* capability MSR 0x48c as L1 sees it */
	u8 phys_bits;                /* MAXPHYADDR that L1 is shown */
	const struct ept12_log *log; /* NULL: dirty flags are not logged */
};

enum ept12_status {
	EPT12_OK,
	EPT12_VIOLATION, /* exit 48 to L1 with .qual */
	EPT12_MISCONFIG, /* exit 49 to L1 */
	EPT12_LOG_FULL,  /* exit 62 to L1; no flag was set */
	EPT12_RETRY,     /* L1 is changing the tables under the walk: let L2 repeat its access */
};

struct ept12_result {
	enum ept12_status status;
	gpa_t gpa;      /* OK: what the address is for L1, to the byte */
	unsigned level; /* of the leaf; else where the walk ended */
	u64 perm;       /* EPT_RWX, with EPT12_MBE EPT_USER_EXEC too, of all levels ANDed */
	u8 type;        /* leaf memory type */
	bool ipat;
	bool dirty; /* the leaf's dirty flag is set, or flags are off: writes need not be seen */
	u64 qual;   /* VIOLATION: for L1 */
	u64 entry[EPT_LEVELS + 1]; /* OK: by level, down to the leaf */
	bool no_ve;                /* VIOLATION: the entry suppresses #VE */
	gpa_t entry_at;            /* OK: where L1 has the leaf entry */
	u64 above;                 /* OK: permissions of the levels above it */
};

/*
 * Translate for an access; `hw_qual` is the qualification of the hardware's exit (or one made up by an
 * emulator: EPT_QUAL_*). Bits 2:0 0 is a peek: nothing is written and every permission is fine. With EPTP bit
 * 6 accessed and dirty flags are set, only when the access is allowed.
 */
void ept12_walk(const struct ept12 *e, ngpa_t addr, u64 hw_qual, struct ept12_result *out);
/*
 * `entry` stands in the table where a walk found its leaf: what an access before time finds there. No flag is
 * set, so with flags it must have been accessed already. Fills perm, gpa, type, ipat, dirty and level. False:
 * no such leaf.
 */
bool ept12_beside(const struct ept12 *e, const struct ept12_result *found, u64 entry,
		  struct ept12_result *out);

#endif
