/* SPDX-License-Identifier: Apache-2.0 */
/* Shadow EPTs: EPT12 AND EPT01 and never more, dropped by INVEPT, with pages that nobody reuses too early. */
/* clang-format off */
/* SOURCES: nested/sept.c nested/sept_root.c nested/sept_sync.c nested/watch.c nested/ept12.c mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/ept.c mm/memmap.c */
/* clang-format on */
#include <pthread.h>
#include <time.h>
#include "hv/vcpu.h"
#include "nested/sept.h"
#include "nested/sept_root.h"
#include "tests/unit/sept_host.h"

#define L2      0x40000000ull
#define READ    EPT_QUAL_READ
#define WRITE   EPT_QUAL_WRITE
#define FETCH   EPT_QUAL_FETCH
#define EPTP    (EPT12_ROOT | EPTP_WALK4 | MEMTYPE_WB)
#define DEVICE  (RAM - 2 * MIB) /* a hole that EPT01 does not map */
#define GUARDED 0x5000ull       /* a page that L0 write-protects */

static struct ept ept01;
static struct sept *s;
static struct vcpu vcpu0;
static struct sept_root *root;
static struct ept12_result r;

/* SDM "Accessed and Dirty Flags for EPT". */
static void set_dirty(u64 gpa)
{
	struct ept_leaf l = ept_lookup(&ept01, gpa);

	if (l.entry && !(l.entry & EPT_DIRTY))
		assert_true(ept_protect(&ept01, gpa, 0, EPT_DIRTY));
}

static void map_ept01(void)
{
	assert_true(ept_init(&ept01, &source, 3));
	for (unsigned i = 0; i < mem.count; i++)
		assert_true(ept_map(&ept01, mem.chunk[i].gpa, mem.chunk[i].hpa, mem.chunk[i].size,
				    RWX_WB | EPT_ACCESSED | EPT_DIRTY));
	assert_true(ept_unmap(&ept01, DEVICE, PAGE_SIZE));
	assert_true(ept_protect(&ept01, GUARDED, EPT_WRITE, 0));
}

static struct sept_root *enter(struct sept_root *hint, u64 eptp, unsigned vcpu)
{
	bool flush;
	struct sept_root *got = sept_enter(s, hint, eptp, vcpu, &flush);

	assert_non_null(got);
	return got;
}

static int setup(void **state)
{
	(void)state;
	guest_ram_create(&mem, RAM);
	tables_clear();
	l1mem_account(&mem);
	map_ept01();
	before_write = set_dirty;
	tlb_flushed = true;
	s = sept_create(&mem, &ept01, NULL, true, ALL_EPT_CAP, PHYS_BITS);
	assert_non_null(s);
	root = enter(NULL, EPTP, 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	before_write = NULL;
	sept_leave(root, 0);
	sept_destroy(s);
	ept_destroy(&ept01);
	guest_ram_destroy(&mem);
	assert_int_equal(pages_live, 0);
	return 0;
}

static enum sept_result fault(u64 addr, u64 qual)
{
	return sept_fault(s, root, 0, NGPA(addr), qual, NULL, &r);
}

/* What hardware finds in a shadow. */
static struct ept_leaf shadow_of(const struct sept_root *at, u64 addr)
{
	struct ept e = {.root = hpa_ptr(HPA(sept_eptp(at) & EPT_ADDR_MASK)), .max_leaf = 3};

	return ept_lookup(&e, addr);
}

static void assert_maps(u64 addr, u64 gpa, u64 perm, unsigned level)
{
	struct ept_leaf leaf = shadow_of(root, addr);

	assert_int_equal(leaf.entry & EPT_RWX, perm);
	assert_int_equal(leaf.hpa, ept_lookup(&ept01, gpa).hpa);
	assert_int_equal(leaf.level, level);
}

static void eptp_of_hardware(void **state)
{
	struct sept_root *other;

	(void)state;
	assert_int_equal(sept_eptp(root) & ~EPT_ADDR_MASK, EPTP_WALK4 | MEMTYPE_WB);
	sept_leave(root, 0);
	other = enter(NULL, EPTP | EPTP_AD, 0);
	assert_ptr_not_equal(other, root);
	assert_int_equal(sept_eptp(other) & ~EPT_ADDR_MASK, EPTP_WALK4 | MEMTYPE_WB | EPTP_AD);
	root = other;
}

static void fills_a_small_leaf(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, EPT_READ | EPT_EXEC | EPT_TYPE(MEMTYPE_WT) | EPT_IPAT);
	assert_int_equal(fault(L2 + 0x123, READ), SEPT_FILLED);
	assert_maps(L2 + 0x123, 0x3123, EPT_READ | EPT_EXEC, 1);
	assert_int_equal(shadow_of(root, L2).entry & (EPT_TYPE_MASK | EPT_IPAT),
			 EPT_TYPE(MEMTYPE_WT) | EPT_IPAT);
	assert_int_equal(fault(L2, WRITE), SEPT_VIOLATION);
	assert_int_equal(r.qual, WRITE | EPT_QUAL_PERM(EPT_READ | EPT_EXEC));
	assert_int_equal(fault(L2 + PAGE_SIZE, READ), SEPT_VIOLATION);
	*entry12(L2 + PAGE_SIZE, 1) = ~0ull;
	assert_int_equal(fault(L2 + PAGE_SIZE, READ), SEPT_MISCONFIG);
	assert_int_equal(shadow_of(root, L2 + PAGE_SIZE).entry, 0);
	assert_int_equal(sept_audit(s, root), 0);
}

