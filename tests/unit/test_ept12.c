/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of L1's EPT: addresses, permissions, misconfigurations, flags. SDM "EPT Translation Mechanism",
 * "EPT Misconfigurations", "Accessed and Dirty Flags for EPT". */
/* SOURCES: nested/ept12.c mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c */
/* SOURCES: mm/l1mem.c mm/ept.c mm/memmap.c */
#include "tests/unit/ept12_tables.h"

#define L2     0x40000000ull /* where L2's memory stands in these tests */
#define READ   EPT_QUAL_READ
#define WRITE  EPT_QUAL_WRITE
#define FETCH  EPT_QUAL_FETCH
#define LINEAR (EPT_QUAL_LINEAR | EPT_QUAL_FINAL)

static struct ept12 e;
static struct ept12_result r;

static int setup(void **state)
{
	(void)state;
	if (!mem.count)
		guest_ram_create(&mem, RAM);
	tables_clear();
	e = (struct ept12){
		.mem = &mem,
		.eptp = EPT12_ROOT | EPTP_WALK4 | MEMTYPE_WB,
		.ept_vpid = ALL_EPT_CAP,
		.phys_bits = PHYS_BITS,
	};
	return 0;
}

static enum ept12_status walk(u64 addr, u64 qual)
{
	ept12_walk(&e, NGPA(addr), qual, &r);
	return r.status;
}

static void leaf_of_each_size(void **state)
{
	(void)state;
	for (unsigned level = 1; level <= 3; level++) {
		u64 base = L2 + level * BIT(39), gpa = level * EPT_SIZE(level);

		map12(base, gpa, level, EPT_RWX | EPT_TYPE(MEMTYPE_WT) | EPT_IPAT);
		assert_int_equal(walk(base + EPT_SIZE(level) - 3, READ), EPT12_OK);
		assert_int_equal(r.gpa.v, gpa + EPT_SIZE(level) - 3);
		assert_int_equal(r.level, level);
		assert_int_equal(r.perm, EPT_RWX);
		assert_int_equal(r.type, MEMTYPE_WT);
		assert_true(r.ipat && r.dirty);
	}
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(walk(L2, READ), EPT12_OK);
	assert_false(r.ipat);
	assert_int_equal(r.type, MEMTYPE_WB);
}

static void permissions_of_all_levels(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned level = 1; level <= 4; level++) {
		u64 *entry = entry12(L2, level);

		*entry &= ~EPT_WRITE;
		assert_int_equal(walk(L2, READ), EPT12_OK);
		assert_int_equal(r.perm, EPT_READ | EPT_EXEC);
		assert_int_equal(walk(L2, WRITE | LINEAR), EPT12_VIOLATION);
		assert_int_equal(r.qual, WRITE | LINEAR | EPT_QUAL_PERM(EPT_READ | EPT_EXEC));
		*entry |= EPT_WRITE;
	}
	*entry12(L2, 1) &= ~(EPT_READ | EPT_WRITE);
	assert_int_equal(walk(L2, FETCH), EPT12_OK);
	assert_int_equal(walk(L2, READ), EPT12_VIOLATION);
	assert_int_equal(r.qual, READ | EPT_QUAL_PERM(EPT_EXEC));
}

static void absent_at_each_level(void **state)
{
	(void)state;
	for (unsigned level = 1; level <= 4; level++) {
		u64 base = L2 + level * BIT(39);

		map12(base, 0x3000, 1, RWX_WB);
		*entry12(base, level) &= ~EPT_RWX; /* all other bits are ignored then */
		*entry12(base, level) |= BIT(51) | EPT_TYPE(7);
		assert_int_equal(walk(base, READ | LINEAR | EPT_QUAL_NMI_UNBLOCK | BIT(9)), EPT12_VIOLATION);
		assert_int_equal(r.qual, READ | LINEAR | EPT_QUAL_NMI_UNBLOCK);
		assert_int_equal(r.level, level);
		assert_int_equal(r.perm, 0);
	}
	assert_int_equal(walk(BIT(48), READ), EPT12_VIOLATION);
	assert_int_equal(walk(BIT(52) + L2, FETCH), EPT12_VIOLATION);
}

static void misconfigured(u64 *entry, u64 value)
{
	u64 old = *entry;

	*entry = value;
	if (walk(L2, READ) != EPT12_MISCONFIG)
		fail_msg("entry %#lx passes", value);
	/* wins over a missing permission */
	*entry12(L2, 4) &= ~EPT_WRITE;
	if (entry != entry12(L2, 4))
		assert_int_equal(walk(L2, WRITE), EPT12_MISCONFIG);
	*entry12(L2, 4) |= EPT_WRITE;
	*entry = old;
	assert_int_equal(walk(L2, READ), EPT12_OK);
}

