/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a code address up in section .symbols: a count, {address, name offset} pairs sorted by address, then
 * the names. */
#include "hv/symbols.h"

struct symbol {
	u32 address, name; /* the image lies below 4 GiB; name: offset behind the pairs */
};

extern const char image_start[], rodata_start[];
/* Empty in the first link; tools/symbols fills them in the second. */
extern const u32 symbol_count __attribute__((weak));
extern const struct symbol symbol_table[] __attribute__((weak));
extern const char symbol_names[] __attribute__((weak));

const char *symbol_at(u64 a, u64 *offset)
{
	u32 low = 0, high;

	if (!&symbol_count || a < (uintptr_t)image_start || a >= (uintptr_t)rodata_start)
		return NULL;
	high = symbol_count;
	while (low < high) {
		u32 mid = low + (high - low) / 2;

		if (symbol_table[mid].address <= a)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	*offset = a - symbol_table[low - 1].address;
	return symbol_names + symbol_table[low - 1].name;
}
