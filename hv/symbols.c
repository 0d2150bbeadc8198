/* SPDX-License-Identifier: Apache-2.0 */
/* Looks a code address up in section .symbols: of each function, in the order of addresses, the distance to
 * the next one (ULEB128) and the name in codes, of which the last has bit 7 set. A code is a letter or a pair
 * of codes. Small rather than fast: only a back-trace asks. */
#include "hv/symbols.h"

extern const char rodata_start[];
/* Absent in the first link; tools/symbols makes them for the second. */
extern const u32 symbol_count __attribute__((weak));
extern const u32 symbol_first __attribute__((weak));
extern const u8 symbol_list[] __attribute__((weak));
/* {letter, 0}, or {a code, a code + 1}; codes of a pair are smaller than its own. */
extern const u8 symbol_codes[][2] __attribute__((weak));

static const u8 *take_distance(const u8 *at, u64 *distance)
{
	*distance = 0;
	for (unsigned shift = 0;; shift += 7) {
		*distance |= (u64)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80))
			return at;
	}
}

/* A name that is too long is cut. `todo`: no deeper than there are codes, because each is made of smaller
 * ones. */
static unsigned put_code(char *name, unsigned n, u8 code)
{
	u8 todo[128], left = 0;

	todo[left++] = code;
	while (left) {
		const u8 *meaning = symbol_codes[todo[--left]];

		if (meaning[1]) {
			todo[left++] = (u8)(meaning[1] - 1);
			todo[left++] = meaning[0];
		} else if (n < SYMBOL_MAX - 1) {
			name[n++] = (char)meaning[0];
		}
	}
	return n;
}

static const u8 *take_name(const u8 *at, char *name)
{
	unsigned n = 0;

	do
		n = put_code(name, n, *at & 0x7f);
	while (!(*at++ & 0x80));
	name[n] = 0;
	return at;
}

bool symbol_at(u64 a, char name[SYMBOL_MAX], u64 *offset)
{
	const u8 *entry = symbol_list;
	u64 start, size = 0;

	if (!&symbol_count || a < symbol_first || a >= (uintptr_t)rodata_start)
		return false;
	start = symbol_first;
	for (u32 left = symbol_count; left; left--, start += size) {
		entry = take_name(take_distance(entry, &size), name);
		if (a < start + size || left == 1)
			break;
	}
	*offset = a - start;
	return true;
}