/* SE-08: the largest leaf that both sides allow. */
static void leaf_sizes(void **state)
{
	(void)state;
	map12(L2, 4 * MIB, 2, RWX_WB);
	assert_int_equal(fault(L2 + 0x12345, READ), SEPT_FILLED);
	assert_maps(L2 + 0x12345, 4 * MIB + 0x12345, EPT_RWX, 2);
	/* one 1 GiB leaf over EPT01's 2 MiB, 4 KiB and absent ones */
	map12(4 * L2, 0, 3, RWX_WB);
	assert_int_equal(fault(4 * L2 + 6 * MIB + 5, FETCH), SEPT_FILLED);
	assert_maps(4 * L2 + 6 * MIB + 5, 6 * MIB + 5, EPT_RWX, 2);
	assert_int_equal(fault(4 * L2 + 0x7000, WRITE), SEPT_FILLED);
	assert_maps(4 * L2 + 0x7000, 0x7000, EPT_RWX, 1);
	assert_int_equal(fault(4 * L2 + DEVICE + 8, READ), SEPT_MMIO);
	assert_int_equal(r.gpa.v, DEVICE + 8);
	assert_int_equal(fault(4 * L2 + RAM, READ), SEPT_MMIO);
	assert_int_equal(r.gpa.v, RAM);
	/* small leaves over a large one of EPT01 */
	map12(L2 + 2 * MIB + 0x1000, 8 * MIB + 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2 + 2 * MIB + 0x1fff, READ), SEPT_FILLED);
	assert_maps(L2 + 2 * MIB + 0x1fff, 8 * MIB + 0x3fff, EPT_RWX, 1);
	assert_int_equal(sept_audit(s, root), 0);
}

