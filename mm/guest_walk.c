/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page walk: 32-bit, PAE and 4-level paging with exact faults. SDM "Paging". Must not know where the tables
 * lie, nor keep anything between two walks (there is no TLB here).
 */
#include "mm/guest_walk.h"
#include "hv/x86.h"
#include "mm/pte.h"

#define PTE_KEY(e) ((unsigned)((e) >> 59) & 15)

#define RACES_MAX                                                                                            \
	16 /* lost compare-exchanges before the guest gets a (spurious) fault: L0 must not spin for it */

/* How one kind of paging is built. Level 1 is the page table. */
struct format {
	unsigned levels;     /* with tables in memory */
	unsigned entry_size; /* bytes */
	unsigned index_bits;
	unsigned large_max; /* highest level that may hold a page */
	u64 reserved;       /* in every entry */
	u64 address;        /* address bits of an entry */
};

/* One walk: the entries it read, and what they permit together. */
struct walk {
	const struct format *f;
	u64 at[4], entry[4]; /* by level - 1; physical address and value */
	unsigned level;      /* of the leaf */
	bool writable, user, no_exec;
};

static struct format format_32(const struct paging *p)
{
	return (struct format){.levels = 2,
			       .entry_size = 4,
			       .index_bits = 10,
			       .large_max = p->cr4 & CR4_PSE ? 2 : 1,
			       .reserved = 0,
			       .address = 0xfffff000};
}

static struct format format_64(const struct paging *p, unsigned levels)
{
	u64 address = MASK(p->phys_bits) & PAGE_MASK;
	/* 4-level paging ignores bits 62:52, PAE paging reserves them. */
	u64 reserved = (levels == 4 ? MASK(52) : MASK(63)) & ~MASK(p->phys_bits);

	return (struct format){.levels = levels,
			       .entry_size = 8,
			       .index_bits = 9,
			       .large_max = levels == 4 && !p->no_page1g ? 3 : 2,
			       .reserved = reserved | (p->efer & EFER_NXE ? 0 : PTE_XD),
			       .address = address};
}

static unsigned level_shift(const struct format *f, unsigned level)
{
	return PAGE_SHIFT + f->index_bits * (level - 1);
}

/* PSE-36: bits 39:32 of the address stand in bits 20:13 of a 4-MByte page's entry. */
static u64 reserved_pse36(const struct paging *p)
{
	unsigned width = MIN(40u, (unsigned)p->phys_bits);

	return MASK(22) & ~MASK(width > 32 ? width - 19 : 13);
}

static u64 reserved_bits(const struct format *f, const struct paging *p, u64 entry, unsigned level)
{
	u64 reserved = f->reserved;

	if (level == 1 || !(entry & PTE_PS))
		return reserved;
	if (f->entry_size == 4)
		return level <= f->large_max ? reserved_pse36(p) : 0; /* without CR4.PSE the bit is ignored */
	if (level > f->large_max)
		return reserved | PTE_PS;
	/* Bit 12 is PAT, then come address bits that must be aligned. */
	return reserved | (MASK(level_shift(f, level)) & ~MASK(13));
}

static bool entry_is_page(const struct format *f, u64 entry, unsigned level)
{
	return level == 1 || (level <= f->large_max && (entry & PTE_PS));
}

static u64 page_address(const struct format *f, u64 entry, unsigned level, u64 linear)
{
	u64 inside = MASK(level_shift(f, level));
	u64 base = entry & f->address & ~inside;

	if (f->entry_size == 4 && level == 2)
		base |= (entry >> 13 & 0xff) << 32;
	return base | (linear & inside);
}

static u32 access_error(const struct paging *p, enum access a)
{
	u32 error = p->user ? PF_USER : 0;

	if (a == ACCESS_WRITE)
		error |= PF_WRITE;
	if (a == ACCESS_FETCH && ((p->cr4 & CR4_SMEP) || ((p->cr4 & CR4_PAE) && (p->efer & EFER_NXE))))
		error |= PF_FETCH;
	return error;
}

/* SDM "Determination of Access Rights", without protection keys. */
static bool rights_ok(const struct walk *w, const struct paging *p, enum access a)
{
	if (p->user && !w->user)
		return false;
	if (a == ACCESS_FETCH)
		return !w->no_exec && (p->user || !w->user || !(p->cr4 & CR4_SMEP));
	if (!p->user && w->user && (p->cr4 & CR4_SMAP) && !p->ac)
		return false;
	return a != ACCESS_WRITE || w->writable || (!p->user && !(p->cr0 & CR0_WP));
}

