/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The EPT format and a builder that takes its table pages from a source given by the caller, so that it
 * serves EPT01, shadow EPTs and host unit tests alike. Levels count from 1 (4 KiB leaf) to 4 (root). SDM "EPT
 * Translation Mechanism".
 */
#ifndef NIDUS_MM_EPT_H
#define NIDUS_MM_EPT_H

#include "hv/types.h"

#define EPT_READ        BIT(0)
#define EPT_WRITE       BIT(1)
#define EPT_EXEC        BIT(2)
#define EPT_RWX         (EPT_READ | EPT_WRITE | EPT_EXEC)
#define EPT_TYPE(t)     ((u64)(t) << 3)
#define EPT_TYPE_MASK   EPT_TYPE(7)
#define EPT_IPAT        BIT(6)
#define EPT_LARGE       BIT(7)
#define EPT_ACCESSED    BIT(8)
#define EPT_DIRTY       BIT(9)
#define EPT_USER_EXEC   BIT(10) /* mode-based execute control */
#define EPT_SUPPRESS_VE BIT(63)
#define EPT_ADDR_MASK   (MASK(52) & PAGE_MASK)

#define EPTP_WALK4 (3u << 3)
#define EPTP_AD    BIT(6)

#define MEMTYPE_UC 0u
#define MEMTYPE_WC 1u
#define MEMTYPE_WT 4u
#define MEMTYPE_WP 5u
#define MEMTYPE_WB 6u

#define EPT_LEVELS             4u
#define EPT_SHIFT(level)       (12u + 9u * ((level)-1u))
#define EPT_SIZE(level)        BIT(EPT_SHIFT(level))
#define EPT_INDEX(addr, level) ((unsigned)((addr) >> EPT_SHIFT(level)) & 511u)
#define EPT_PRESENT(entry)     ((entry) & (EPT_RWX | EPT_USER_EXEC))

struct ept_source {
	void *(*page)(void *ctx);               /* a zeroed table page, NULL when there is none */
	void (*release)(void *ctx, void *page); /* may be NULL */
	void *ctx;
};

struct ept {
	u64 *root; /* level-4 table; its address is what the EPTP holds */
	const struct ept_source *source;
	unsigned max_leaf; /* 1: 4K only, 2: 2M too, 3: 1G too */
};

/* False: no memory for the root. */
bool ept_init(struct ept *e, const struct ept_source *source, unsigned max_leaf);
/*
 * Map [gpa, gpa + size) (4 KiB multiples) to hpa.. with `flags` (R/W/X, type, IPAT) in the largest leaves
 * that alignment and max_leaf allow; splits larger leaves in the way; replaces what was there. False: no
 * memory (what was done so far stays).
 */
bool ept_map(struct ept *e, u64 gpa, u64 hpa, u64 size, u64 flags);
bool ept_unmap(struct ept *e, u64 gpa, u64 size);
/* Change flags of one 4 KiB page that is mapped (splitting); the caller flushes. */
bool ept_protect(struct ept *e, u64 gpa, u64 clear, u64 set);

/* The entry of the 4 KiB page at gpa, which is mapped; larger leaves in the way are taken apart. It stays
 * where it is while nothing is mapped or unmapped there. NULL: no memory, or nothing mapped. */
u64 *ept_small_leaf(struct ept *e, u64 gpa);
/*
 * Let `to` use the tables of `from` (NULL: of none) for [gpa, gpa + size), 1 GiB multiples. A change of a
 * 1 GiB leaf of `from` takes another call. Unshare before ept_destroy. False: no memory.
 */
bool ept_share(struct ept *to, const struct ept *from, u64 gpa, u64 size);

struct ept_leaf {
	u64 entry;      /* 0 when nothing is mapped there */
	unsigned level; /* of the leaf, or of the absent entry */
	u64 hpa;        /* machine address of exactly `gpa`, when mapped */
};
struct ept_leaf ept_lookup(const struct ept *e, u64 gpa);
/* Give all table pages back to the source. */
void ept_destroy(struct ept *e);

#endif
