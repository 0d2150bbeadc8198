/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps of VMCS shadowing: which fields L1 reaches without an exit. Pure. SDM "VMCS Shadowing Bitmap
 * Addresses". */
#include "hv/lib.h"
#include "nested/shadow.h"

static void open_field(u8 *map, u32 encoding, const struct vmx_caps *caps)
{
	struct vmcs12_field f;

	if (vmcs12_lookup(encoding, &f) && vmcs12_exists(&f, caps))
		map[SHADOW_MAP_BYTE(encoding)] &= (u8)~SHADOW_MAP_BIT(encoding);
}

void shadow_maps_fill(struct shadow_maps *maps, const struct vmx_caps *caps)
{
	static const u16 read[] = {
#define X(width, name, member) VMCS_##name,
		SHADOW_FIELDS(X)};
	static const u16 written[] = {SHADOW_WRITTEN(X)};
#undef X

	memset(maps, 0xff, sizeof(*maps));
	for (size_t i = 0; i < ARRAY_SIZE(read); i++)
		open_field(maps->read, read[i], caps);
	for (size_t i = 0; i < ARRAY_SIZE(written); i++)
		open_field(maps->write, written[i], caps);
}