/* SDM "Protection Keys": for data accesses to user-mode addresses. */
static bool key_ok(const struct walk *w, const struct paging *p, enum access a)
{
	u32 rights;

	if (!(p->efer & EFER_LMA) || !(p->cr4 & CR4_PKE) || !w->user || a == ACCESS_FETCH)
		return true;
	rights = p->pkru >> (2 * PTE_KEY(w->entry[w->level - 1]));
	if (rights & 1)
		return false;
	return !(rights & 2) || a != ACCESS_WRITE || (!p->user && !(p->cr0 & CR0_WP));
}

static enum walk_result fail(struct page_fault *fault, u64 linear, u32 error)
{
	*fault = (struct page_fault){.linear = linear, .error = error};
	return WALK_FAULT;
}

/* Read entries from `table` down to the page. On WALK_OK, w is complete. `error`: of the access so far. */
static enum walk_result descend(struct walk *w, const struct walk_source *s, const struct paging *p,
				u64 table, u64 linear, u32 error, struct page_fault *fault)
{
	const struct format *f = w->f;

	for (unsigned level = f->levels;; level--) {
		u64 index = linear >> level_shift(f, level) & MASK(f->index_bits);
		u64 at = table + index * f->entry_size, entry;

		if (!s->read(s->ctx, at, f->entry_size, &entry))
			return WALK_GIVEN_UP;
		if (f->entry_size == 4)
			entry = (u32)entry;
		if (!(entry & PTE_P))
			return fail(fault, linear, error);
		if (entry & reserved_bits(f, p, entry, level))
			return fail(fault, linear, error | PF_PRESENT | PF_RESERVED);
		w->at[level - 1] = at;
		w->entry[level - 1] = entry;
		w->level = level;
		w->writable &= !!(entry & PTE_RW);
		w->user &= !!(entry & PTE_US);
		w->no_exec |= f->entry_size == 8 && (entry & PTE_XD);
		if (entry_is_page(f, entry, level))
			return WALK_OK;
		table = entry & f->address;
	}
}

/* Set A in all entries that were used and D in the page's for a write. False: an entry changed under us. */
static bool mark_used(const struct walk *w, const struct walk_source *s, enum access a)
{
	for (unsigned level = w->f->levels; level >= w->level; level--) {
		u64 old = w->entry[level - 1];
		u64 new = old | PTE_A | (level == w->level && a == ACCESS_WRITE ? PTE_D : 0);

		if (new != old && !s->cmpxchg(s->ctx, w->at[level - 1], w->f->entry_size, old, new))
			return false;
	}
	return true;
}

/* The kind of paging in force and the first table that lies in memory. False: a PDPTE register is not
 * present. */
static bool choose_format(const struct paging *p, u64 linear, struct format *f, u64 *table)
{
	u64 pdpte;

	if (p->efer & EFER_LMA) {
		*f = format_64(p, 4);
		*table = p->cr3 & f->address;
		return true;
	}
	if (!(p->cr4 & CR4_PAE)) {
		*f = format_32(p);
		*table = p->cr3 & f->address;
		return true;
	}
	*f = format_64(p, 2);
	pdpte = p->pdpte[linear >> 30 & 3];
	*table = pdpte & f->address;
	return pdpte & PTE_P;
}

enum walk_result paging_walk(const struct walk_source *s, const struct paging *p, u64 linear, enum access a,
			     u64 *out, struct page_fault *fault)
{
	u32 error = access_error(p, a);
	struct format f;
	u64 table;

	linear = paging_linear(p, linear);
	if (!(p->cr0 & CR0_PG)) {
		*out = linear;
		fault->page = PF_USER | PF_WRITE;
		return WALK_OK;
	}
	if (!choose_format(p, linear, &f, &table))
		return fail(fault, linear, error);
	for (unsigned tries = 0; tries < RACES_MAX; tries++) {
		struct walk w = {.f = &f, .writable = true, .user = true};
		enum walk_result r = descend(&w, s, p, table, linear, error, fault);

		if (r != WALK_OK)
			return r;
		if (!key_ok(&w, p, a))
			return fail(fault, linear, error | PF_PRESENT | PF_KEY);
		if (!rights_ok(&w, p, a))
			return fail(fault, linear, error | PF_PRESENT);
		if (mark_used(&w, s, a)) {
			*out = page_address(&f, w.entry[w.level - 1], w.level, linear);
			fault->page = (w.user ? PF_USER : 0) | (w.writable ? PF_WRITE : 0) |
				      (w.no_exec ? PF_FETCH : 0);
			return WALK_OK;
		}
	}
	return fail(fault, linear, error);
}
