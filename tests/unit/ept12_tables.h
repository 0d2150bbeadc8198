/* SPDX-License-Identifier: Apache-2.0 */
/* An EPT that an L1 would build in its own memory, written straight into the guest's RAM. For the tests of
 * the walk and the shadow. */
#ifndef NIDUS_TESTS_UNIT_EPT12_TABLES_H
#define NIDUS_TESTS_UNIT_EPT12_TABLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "mm/ept.h"
#include "nested/caps.h"
#include "nested/ept12.h"
#include "tests/unit/guest_ram.h"

#define RAM         (16 * MIB)
#define PHYS_BITS   40
#define EPT12_ROOT  0x100000ull
#define EPT12_TOP   0x200000ull /* tables from here on */
#define ALL_EPT_CAP 0x00000f0106334141ull
#define WB          EPT_TYPE(MEMTYPE_WB)
#define RWX_WB      (EPT_RWX | WB)

static struct l1mem mem;
static u64 next_table;

static void (*before_write)(u64 gpa); /* what hardware does when L1 writes to a table */

/* Somebody is going to write there, as far as anyone can tell. */
static inline u64 *slot_at(u64 table, u64 addr, unsigned level)
{
	hpa_t hpa;

	if (before_write)
		before_write(table);

	assert_true(l1mem_translate(&mem, GPA(table + EPT_INDEX(addr, level) * 8), &hpa, NULL));
	return hpa_ptr(hpa);
}

static inline void tables_clear(void)
{
	guest_zero(&mem, GPA(EPT12_ROOT), EPT12_TOP + 64 * PAGE_SIZE - EPT12_ROOT);
	next_table = EPT12_TOP;
}

/* The entry for `addr` at `level`; makes tables that allow everything on the way. */
static inline u64 *entry12(u64 addr, unsigned level)
{
	u64 table = EPT12_ROOT;

	for (unsigned l = EPT_LEVELS; l > level; l--) {
		u64 *slot = slot_at(table, addr, l);

		if (!*slot) {
			*slot = next_table | EPT_RWX;
			next_table += PAGE_SIZE;
		}
		table = *slot & EPT_ADDR_MASK;
	}
	return slot_at(table, addr, level);
}

static inline void map12(u64 addr, u64 gpa, unsigned level, u64 flags)
{
	*entry12(addr, level) = gpa | flags | (level > 1 ? EPT_LARGE : 0);
}

#endif