static void permissions_of_ept01(void **state)
{
	(void)state;
	map12(L2, GUARDED, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_maps(L2, GUARDED, EPT_READ | EPT_EXEC, 1);
	assert_int_equal(fault(L2 + 8, WRITE), SEPT_MMIO);
	assert_int_equal(r.gpa.v, GUARDED + 8);
	assert_maps(L2, GUARDED, EPT_READ | EPT_EXEC, 1);
}

/* One fault fills the ready leaves of the same 32. */
static void neighbours(void **state)
{
	u64 base = L2 + 32 * PAGE_SIZE;

	(void)state;
	for (u64 i = 0; i < 48; i++)
		map12(base + i * PAGE_SIZE - 8 * PAGE_SIZE, 0x80000 + i * PAGE_SIZE, 1, RWX_WB);
	map12(base + 1 * PAGE_SIZE, DEVICE, 1, RWX_WB);
	map12(base + 2 * PAGE_SIZE, GUARDED, 1, RWX_WB);
	map12(base + 3 * PAGE_SIZE, 0x3000, 1, EPT_WRITE | WB); /* misconfigured */
	map12(base + 5 * PAGE_SIZE, 0x3000, 1, EPT_READ | WB);
	*entry12(base + 6 * PAGE_SIZE, 1) = 0;
	assert_int_equal(fault(base + 4 * PAGE_SIZE, READ), SEPT_FILLED);
	assert_maps(base, 0x88000, EPT_RWX, 1);
	assert_int_equal(shadow_of(root, base + PAGE_SIZE).entry, 0);
	assert_maps(base + 2 * PAGE_SIZE, GUARDED, EPT_READ | EPT_EXEC, 1);
	assert_int_equal(shadow_of(root, base + 3 * PAGE_SIZE).entry, 0);
	assert_maps(base + 4 * PAGE_SIZE, 0x8c000, EPT_RWX, 1);
	assert_maps(base + 5 * PAGE_SIZE, 0x3000, EPT_READ, 1);
	assert_int_equal(shadow_of(root, base + 6 * PAGE_SIZE).entry, 0);
	assert_maps(base + 7 * PAGE_SIZE, 0x8f000, EPT_RWX, 1);
	assert_int_equal(shadow_of(root, base - PAGE_SIZE).entry, 0);
	assert_maps(base + 31 * PAGE_SIZE, 0xa7000, EPT_RWX, 1);
	assert_int_equal(shadow_of(root, base + 32 * PAGE_SIZE).entry, 0);
	assert_int_equal(sept_audit(s, root), 0);
}

#define SUPER (FETCH | EPT_QUAL_LINEAR | EPT_QUAL_FINAL)
#define USER  (SUPER | EPT_QUAL_USER)

static u64 perm_of(u64 addr)
{
	return EPT_PRESENT(shadow_of(root, addr).entry);
}

static void let_user_execute(u64 addr, unsigned from)
{
	for (unsigned level = from; level <= EPT_LEVELS; level++)
		*entry12(addr, level) |= EPT_USER_EXEC;
}

/* Both execute permissions, as L1 gives them and EPT01 allows them; another root for the same EPTP. */
static void mode_based_execute(void **state)
{
	struct sept_root *plain = root;
	const u64 page = PAGE_SIZE;

	(void)state;
	map12(L2, 0x3000, 1, EPT_READ | EPT_EXEC | WB);
	map12(L2 + page, 0x4000, 1, EPT_READ | EPT_USER_EXEC | WB);
	map12(L2 + 2 * page, GUARDED, 1, RWX_WB | EPT_USER_EXEC);
	map12(L2 + 3 * page, 0x6000, 1, EPT_USER_EXEC | WB);
	let_user_execute(L2, 2);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_int_equal(perm_of(L2), EPT_READ | EPT_EXEC);
	assert_int_equal(perm_of(L2 + page), EPT_READ);
	assert_int_equal(perm_of(L2 + 3 * page), 0);
	sept_leave(root, 0);
	root = enter(NULL, EPTP | EPT12_MBE, 0);
	assert_ptr_not_equal(root, plain);
	assert_int_equal(sept_eptp(root) & ~EPT_ADDR_MASK, EPTP_WALK4 | MEMTYPE_WB);
	assert_int_equal(fault(L2, SUPER), SEPT_FILLED);
	assert_int_equal(perm_of(L2), EPT_READ | EPT_EXEC);
	assert_int_equal(perm_of(L2 + page), EPT_READ | EPT_USER_EXEC);
	assert_int_equal(perm_of(L2 + 2 * page), EPT_READ | EPT_EXEC | EPT_USER_EXEC);
	assert_int_equal(perm_of(L2 + 3 * page), EPT_USER_EXEC);
	assert_int_equal(fault(L2, USER), SEPT_VIOLATION);
	assert_int_equal(fault(L2 + page, USER), SEPT_FILLED);
	assert_int_equal(fault(L2 + page, SUPER), SEPT_VIOLATION);
	assert_int_equal(r.qual, SUPER | EPT_QUAL_PERM(EPT_READ) | BIT(6));
	assert_int_equal(sept_audit(s, root), 0);
	/* INVEPT goes by the address: both roots follow */
	*entry12(L2 + page, 1) &= ~EPT_USER_EXEC;
	vcpu0.index = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(perm_of(L2 + page), 0);
	assert_int_equal(EPT_PRESENT(shadow_of(plain, L2 + page).entry), 0);
	assert_int_equal(perm_of(L2), EPT_READ | EPT_EXEC);
}

/* L0 forbids code there: in neither mode. The audit sees a permission too many. */
static void mode_based_execute_and_ept01(void **state)
{
	u64 *slot;

	(void)state;
	assert_true(ept_protect(&ept01, GUARDED, EPT_EXEC, 0));
	sept_leave(root, 0);
	root = enter(NULL, EPTP | EPT12_MBE, 0);
	map12(L2, GUARDED, 1, RWX_WB | EPT_USER_EXEC);
	let_user_execute(L2, 2);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_int_equal(perm_of(L2), EPT_READ);
	assert_int_equal(fault(L2, USER), SEPT_MMIO);
	assert_int_equal(sept_audit(s, root), 0);
	slot = hpa_ptr(HPA(sept_eptp(root) & EPT_ADDR_MASK));
	for (unsigned level = EPT_LEVELS; level > 1; level--)
		slot = hpa_ptr(HPA(slot[EPT_INDEX(L2, level)] & EPT_ADDR_MASK));
	slot[EPT_INDEX(L2, 1)] |= EPT_USER_EXEC;
	assert_int_equal(sept_audit(s, root), 1);
}

/* Large leaves too, but no table beside them, and nothing where EPT01 has smaller leaves. */
static void large_neighbours(void **state)
{
	(void)state;
	map12(L2, 4 * MIB, 2, RWX_WB);
	map12(L2 + 2 * MIB, 6 * MIB, 2, RWX_WB);
	map12(L2 + 4 * MIB, 0x3000, 1, RWX_WB);
	map12(L2 + 6 * MIB, 0, 2, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_maps(L2 + 2 * MIB, 6 * MIB, EPT_RWX, 2);
	assert_int_equal(shadow_of(root, L2 + 4 * MIB).entry, 0);
	assert_int_equal(shadow_of(root, L2 + 6 * MIB).entry, 0);
	assert_int_equal(fault(L2 + 6 * MIB + 0x7000, READ), SEPT_FILLED);
	assert_maps(L2 + 6 * MIB + 0x7000, 0x7000, EPT_RWX, 1);
	assert_int_equal(sept_audit(s, root), 0);
}

/* With flags only what L1 sees as accessed, and no write before it is dirty. */
static void neighbours_with_flags(void **state)
{
	(void)state;
	sept_leave(root, 0);
	root = enter(NULL, EPTP | EPTP_AD, 0);
	map12(L2, 0x6000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, 0x7000, 1, RWX_WB);
	map12(L2 + 2 * PAGE_SIZE, 0x8000, 1, RWX_WB | EPT_ACCESSED);
	map12(L2 + 3 * PAGE_SIZE, 0x9000, 1, RWX_WB | EPT_ACCESSED | EPT_DIRTY);
	assert_int_equal(fault(L2, WRITE), SEPT_FILLED);
	assert_int_equal(shadow_of(root, L2 + PAGE_SIZE).entry, 0);
	assert_int_equal(*entry12(L2 + PAGE_SIZE, 1), 0x7000 | RWX_WB);
	assert_maps(L2 + 2 * PAGE_SIZE, 0x8000, EPT_READ | EPT_EXEC, 1);
	assert_maps(L2 + 3 * PAGE_SIZE, 0x9000, EPT_RWX, 1);
}

/* A page that EPT01 passes through keeps the type L0 gave it. */
static void device_type(void **state)
{
	u64 uc = EPT_READ | EPT_WRITE | EPT_TYPE(MEMTYPE_UC) | EPT_IPAT;

	(void)state;
	assert_true(ept_map(&ept01, DEVICE, 0xfe000000, PAGE_SIZE, uc));
	map12(L2, DEVICE, 1, RWX_WB);
	assert_int_equal(fault(L2, WRITE), SEPT_FILLED);
	assert_int_equal(shadow_of(root, L2).entry & ~(EPT_ACCESSED | EPT_DIRTY), 0xfe000000 | uc);
}

/* SE-02: L1 may allow more without INVEPT; the next access heals it. */
static void permission_raise(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, EPT_READ | WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_int_equal(fault(L2, WRITE), SEPT_VIOLATION);
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, WRITE), SEPT_FILLED);
	assert_maps(L2, 0x3000, EPT_RWX, 1);
	/* a large leaf becomes a table of small ones */
	map12(L2 + 2 * MIB, 4 * MIB, 2, EPT_READ | WB);
	assert_int_equal(fault(L2 + 2 * MIB, READ), SEPT_FILLED);
	*entry12(L2 + 2 * MIB, 2) = 0;
	map12(L2 + 2 * MIB, 0x7000, 1, RWX_WB);
	assert_int_equal(fault(L2 + 2 * MIB, WRITE), SEPT_FILLED);
	assert_maps(L2 + 2 * MIB, 0x7000, EPT_RWX, 1);
	/* and back: no access that the small ones allow sees it before INVEPT */
	map12(L2 + 2 * MIB, 4 * MIB, 2, RWX_WB);
	assert_maps(L2 + 2 * MIB, 0x7000, EPT_RWX, 1);
	assert_int_equal(fault(L2 + 2 * MIB + 0x3000, READ), SEPT_FILLED);
	assert_maps(L2 + 2 * MIB + 0x3000, 4 * MIB + 0x3000, EPT_RWX, 2);
}

