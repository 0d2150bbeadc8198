/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only way to read and write guest memory. Bounds are checked before anything is touched; nothing keeps a
 * pointer into guest RAM.
 */
#ifndef NIDUS_MM_GUEST_COPY_H
#define NIDUS_MM_GUEST_COPY_H

#include "hv/types.h"
#include "mm/l1mem.h"

/* Guest-physical. False: some byte is not RAM of this guest (nothing was copied then). */
bool guest_read(const struct l1mem *m, gpa_t gpa, void *buf, size_t n);
bool guest_write(const struct l1mem *m, gpa_t gpa, const void *buf, size_t n);
bool guest_zero(const struct l1mem *m, gpa_t gpa, size_t n);
/* One aligned u64, atomically: for page-table entries. compare-exchange returns false on a changed value or
 * bad address. */
bool guest_read64(const struct l1mem *m, gpa_t gpa, u64 *out);
/* `n` of them from an aligned address on, inside one page; each atomically. */
bool guest_read64s(const struct l1mem *m, gpa_t gpa, u64 *out, unsigned n);
/* The first i from `first` on for which the page at gpa does not hold known[i], which is not 0; 512: none. */
unsigned guest_differs(const struct l1mem *m, gpa_t gpa, const u64 *known, unsigned first);
bool guest_cmpxchg64(const struct l1mem *m, gpa_t gpa, u64 old, u64 new);
bool guest_cmpxchg32(const struct l1mem *m, gpa_t gpa, u32 old, u32 new);
/* Leave only `keep` of it, whatever it is by now. */
bool guest_and64(const struct l1mem *m, gpa_t gpa, u64 keep);

/* How the guest's CPU translates linear addresses at this moment. */
struct paging {
	u64 cr0, cr3, cr4, efer;
	u64 pdpte[4]; /* PAE paging: the registers, not memory */
	u32 pkru;
	bool user;      /* CPL 3 (an explicit access) */
	bool ac;        /* RFLAGS.AC: SMAP off for explicit supervisor accesses */
	u8 phys_bits;   /* MAXPHYADDR shown to the guest */
	bool no_page1g; /* the guest's CPU has no 1-GByte pages (CPUID 80000001h EDX.26) */
};

enum access { ACCESS_READ = 0, ACCESS_WRITE = 2, ACCESS_FETCH = 16 }; /* as in a #PF error code */

struct page_fault {
	u64 linear; /* what CR2 gets */
	u32 error;  /* #PF error code */
	u32 page;   /* where there is none: PF_USER, PF_WRITE (it is writable), PF_FETCH (no code) of the page
		     */
};

/*
 * Translate one linear address by the guest's own tables, setting A/D bits as the CPU does. SDM "Paging".
 * False: *fault says which #PF. A table outside of the guest's RAM reads as all ones (reserved-bit fault),
 * like an absent bus target.
 */
bool guest_walk(const struct l1mem *m, const struct paging *p, u64 linear, enum access a, gpa_t *out,
		struct page_fault *fault);
/* Through the guest's paging; crosses pages; a write is checked on all pages before the first byte is
 * written. *mmio: an address that is no RAM (then false, fault untouched). */
bool guest_read_linear(const struct l1mem *m, const struct paging *p, u64 linear, void *buf, size_t n,
		       enum access a, struct page_fault *fault, bool *mmio);
bool guest_write_linear(const struct l1mem *m, const struct paging *p, u64 linear, const void *buf, size_t n,
			struct page_fault *fault, bool *mmio);

#endif
