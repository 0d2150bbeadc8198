/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of L1's EPT: translation, permissions, accessed and dirty flags. Every entry is read once, and
 * changed only by compare-and-swap. SDM "EPT Translation Mechanism".
 */
#include "nested/ept12.h"
#include "mm/guest_copy.h"
#include "nested/caps.h"

#define LINEAR_GPA_BITS 48 /* what four levels translate */
#define LOG_ENTRIES     512u
#define EPT_NO_VE       BIT(63) /* SDM "EPT Paging Structures": suppress #VE */
#define WALK_TRIES      4
#define TABLE_RESERVED  (MASK(8) & ~MASK(3)) /* bits 7:3 of an entry that names a table */

/* One walk: where entries were read, for the flags. */
struct walk {
	gpa_t at[EPT_LEVELS + 1]; /* by level */
	unsigned level;           /* lowest one read */
};

static bool is_leaf(u64 entry, unsigned level)
{
	return level == 1 || ((level == 2 || level == 3) && (entry & EPT_LARGE));
}

/* A large leaf is a reserved-bit error where its size is not offered. */
static bool size_offered(const struct ept12 *e, unsigned level)
{
	return level == 1 || (level == 2 && (e->ept_vpid & EPT_CAP_2M)) ||
	       (level == 3 && (e->ept_vpid & EPT_CAP_1G));
}

static bool type_ok(u64 entry)
{
	u64 type = (entry & EPT_TYPE_MASK) >> 3;

	return type != 2 && type != 3 && type != 7;
}

/* The permissions of an entry; with none of them it is absent. */
static u64 perm_bits(const struct ept12 *e)
{
	return EPT_RWX | (e->eptp & EPT12_MBE);
}

/* SDM "EPT Misconfigurations". Pre: the entry is present. */
static bool misconfigured(const struct ept12 *e, u64 entry, unsigned level)
{
	u64 beyond = EPT_ADDR_MASK & ~MASK(e->phys_bits);

	if (!(entry & EPT_READ) && (entry & EPT_WRITE || !(e->ept_vpid & EPT_CAP_EXEC_ONLY)))
		return true;
	if (entry & beyond)
		return true;
	if (!is_leaf(entry, level))
		return entry & TABLE_RESERVED;
	return !size_offered(e, level) || !type_ok(entry) || (entry & EPT_ADDR_MASK & (EPT_SIZE(level) - 1));
}

/* Memory that is not there reads as all ones, as from a bus. */
static u64 read_entry(const struct ept12 *e, gpa_t at)
{
	u64 entry;

	return guest_read64(e->mem, at, &entry) ? entry : ~0ull;
}

/*
 * Down to the leaf, an absent entry or a misconfigured one. Permissions do not stop the walk: a
 * misconfiguration further down wins over their violation.
 */
static enum ept12_status descend(const struct ept12 *e, ngpa_t addr, struct walk *w, struct ept12_result *out)
{
	u64 table = e->eptp & EPT_ADDR_MASK;

	out->perm = perm_bits(e);
	for (w->level = EPT_LEVELS;; w->level--) {
		gpa_t at = GPA(table + EPT_INDEX(addr.v, w->level) * sizeof(u64));
		u64 entry = read_entry(e, at);

		w->at[w->level] = at;
		out->entry[w->level] = entry;
		out->above = out->perm;
		out->entry_at = at;
		out->perm &= entry;
		if (!(entry & perm_bits(e)))
			return EPT12_VIOLATION;
		if (misconfigured(e, entry, w->level))
			return EPT12_MISCONFIG;
		if (is_leaf(entry, w->level))
			return EPT12_OK;
		table = entry & EPT_ADDR_MASK;
	}
}

/* SDM "Page-Modification Logging". */
static void log_page(const struct ept12 *e, ngpa_t addr)
{
	u64 page = ALIGN_DOWN(addr.v, PAGE_SIZE);

	guest_write(e->mem, GPA(e->log->page + *e->log->index * sizeof(page)), &page, sizeof(page));
	--*e->log->index;
}

/* SDM "Accessed and Dirty Flags for EPT". RETRY: L1 changed an entry meanwhile. */
static enum ept12_status set_flags(const struct ept12 *e, ngpa_t addr, const struct walk *w, u64 *entry,
				   bool write)
{
	bool log = e->log && write && !(entry[w->level] & EPT_DIRTY);

	if (log && *e->log->index >= LOG_ENTRIES)
		return EPT12_LOG_FULL;
	for (unsigned level = EPT_LEVELS; level >= w->level; level--) {
		u64 old = entry[level], new = old | EPT_ACCESSED;

		if (level == w->level && write)
			new |= EPT_DIRTY;
		if (new != old && !guest_cmpxchg64(e->mem, w->at[level], old, new))
			return EPT12_RETRY;
		entry[level] = new;
	}
	if (log)
		log_page(e, addr);
	return EPT12_OK;
}