/* With dirty flags the first write must be seen. */
static void write_is_held_back_until_dirty(void **state)
{
	(void)state;
	sept_leave(root, 0);
	root = enter(NULL, EPTP | EPTP_AD, 0);
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_maps(L2, 0x3000, EPT_READ | EPT_EXEC, 1);
	assert_int_equal(*entry12(L2, 1) & (EPT_ACCESSED | EPT_DIRTY), EPT_ACCESSED);
	assert_int_equal(fault(L2, WRITE), SEPT_FILLED);
	assert_maps(L2, 0x3000, EPT_RWX, 1);
	assert_int_equal(*entry12(L2, 1) & (EPT_ACCESSED | EPT_DIRTY), EPT_ACCESSED | EPT_DIRTY);
	assert_int_equal(sept_audit(s, root), 0);
}

static void audit_finds_wrong_leaves(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, 0x4000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	assert_int_equal(fault(L2 + PAGE_SIZE, READ), SEPT_FILLED);
	assert_int_equal(sept_audit(s, root), 0);
	map12(L2, 0x7000, 1, RWX_WB);
	assert_int_equal(sept_audit(s, root), 1);
	map12(L2 + PAGE_SIZE, 0x4000, 1, EPT_READ | WB);
	assert_int_equal(sept_audit(s, root), 2);
}

