/* SPDX-License-Identifier: Apache-2.0 */
/* A decoded instruction is used again only while the way to it and its bytes read the same. */
/* SOURCES: hv/insn_memo.c hv/insn_decode.c mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c */
/* SOURCES: mm/memmap.c mm/ept.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "hv/insn_memo.h"
#include "hv/x86.h"
#include "tests/unit/guest_ram.h"

#define TABLES 0x110000u /* four pages: one table a level */
#define CODE   0x200000u
#define RIP    0x123u

static struct l1mem mem;
static struct insn_memo memos[INSN_MEMOS];
static const u8 load[INSN_MEMO_BYTES] = {0x8b, 0x07}; /* mov (%rdi), %eax */
static const u8 store[INSN_MEMO_BYTES] = {0x89, 0x07};

static const struct insn_key key = {.rip = RIP,
				    .cr3 = TABLES,
				    .cr4 = CR4_PAE,
				    .efer = EFER_LMA | EFER_LME,
				    .rights = 0xc093ull << 32 | 0xa09b};

static void put_entry(unsigned level, u64 entry)
{
	guest_write(&mem, GPA(TABLES + level * PAGE_SIZE), &entry, 8);
}

static int setup(void **state)
{
	(void)state;
	guest_ram_create(&mem, 8 * MIB);
	for (unsigned level = 0; level < 3; level++)
		put_entry(level, (TABLES + (level + 1) * PAGE_SIZE) | 0x23);
	put_entry(3, CODE | 0x63);
	guest_write(&mem, GPA(CODE + RIP), load, sizeof(load));
	for (unsigned i = 0; i < INSN_MEMOS; i++)
		memos[i] = (struct insn_memo){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	guest_ram_destroy(&mem);
	return 0;
}

/* What hv/exit_mem does with an instruction that is not known. */
static bool learn(const struct insn_key *k, const u8 *bytes)
{
	struct insn_memo *memo = insn_memo_begin(memos, k, &mem);
	struct insn i;

	if (!memo)
		return false;
	assert_int_equal(insn_decode(bytes, INSN_MEMO_BYTES, 64, &i), INSN_OK);
	insn_memo_end(memo, k, bytes, &i);
	return true;
}

static void test_found_again(void **state)
{
	const struct insn *i;

	(void)state;
	assert_null(insn_memo_find(memos, &key));
	assert_true(learn(&key, load));
	i = insn_memo_find(memos, &key);
	assert_non_null(i);
	assert_int_equal(i->op, INSN_MOV);
	assert_int_equal(i->form, INSN_REG_MEM);
	assert_int_equal(i->length, 2);
}

/* Nothing that decides the fetch may differ. */
static void test_other_state(void **state)
{
	struct insn_key k[5] = {key, key, key, key, key};

	(void)state;
	assert_true(learn(&key, load));
	k[0].rip += PAGE_SIZE;
	k[1].cr3 += PAGE_SIZE;
	k[2].cr4 |= CR4_SMEP;
	k[3].efer |= EFER_NXE;
	k[4].rights |= 0x60ull << 32; /* CPL 3 */
	for (unsigned i = 0; i < ARRAY_SIZE(k); i++)
		assert_null(insn_memo_find(memos, &k[i]));
	assert_non_null(insn_memo_find(memos, &key));
}

static void test_changed_bytes(void **state)
{
	(void)state;
	assert_true(learn(&key, load));
	guest_write(&mem, GPA(CODE + RIP), store, sizeof(store));
	assert_null(insn_memo_find(memos, &key));
	assert_true(learn(&key, store));
	assert_int_equal(insn_memo_find(memos, &key)->form, INSN_MEM_REG);
}

/* Any bit of any entry on the way: the address, permissions, presence. */
static void test_changed_entry(void **state)
{
	(void)state;
	for (unsigned level = 0; level < 4; level++)
		for (unsigned bit = 0; bit < 64; bit++) {
			u64 good = level < 3 ? (TABLES + (level + 1) * PAGE_SIZE) | 0x23 : CODE | 0x63;

			put_entry(level, good);
			assert_true(learn(&key, load));
			put_entry(level, good ^ BIT(bit));
			assert_null(insn_memo_find(memos, &key));
			put_entry(level, good);
			assert_non_null(insn_memo_find(memos, &key));
		}
}

/* The way changes while the instruction is being decoded: not kept. */
static void test_change_in_between(void **state)
{
	struct insn_memo *memo = insn_memo_begin(memos, &key, &mem);
	struct insn i;

	(void)state;
	assert_non_null(memo);
	insn_decode(load, INSN_MEMO_BYTES, 64, &i);
	put_entry(3, CODE | 0x61);
	insn_memo_end(memo, &key, load, &i);
	assert_null(insn_memo_find(memos, &key));
	put_entry(3, CODE | 0x63);
	assert_null(insn_memo_find(memos, &key));
}

static void test_not_kept(void **state)
{
	struct insn_key k = key;

	(void)state;
	k.rip = PAGE_SIZE - INSN_MEMO_BYTES + 1; /* reaches into the next page */
	assert_false(learn(&k, load));
	k = key;
	k.rights = 0xc093ull << 32 | 0xc09b; /* no 64-bit code */
	assert_false(learn(&k, load));
	k = key;
	k.cr3 = 1ull << 40; /* tables outside of RAM */
	assert_false(learn(&k, load));
	k = key;
	put_entry(3, 0xfec00063); /* code on a device page */
	assert_false(learn(&k, load));
	put_entry(2, (CODE & ~0x1fffffull) | 0xe3); /* a 2M page */
	guest_write(&mem, GPA(CODE + RIP), load, sizeof(load));
	assert_true(learn(&k, load));
	assert_non_null(insn_memo_find(memos, &k));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_found_again),   TEST(test_other_state),       TEST(test_changed_bytes),
		TEST(test_changed_entry), TEST(test_change_in_between), TEST(test_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