static void misconfigured_permissions(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned level = 1; level <= 4; level++) {
		u64 *entry = entry12(L2, level), rest = *entry & ~EPT_RWX;

		misconfigured(entry, rest | EPT_WRITE);
		misconfigured(entry, rest | EPT_WRITE | EPT_EXEC);
		e.ept_vpid &= ~EPT_CAP_EXEC_ONLY;
		misconfigured(entry, rest | EPT_EXEC);
		e.ept_vpid |= EPT_CAP_EXEC_ONLY;
	}
}

static void misconfigured_reserved_bits(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned level = 1; level <= 4; level++)
		for (unsigned bit = PHYS_BITS; bit < 52; bit++)
			misconfigured(entry12(L2, level), *entry12(L2, level) | BIT(bit));
	for (unsigned level = 2; level <= 4; level++)
		for (unsigned bit = 3; bit < 7; bit++)
			misconfigured(entry12(L2, level), *entry12(L2, level) | BIT(bit));
	misconfigured(entry12(L2, 4), *entry12(L2, 4) | BIT(7));
	for (unsigned bit = 12; bit < 21; bit++)
		misconfigured(entry12(L2, 2), RWX_WB | EPT_LARGE | BIT(bit));
	for (unsigned bit = 12; bit < 30; bit++)
		misconfigured(entry12(L2, 3), RWX_WB | EPT_LARGE | BIT(bit));
}

static void misconfigured_leaves(void **state)
{
	static const u64 bad_types[] = {2, 3, 7};

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned level = 1; level <= 3; level++)
		for (size_t i = 0; i < ARRAY_SIZE(bad_types); i++)
			misconfigured(entry12(L2, level),
				      EPT_RWX | EPT_TYPE(bad_types[i]) | (level > 1 ? EPT_LARGE : 0));
	e.ept_vpid &= ~(EPT_CAP_2M | EPT_CAP_1G);
	misconfigured(entry12(L2, 2), RWX_WB | EPT_LARGE);
	misconfigured(entry12(L2, 3), RWX_WB | EPT_LARGE);
	/* ignored bits are no fault */
	*entry12(L2, 1) |= BIT(10) | BIT(11) | BIT(52) | BIT(63);
	*entry12(L2, 2) |= BIT(11) | BIT(62);
	assert_int_equal(walk(L2, READ), EPT12_OK);
	/* what the walk does not reach causes nothing */
	*entry12(L2, 2) &= ~EPT_RWX;
	*entry12(L2 + PAGE_SIZE, 1) = ~0ull;
	assert_int_equal(walk(L2, READ), EPT12_VIOLATION);
}

/* NE-09: tables outside of L1's memory read as all ones. */
static void tables_outside_ram(void **state)
{
	(void)state;
	e.eptp = 0xfee00000 | EPTP_WALK4 | MEMTYPE_WB;
	assert_int_equal(walk(L2, READ), EPT12_MISCONFIG);
	e.eptp = EPT12_ROOT | EPTP_WALK4 | MEMTYPE_WB;
	map12(L2, 0x3000, 1, RWX_WB);
	*entry12(L2, 3) = BIT(39) | EPT_RWX;
	assert_int_equal(walk(L2, READ), EPT12_MISCONFIG);
}

/* SE-06: without flags in the EPTP not a bit changes; with them bits 8 and, for a write, 9 of the leaf. */
static void accessed_and_dirty(void **state)
{
	u64 before[5];

	(void)state;
	map12(L2, 0x3000, 1, RWX_WB);
	for (unsigned level = 1; level <= 4; level++)
		before[level] = *entry12(L2, level);
	assert_int_equal(walk(L2, WRITE), EPT12_OK);
	for (unsigned level = 1; level <= 4; level++)
		assert_int_equal(*entry12(L2, level), before[level]);
	e.eptp |= EPTP_AD;
	assert_int_equal(walk(L2, 0), EPT12_OK); /* a peek */
	assert_int_equal(*entry12(L2, 4), before[4]);
	assert_false(r.dirty);
	assert_int_equal(walk(L2, READ), EPT12_OK);
	for (unsigned level = 1; level <= 4; level++)
		assert_int_equal(*entry12(L2, level), before[level] | EPT_ACCESSED);
	assert_false(r.dirty);
	assert_int_equal(walk(L2, READ | WRITE), EPT12_OK);
	assert_int_equal(*entry12(L2, 1), before[1] | EPT_ACCESSED | EPT_DIRTY);
	assert_int_equal(*entry12(L2, 2), before[2] | EPT_ACCESSED);
	assert_true(r.dirty);
}