static void fill_leaf(const struct ept12 *e, u64 leaf, unsigned level, u64 offset, struct ept12_result *out)
{
	out->gpa = GPA((leaf & EPT_ADDR_MASK) | offset);
	out->type = (u8)((leaf & EPT_TYPE_MASK) >> 3);
	out->ipat = leaf & EPT_IPAT;
	out->dirty = !(e->eptp & EPTP_AD) || (leaf & EPT_DIRTY);
	out->level = level;
}

/* SDM "Exit Qualification for EPT Violations": the access is as hardware saw it, the permissions are L1's. */
static u64 violation_qual(const struct ept12 *e, u64 hw_qual, u64 perm)
{
	u64 same = EPT_QUAL_ACCESS | EPT_QUAL_LINEAR | EPT_QUAL_FINAL | EPT_QUAL_NMI_UNBLOCK;

	if (e->ept_vpid & EPT_CAP_ADVANCED)
		same |= EPT_QUAL_ADVANCED;
	return (hw_qual & same) | EPT_QUAL_PERM(perm & EPT_RWX) |
	       (perm & EPT_USER_EXEC ? EPT_QUAL_USER_EXEC : 0);
}

/* The permission that an access needs. SDM "Execute-Permission" bits of "EPT Paging Structures": a fetch is
 * that of user mode by its linear address, not by the CPL. */
static u64 needed(const struct ept12 *e, u64 hw_qual)
{
	if (e->eptp & EPT12_MBE && hw_qual & EPT_QUAL_FETCH && hw_qual & EPT_QUAL_USER)
		return EPT_USER_EXEC;
	return hw_qual & EPT_QUAL_ACCESS;
}

static enum ept12_status walk_once(const struct ept12 *e, ngpa_t addr, u64 access, struct ept12_result *out)
{
	struct walk w;
	enum ept12_status status = descend(e, addr, &w, out);

	out->level = w.level;
	out->no_ve = out->entry[w.level] & EPT_NO_VE;
	if (status != EPT12_OK)
		return status;
	if (access & ~out->perm)
		return EPT12_VIOLATION;
	if (access && (e->eptp & EPTP_AD))
		status = set_flags(e, addr, &w, out->entry, access & EPT_QUAL_WRITE);
	if (status != EPT12_OK)
		return status;
	fill_leaf(e, out->entry[w.level], w.level, addr.v & (EPT_SIZE(w.level) - 1), out);
	return EPT12_OK;
}

/* SDM "Accessed and Dirty Flags for EPT": with the flags, L2's walk of its own tables both reads and writes
 * them. */
static bool walk_writes(const struct ept12 *e, u64 hw_qual)
{
	return e->eptp & EPTP_AD && (hw_qual & (EPT_QUAL_LINEAR | EPT_QUAL_FINAL)) == EPT_QUAL_LINEAR;
}

void ept12_walk(const struct ept12 *e, ngpa_t addr, u64 hw_qual, struct ept12_result *out)
{
	if (walk_writes(e, hw_qual))
		hw_qual |= EPT_QUAL_READ | EPT_QUAL_WRITE;
	*out = (struct ept12_result){.status = EPT12_VIOLATION, .level = EPT_LEVELS};
	if (!(addr.v >> LINEAR_GPA_BITS)) {
		out->status = EPT12_RETRY;
		for (unsigned try = 0; try < WALK_TRIES && out->status == EPT12_RETRY; try++)
			out->status = walk_once(e, addr, needed(e, hw_qual), out);
	}
	if (out->status == EPT12_VIOLATION)
		out->qual = violation_qual(e, hw_qual, out->perm);
}

bool ept12_beside(const struct ept12 *e, const struct ept12_result *found, u64 entry,
		  struct ept12_result *out)
{
	out->perm = found->above & entry; /* 0: it is absent, or of no use */
	if (!out->perm || misconfigured(e, entry, found->level) || !is_leaf(entry, found->level))
		return false;
	if ((e->eptp & EPTP_AD) && !(entry & EPT_ACCESSED))
		return false;
	fill_leaf(e, entry, found->level, 0, out);
	return true;
}