/* What has changed goes, and what has not stays. */
static void invept_drops(void **state)
{
	bool flush;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, 0x4000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	sept_enter(s, root, EPTP, 0, &flush);
	assert_false(flush);
	sept_leave(root, 0);
	map12(L2, 0x7000, 1, RWX_WB);
	sept_flush(s, &vcpu0, EPTP + PAGE_SIZE); /* another one's */
	assert_maps(L2, 0x3000, EPT_RWX, 1);
	sept_flush(s, &vcpu0, EPTP | EPTP_AD); /* the address alone counts */
	assert_int_equal(shadow_of(root, L2).entry, 0);
	assert_maps(L2 + PAGE_SIZE, 0x4000, EPT_RWX, 1);
	assert_ptr_equal(sept_enter(s, root, EPTP, 0, &flush), root);
	assert_true(flush);
	sept_enter(s, root, EPTP, 0, &flush);
	assert_false(flush);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	*entry12(L2, 1) = 0;
	sept_flush_all(s, &vcpu0);
	assert_int_equal(shadow_of(root, L2).entry, 0);
	assert_maps(L2 + PAGE_SIZE, 0x4000, EPT_RWX, 1);
	sept_drop_all(s);
	assert_int_equal(shadow_of(root, L2 + PAGE_SIZE).entry, 0);
}

/* Each level: an entry above that names another table, or allows less, takes along all below it. */
static void invept_after_change_above(void **state)
{
	(void)state;
	for (unsigned level = 2; level <= 4; level++) {
		u64 old;

		map12(L2, 0x3000, 1, RWX_WB);
		map12(L2 + BIT(39), 0x4000, 1, RWX_WB);
		assert_int_equal(fault(L2, READ), SEPT_FILLED);
		assert_int_equal(fault(L2 + BIT(39), READ), SEPT_FILLED);
		sept_flush(s, &vcpu0, EPTP);
		assert_maps(L2, 0x3000, EPT_RWX, 1);
		old = *entry12(L2, level);
		*entry12(L2, level) &= ~EPT_WRITE;
		sept_flush(s, &vcpu0, EPTP);
		assert_int_equal(shadow_of(root, L2).entry, 0);
		assert_maps(L2 + BIT(39), 0x4000, EPT_RWX, 1);
		assert_int_equal(fault(L2, READ), SEPT_FILLED);
		assert_maps(L2, 0x3000, EPT_READ | EPT_EXEC, 1);
		*entry12(L2, level) = old;
		sept_flush(s, &vcpu0, EPTP);
		assert_int_equal(sept_audit(s, root), 0);
	}
}