static void flags_only_when_allowed(void **state)
{
	(void)state;
	e.eptp |= EPTP_AD;
	map12(L2, 0x3000, 1, EPT_READ | WB);
	assert_int_equal(walk(L2, WRITE), EPT12_VIOLATION);
	assert_int_equal(*entry12(L2, 1) & (EPT_ACCESSED | EPT_DIRTY), 0);
	assert_int_equal(*entry12(L2, 4) & EPT_ACCESSED, 0);
	map12(L2 + 2 * MIB, 2 * MIB, 2, RWX_WB);
	assert_int_equal(walk(L2 + 2 * MIB, WRITE), EPT12_OK);
	assert_int_equal(*entry12(L2 + 2 * MIB, 2) & (EPT_ACCESSED | EPT_DIRTY), EPT_ACCESSED | EPT_DIRTY);
}

/* A walk of L2's own tables is a write with flags, a read without. */
static void flags_make_table_walks_writes(void **state)
{
	const u64 table_walk = EPT_QUAL_LINEAR;

	(void)state;
	map12(L2, 0x3000, 1, EPT_READ | WB);
	assert_int_equal(walk(L2, READ | table_walk), EPT12_OK);
	e.eptp |= EPTP_AD;
	assert_int_equal(walk(L2, READ | LINEAR), EPT12_OK);
	assert_int_equal(walk(L2, READ), EPT12_OK); /* no walk: a load of PDPTEs */
	assert_int_equal(walk(L2, READ | table_walk), EPT12_VIOLATION);
	assert_int_equal(r.qual, READ | WRITE | table_walk | EPT_QUAL_PERM(EPT_READ));
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(walk(L2, READ | table_walk), EPT12_OK);
	assert_true(*entry12(L2, 1) & EPT_DIRTY);
}

#define SUPER (FETCH | LINEAR)
#define USER  (SUPER | EPT_QUAL_USER)

static void mode_based(void)
{
	e.eptp |= EPT12_MBE;
	e.ept_vpid |= EPT_CAP_ADVANCED;
}

/* SDM "EPT Paging Structures", "Exit Qualification for EPT Violations": bits 2 and 10 of an entry. */
static void execute_by_mode(void **state)
{
	(void)state;
	mode_based();
	map12(L2, 0x3000, 1, RWX_WB);
	assert_int_equal(walk(L2, USER), EPT12_VIOLATION);
	for (unsigned level = 1; level <= 4; level++)
		*entry12(L2, level) |= EPT_USER_EXEC;
	assert_int_equal(walk(L2, SUPER), EPT12_OK);
	assert_int_equal(walk(L2, USER), EPT12_OK);
	assert_int_equal(r.perm, EPT_RWX | EPT_USER_EXEC);
	for (unsigned level = 1; level <= 4; level++) {
		*entry12(L2, level) &= ~EPT_USER_EXEC;
		assert_int_equal(walk(L2, SUPER), EPT12_OK);
		assert_int_equal(walk(L2, READ | LINEAR | EPT_QUAL_USER), EPT12_OK);
		assert_int_equal(walk(L2, USER), EPT12_VIOLATION);
		assert_int_equal(r.qual, USER | EPT_QUAL_PERM(EPT_RWX));
		*entry12(L2, level) ^= EPT_USER_EXEC | EPT_EXEC;
		assert_int_equal(walk(L2, USER), EPT12_OK);
		assert_int_equal(r.perm, EPT_READ | EPT_WRITE | EPT_USER_EXEC);
		assert_int_equal(walk(L2, SUPER), EPT12_VIOLATION);
		assert_int_equal(r.qual, SUPER | EPT_QUAL_PERM(EPT_READ | EPT_WRITE) | BIT(6));
		*entry12(L2, level) |= EPT_EXEC;
	}
	/* without the control the bit means nothing, and a fetch is a fetch */
	e.eptp &= ~EPT12_MBE;
	*entry12(L2, 1) &= ~EPT_EXEC;
	assert_int_equal(walk(L2, USER), EPT12_VIOLATION);
	assert_int_equal(r.qual, USER | EPT_QUAL_PERM(EPT_READ | EPT_WRITE));
}

/* SDM "EPT Misconfigurations": an entry of bit 10 alone is there, as an execute-only one. */
static void user_execute_only(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, EPT_USER_EXEC | WB);
	for (unsigned level = 2; level <= 4; level++)
		*entry12(L2, level) |= EPT_USER_EXEC;
	assert_int_equal(walk(L2, USER), EPT12_VIOLATION);
	assert_int_equal(r.qual, FETCH | LINEAR);
	mode_based();
	assert_int_equal(walk(L2, USER), EPT12_OK);
	assert_int_equal(walk(L2, READ), EPT12_VIOLATION);
	assert_int_equal(r.qual, READ | BIT(6));
	e.ept_vpid &= ~EPT_CAP_EXEC_ONLY;
	assert_int_equal(walk(L2, USER), EPT12_MISCONFIG);
	*entry12(L2, 1) |= EPT_READ;
	assert_int_equal(walk(L2, USER), EPT12_OK);
	*entry12(L2, 1) ^= EPT_READ | EPT_WRITE;
	assert_int_equal(walk(L2, USER), EPT12_MISCONFIG);
}

