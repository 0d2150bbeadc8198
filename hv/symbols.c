/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a code address up in section .symbols: of each function, in the order of addresses, the distance to
 * the next one and the name. Small rather than fast: only a back-trace asks. */
#include "hv/symbols.h"
#include "hv/lib.h"

extern const char rodata_start[];
/* Absent in the first link; tools/symbols makes them for the second. */
extern const u32 symbol_count __attribute__((weak));
extern const u32 symbol_first __attribute__((weak));
extern const u8 symbol_list[] __attribute__((weak));

const char *symbol_at(u64 a, u64 *offset)
{
	const u8 *entry = symbol_list;
	u64 start;

	if (!&symbol_count || a < symbol_first || a >= (uintptr_t)rodata_start)
		return NULL;
	start = symbol_first;
	for (u32 left = symbol_count; left; left--) {
		u32 size = entry[0] | (u32)entry[1] << 8;
		const char *name = (const char *)entry + 2;

		if (a < start + size || left == 1) {
			*offset = a - start;
			return name;
		}
		start += size;
		entry += 2 + strlen(name) + 1;
	}
	return NULL;
}