/* A large leaf of EPT12 in EPT01's small pages. */
static void invept_of_a_split_leaf(void **state)
{
	(void)state;
	map12(L2, 0, 2, RWX_WB);
	map12(L2 + 2 * MIB, 4 * MIB, 2, RWX_WB);
	assert_int_equal(fault(L2 + 0x3000, READ), SEPT_FILLED);
	assert_int_equal(fault(L2 + 0x7000, WRITE), SEPT_FILLED);
	assert_int_equal(fault(L2 + 2 * MIB, READ), SEPT_FILLED);
	sept_flush(s, &vcpu0, EPTP);
	assert_maps(L2 + 0x3000, 0x3000, EPT_RWX, 1);
	map12(L2, 0, 2, EPT_READ | WB);
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(root, L2 + 0x3000).entry, 0);
	assert_int_equal(shadow_of(root, L2 + 0x7000).entry, 0);
	assert_maps(L2 + 2 * MIB, 4 * MIB, EPT_RWX, 2);
	assert_int_equal(fault(L2 + 0x3000, READ), SEPT_FILLED);
	assert_maps(L2 + 0x3000, 0x3000, EPT_READ, 1);
}

static struct ept_leaf table01(u64 *slot12)
{
	for (u64 gpa = 0; gpa < RAM; gpa += PAGE_SIZE)
		if (ept_lookup(&ept01, gpa).hpa == (ptr_hpa(slot12).v & PAGE_MASK))
			return ept_lookup(&ept01, gpa);
	return (struct ept_leaf){0};
}

/* A change that hardware did not tell of is not looked for: only so can it be that unchanged tables cost
 * nothing. */
static void only_written_tables_are_read(void **state)
{
	u64 *slot;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	slot = entry12(L2, 1);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	sept_flush(s, &vcpu0, EPTP);
	assert_false(table01(slot).entry & EPT_DIRTY);
	*slot = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_maps(L2, 0x3000, EPT_RWX, 1);
	entry12(L2, 1);
	assert_true(table01(slot).entry & EPT_DIRTY);
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(root, L2).entry, 0);
}

/* While a CPU may hold the dirty bit in its TLB, a table counts as written; and once more after that. */
static void other_cpus_must_flush_first(void **state)
{
	u64 *slot;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, 0x4000, 1, RWX_WB);
	slot = entry12(L2, 1);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	tlb_flushed = false;
	tlb_kicks = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(tlb_kicks, 0);
	slot[0] = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_true(tlb_kicks);
	assert_int_equal(shadow_of(root, L2).entry, 0);
	tlb_flushed = true;
	slot[1] = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(root, L2 + PAGE_SIZE).entry, 0);
}

/* Two roots share a table; the first INVEPT must not hide the change from the second one. */
static void shared_tables(void **state)
{
	struct sept_root *first = root, *second;
	u64 top = 0x800000, eptp = top | EPTP_WALK4 | MEMTYPE_WB;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	sept_leave(root, 0);
	*slot_at(top, L2, 4) = *slot_at(EPT12_ROOT, L2, 4);
	root = second = enter(NULL, eptp, 0);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	sept_flush_all(s, &vcpu0);
	sept_flush_all(s, &vcpu0);
	map12(L2, 0x7000, 1, RWX_WB);
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(first, L2).entry, 0);
	assert_maps(L2, 0x3000, EPT_RWX, 1);
	sept_flush(s, &vcpu0, eptp);
	assert_int_equal(shadow_of(second, L2).entry, 0);
}

/* L2 writes to a table of its own EPT12, and L0 to one on L1's behalf. */
static void other_writers(void **state)
{
	const u64 table = 0x700000;
	u64 gone = 0;

	(void)state;
	*entry12(L2, 2) = table | EPT_RWX;
	map12(L2, 0x3000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, table, 1, RWX_WB);
	map12(L2 + 2 * PAGE_SIZE, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	sept_flush(s, &vcpu0, EPTP);
	assert_maps(L2 + PAGE_SIZE, table, EPT_READ | EPT_EXEC, 1);
	assert_true(guest_write(&mem, GPA(table), &gone, sizeof(gone)));
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(root, L2).entry, 0);
	assert_maps(L2 + 2 * PAGE_SIZE, 0x3000, EPT_RWX, 1);
	assert_int_equal(fault(L2 + PAGE_SIZE, WRITE), SEPT_FILLED);
	assert_maps(L2 + PAGE_SIZE, table, EPT_RWX, 1);
	sept_flush(s, &vcpu0, EPTP);
	before_write = NULL; /* the shadow's leaf allows it without a trace */
	*slot_at(table, L2 + 2 * PAGE_SIZE, 1) = 0;
	sept_flush(s, &vcpu0, EPTP);
	assert_int_equal(shadow_of(root, L2 + 2 * PAGE_SIZE).entry, 0);
}