/* What L2's own paging says of the address goes to an L1 that is offered it. */
static void advanced_information(void **state)
{
	(void)state;
	assert_int_equal(walk(L2, WRITE | LINEAR | EPT_QUAL_ADVANCED), EPT12_VIOLATION);
	assert_int_equal(r.qual, WRITE | LINEAR);
	e.ept_vpid |= EPT_CAP_ADVANCED;
	for (u64 bit = BIT(9); bit <= BIT(11); bit <<= 1) {
		assert_int_equal(walk(L2, WRITE | LINEAR | bit), EPT12_VIOLATION);
		assert_int_equal(r.qual, WRITE | LINEAR | bit);
	}
}

/* SDM "Page-Modification Logging": the first write to a page, once, in the order of the writes. */
static void dirty_pages_are_logged(void **state)
{
	u64 entry[2];
	u16 index = 1;
	struct ept12_log log = {.page = 0x9000, .index = &index};

	(void)state;
	e.eptp |= EPTP_AD;
	e.log = &log;
	map12(L2, 0x3000, 1, RWX_WB);
	map12(L2 + PAGE_SIZE, 0x4000, 1, RWX_WB);
	map12(L2 + 2 * PAGE_SIZE, 0x5000, 1, RWX_WB);
	assert_int_equal(walk(L2 + 0x123, READ), EPT12_OK);
	assert_int_equal(index, 1);
	assert_int_equal(walk(L2 + 0x123, WRITE), EPT12_OK);
	assert_int_equal(walk(L2 + 0x456, WRITE), EPT12_OK);
	assert_int_equal(index, 0);
	assert_int_equal(walk(L2 + PAGE_SIZE, WRITE), EPT12_OK);
	assert_int_equal(index, 0xffff);
	assert_true(guest_read(&mem, GPA(0x9000), entry, sizeof(entry)));
	assert_int_equal(entry[1], L2);
	assert_int_equal(entry[0], L2 + PAGE_SIZE);
	/* full: the page stays clean, other accesses go on */
	assert_int_equal(walk(L2 + 2 * PAGE_SIZE, WRITE), EPT12_LOG_FULL);
	assert_int_equal(*entry12(L2 + 2 * PAGE_SIZE, 1) & (EPT_ACCESSED | EPT_DIRTY), 0);
	assert_int_equal(walk(L2 + 2 * PAGE_SIZE, READ), EPT12_OK);
	assert_int_equal(walk(L2 + PAGE_SIZE, WRITE), EPT12_OK);
	/* without dirty flags there is nothing to log */
	e.eptp &= ~EPTP_AD;
	assert_int_equal(walk(L2 + 2 * PAGE_SIZE, WRITE), EPT12_OK);
	assert_int_equal(index, 0xffff);
}

static void suppressed_ve(void **state)
{
	(void)state;
	map12(L2, 0x3000, 1, EPT_READ | WB);
	assert_int_equal(walk(L2, WRITE), EPT12_VIOLATION);
	assert_false(r.no_ve);
	*entry12(L2, 1) |= BIT(63);
	assert_int_equal(walk(L2, WRITE), EPT12_VIOLATION);
	assert_true(r.no_ve);
	*entry12(L2, 1) = BIT(63);
	assert_int_equal(walk(L2, READ), EPT12_VIOLATION);
	assert_true(r.no_ve);
	*entry12(L2, 2) |= BIT(63); /* of an entry that names a table it means nothing */
	*entry12(L2, 1) = 0;
	assert_int_equal(walk(L2, READ), EPT12_VIOLATION);
	assert_false(r.no_ve);
}

static int teardown(void **state)
{
	(void)state;
	guest_ram_destroy(&mem);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(leaf_of_each_size, setup),
		cmocka_unit_test_setup(permissions_of_all_levels, setup),
		cmocka_unit_test_setup(absent_at_each_level, setup),
		cmocka_unit_test_setup(misconfigured_permissions, setup),
		cmocka_unit_test_setup(misconfigured_reserved_bits, setup),
		cmocka_unit_test_setup(misconfigured_leaves, setup),
		cmocka_unit_test_setup(tables_outside_ram, setup),
		cmocka_unit_test_setup(accessed_and_dirty, setup),
		cmocka_unit_test_setup(flags_only_when_allowed, setup),
		cmocka_unit_test_setup(flags_make_table_walks_writes, setup),
		cmocka_unit_test_setup(execute_by_mode, setup),
		cmocka_unit_test_setup(user_execute_only, setup),
		cmocka_unit_test_setup(advanced_information, setup),
		cmocka_unit_test_setup(dirty_pages_are_logged, setup),
		cmocka_unit_test_setup(suppressed_ve, setup),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
