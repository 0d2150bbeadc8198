/* SPDX-License-Identifier: Apache-2.0 */
/* See hv/static_key.h. */
#include "hv/static_key.h"
#include "hv/lib.h"
#include "hv/panic.h"

/* SDM "Recommended Multi-Byte Sequence of NOP Instruction", by length. */
static const u8 nop[STATIC_SITE_MAX + 1][STATIC_SITE_MAX] = {
	{0},
	{0x90},
	{0x66, 0x90},
	{0x0f, 0x1f, 0x00},
	{0x0f, 0x1f, 0x40, 0x00},
	{0x0f, 0x1f, 0x44, 0x00, 0x00},
};

unsigned static_site_nops(const struct static_site *s, u8 nops[STATIC_SITE_MAX])
{
	if (s->key >= STATIC_KEYS || s->length > STATIC_SITE_MAX)
		return 0;
	for (unsigned i = 0; i < s->length; i++)
		nops[i] = nop[s->length][i];
	return s->length;
}

extern char image_start[], rodata_start[];
extern const struct static_site static_key_start[], static_key_end[];

/* No other CPU runs yet, and this one serialises on its way to the first site (IRET, MOV to CR). */
void static_keys_set(u32 on)
{
	for (const struct static_site *s = static_key_start; s < static_key_end; s++) {
		u8 nops[STATIC_SITE_MAX];
		unsigned length = static_site_nops(s, nops);

		BUG_ON(!length || s->at < (uintptr_t)image_start || s->at + length > (uintptr_t)rodata_start);
		if (!(on >> s->key & 1))
			memcpy(hpa_ptr(HPA(s->at)), nops, length);
	}
}
