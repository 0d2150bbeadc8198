/* SPDX-License-Identifier: Apache-2.0 */
/* Builder of EPT tables. SDM "EPT Translation Mechanism". */
#include "ept.h"
#include "page.h"

#define ADDRESS 0x000ffffffffff000ull

u64 ept_new(void)
{
	return addr_of(page_alloc());
}

u64 ept_pointer(u64 root)
{
	return root | EPTP_WB | EPTP_WALK_4;
}

static void split(u64 *entry, u64 child_size)
{
	u64 old = *entry;
	u64 *table = page_alloc();

	if (child_size == PAGE_SIZE)
		old &= ~EPT_LARGE;
	for (u64 i = 0; i < 512; i++)
		table[i] = old + i * child_size;
	*entry = addr_of(table) | EPT_RWX;
}

u64 *ept_entry(u64 root, u64 gpa, u64 page_size)
{
	u64 *table = ptr_to(root);

	for (u32 shift = 39;; shift -= 9) {
		u64 *entry = &table[gpa >> shift & 511];

		if (BIT(shift) == page_size)
			return entry;
		if ((*entry & EPT_RWX) && (*entry & EPT_LARGE))
			split(entry, BIT(shift - 9));
		else if (!*entry)
			*entry = addr_of(page_alloc()) | EPT_RWX;
		table = ptr_to(*entry & ADDRESS);
	}
}

void ept_map(u64 root, u64 gpa, u64 pa, u64 page_size, u64 flags)
{
	*ept_entry(root, gpa, page_size) = pa | flags | (page_size > PAGE_SIZE ? EPT_LARGE : 0);
}

u64 ept_identity(u64 limit, u64 page_size)
{
	u64 root = ept_new();

	for (u64 at = 0; at < limit; at += page_size)
		ept_map(root, at, at, page_size, EPT_RWX | EPT_WB);
	return root;
}