/* Every vCPU flushes its own TLB once after its first entry and after each drop. */
static void each_vcpu_flushes(void **state)
{
	bool flush;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	for (unsigned v = 1; v < 4; v++) {
		assert_ptr_equal(sept_enter(s, NULL, EPTP, v, &flush), root);
		assert_true(flush);
		sept_enter(s, root, EPTP, v, &flush);
		assert_false(flush);
		sept_leave(root, v);
	}
	*entry12(L2, 1) = 0;
	sept_flush(s, &vcpu0, EPTP);
	for (unsigned v = 0; v < 4; v++) {
		sept_enter(s, root, EPTP, v, &flush);
		assert_true(flush);
		if (v)
			sept_leave(root, v);
	}
}

/*
 * A dropped table stays as it is while a vCPU is inside that may have it in its caches: rather there is no
 * page. Once that vCPU has entered anew all goes on.
 */
static void pages_wait_for_those_inside(void **state)
{
	enum sept_result got = SEPT_FILLED;
	unsigned rounds = 0;
	u64 *slot, old;

	(void)state;
	enter(NULL, EPTP, 1);
	map12(L2 + 2 * MIB, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2 + 2 * MIB, READ), SEPT_FILLED);
	slot = &sept_table(root->top->table[EPT_INDEX(L2, 4)])[EPT_INDEX(L2, 3)];
	slot = &sept_table(*slot)[EPT_INDEX(L2 + 2 * MIB, 2)];
	old = *slot;
	while (got == SEPT_FILLED && rounds++ < s->nodes_max) {
		sept_drop_all(s);
		enter(root, EPTP, 0);
		got = fault(L2 + 2 * MIB, READ);
		assert_int_equal(*slot, old);
	}
	assert_int_equal(got, SEPT_RETRY);
	assert_true(rounds > 10);
	enter(root, EPTP, 0);
	assert_int_equal(fault(L2 + 2 * MIB, READ), SEPT_RETRY);
	enter(root, EPTP, 1);
	enter(root, EPTP, 0);
	assert_int_equal(fault(L2 + 2 * MIB, READ), SEPT_FILLED);
	sept_leave(root, 1);
}

/* SE-12: scattered addresses, far more than there are pages for. Bounded memory, always progress. */
static void pool_runs_dry(void **state)
{
	int most = 0;

	(void)state;
	map12(0, 0, 3, RWX_WB);
	for (unsigned i = 0; i < 4000; i++) {
		u64 addr = (u64)(i % 400) << 39 | (u64)(i % 7) << 30 | (u64)(i % 5) << 21;
		unsigned tries = 0;

		*slot_at(EPT12_ROOT, addr, 4) = *slot_at(EPT12_ROOT, 0, 4);
		for (unsigned g = 0; g < 7; g++)
			*entry12((u64)g << 30, 3) = RWX_WB | EPT_LARGE;
		while (fault(addr, READ) != SEPT_FILLED) {
			assert_true(tries++ < 4);
			root = enter(root, EPTP, 0);
		}
		most = pages_live > most ? pages_live : most;
	}
	assert_true(most <= (int)s->nodes_max + 40);
	assert_int_equal(sept_audit(s, root), 0);
}

/* Nothing more to be had: the few pages there are go round. */
static void few_pages(void **state)
{
	unsigned filled = 0;

	(void)state;
	s->nodes_max = s->nodes;
	map12(0, 0, 3, RWX_WB);
	for (unsigned i = 0; i < 300; i++) {
		*slot_at(EPT12_ROOT, (u64)i << 39, 4) = *slot_at(EPT12_ROOT, 0, 4);
		for (unsigned tries = 0; tries < 3; tries++) {
			if (fault((u64)i << 39, READ) == SEPT_FILLED) {
				filled++;
				break;
			}
			root = enter(root, EPTP, 0);
		}
	}
	assert_int_equal(filled, 300);
}

/* More EPTPs than roots, each used again and again. */
static void roots_are_recycled(void **state)
{
	struct sept_root *at[200] = {0};

	(void)state;
	sept_leave(root, 0);
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned round = 0; round < 3; round++)
		for (u64 i = 0; i < 200; i++) {
			u64 table = 0x800000 + i * PAGE_SIZE, eptp = table | EPTP_WALK4 | MEMTYPE_WB;

			*slot_at(table, L2, 4) = *slot_at(EPT12_ROOT, L2, 4);
			root = at[i] = enter(at[i], eptp, 0);
			assert_int_equal(root->key & EPT_ADDR_MASK, table);
			assert_int_equal(fault(L2, READ), SEPT_FILLED);
			assert_maps(L2, 0x3000, EPT_RWX, 1);
			assert_int_equal(shadow_of(root, 0).entry, 0);
			sept_leave(root, 0);
		}
	root = enter(NULL, EPTP, 0);
}

static void a_root_in_use_stays(void **state)
{
	struct sept_root *others;

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(fault(L2, READ), SEPT_FILLED);
	for (u64 i = 0; i < 3 * SEPT_ROOTS; i++) {
		others = enter(NULL, (0x800000 + i * PAGE_SIZE) | EPTP_WALK4, 1);
		assert_ptr_not_equal(others, root);
		sept_leave(others, 1);
	}
	assert_maps(L2, 0x3000, EPT_RWX, 1);
}

/* --- several vCPUs at once --- */

#define THREADS 3
#define SLOTS   64
#define ROUNDS  4000
#define SECONDS 3 /* at most: spinning vCPUs are slow where there are more of them than CPUs */

static volatile bool stop;

struct toucher {
	pthread_t thread;
	unsigned vcpu;
	u64 filled; /* atomic */
};

static void *touch(void *arg)
{
	struct toucher *t = arg;
	struct sept_root *mine = NULL;
	struct ept12_result res;
	unsigned seed = t->vcpu;
	bool flush;

	while (!stop) {
		mine = sept_enter(s, mine, EPTP, t->vcpu, &flush);
		for (unsigned i = 0; i < 16; i++) {
			u64 stride = seed & 1024 ? PAGE_SIZE : 2 * MIB;
			u64 addr = L2 + (unsigned)rand_r(&seed) % SLOTS * stride;

			if (sept_fault(s, mine, t->vcpu, NGPA(addr), READ, NULL, &res) == SEPT_FILLED)
				__atomic_fetch_add(&t->filled, 1, __ATOMIC_RELAXED);
		}
		sept_leave(mine, t->vcpu);
	}
	return NULL;
}

/* After L1's change and INVEPT nobody can bring the old translation back. */
static void no_stale_entry_after_invept(void **state)
{
	time_t end = time(NULL) + SECONDS;
	struct toucher t[THREADS];

	(void)state;
	for (u64 i = 0; i < SLOTS; i++) {
		map12(L2 + i * PAGE_SIZE, 0x6000, 1, RWX_WB);
		map12(L2 + (i + 1) * 2 * MIB, 0x6000, 1, RWX_WB);
	}
	stop = false;
	for (unsigned i = 0; i < THREADS; i++) {
		t[i] = (struct toucher){.vcpu = i + 1};
		pthread_create(&t[i].thread, NULL, touch, &t[i]);
		while (!__atomic_load_n(&t[i].filled, __ATOMIC_RELAXED))
			sched_yield();
	}
	for (unsigned n = 0; n < ROUNDS && time(NULL) < end; n++) {
		u64 addr = L2 + (n % SLOTS) * (n & 1 ? PAGE_SIZE : 2 * MIB),
		    gpa = 0x6000 + (n % 5) * PAGE_SIZE;
		u64 want = ept_lookup(&ept01, gpa).hpa;

		__atomic_store_n(entry12(addr, 1), gpa | RWX_WB, __ATOMIC_SEQ_CST);
		sept_flush(s, &vcpu0, EPTP);
		for (unsigned look = 0; look < 50; look++) {
			struct ept_leaf leaf = shadow_of(root, addr);

			if (leaf.entry && leaf.hpa != want)
				fail_msg("round %u: stale entry %#lx", n, leaf.entry);
		}
		root = enter(root, EPTP, 0);
	}
	stop = true;
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i].thread, NULL);
	assert_int_equal(sept_audit(s, root), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(eptp_of_hardware),
		TEST(fills_a_small_leaf),
		TEST(leaf_sizes),
		TEST(permissions_of_ept01),
		TEST(neighbours),
		TEST(large_neighbours),
		TEST(mode_based_execute),
		TEST(mode_based_execute_and_ept01),
		TEST(neighbours_with_flags),
		TEST(device_type),
		TEST(permission_raise),
		TEST(write_is_held_back_until_dirty),
		TEST(audit_finds_wrong_leaves),
		TEST(invept_drops),
		TEST(invept_after_change_above),
		TEST(invept_of_a_split_leaf),
		TEST(only_written_tables_are_read),
		TEST(other_cpus_must_flush_first),
		TEST(shared_tables),
		TEST(other_writers),
		TEST(each_vcpu_flushes),
		TEST(pages_wait_for_those_inside),
		TEST(pool_runs_dry),
		TEST(few_pages),
		TEST(roots_are_recycled),
		TEST(a_root_in_use_stays),
		TEST(no_stale_entry_after_invept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
