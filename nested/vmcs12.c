/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding table of VMCS12: made at compile time from hv/vmcs_fields.def. No policy, no memory of a
 * guest. */
#include "nested/vmcs12.h"

/* The capability column: the bit of struct vmx_caps, read as one long word, that is 1 when the field exists.
 */
#define CAP(msr, bit)   (u16)(offsetof(struct vmx_caps, msr) * 8 + (bit))
#define MAY1(msr, bit)  CAP(msr, 32 + (bit))
#define CAP_PIN(bit)    MAY1(true_pin, bit)
#define CAP_PROC(bit)   MAY1(true_proc, bit)
#define CAP_SEC(bit)    MAY1(sec, bit)
#define CAP_EXIT(bit)   MAY1(true_exit, bit)
#define CAP_ENTRY(bit)  MAY1(true_entry, bit)
#define CAP_VMFUNC(bit) CAP(vmfunc, bit)
#define ALWAYS          VMCS12_CAP_ALWAYS

#define X(w, name, enc, member, c)                                                                           \
	_Static_assert(((enc)&VMCS12_ENC_RESERVED) == 0 && sizeof(((struct vmcs12 *)0)->member) <= 8 &&      \
			       offsetof(struct vmcs12, member) + 8 <= sizeof(struct vmcs12),                 \
		       "encoding and place of " #name);
VMCS_FIELDS(X)
#undef X

enum place {
	PLACE_NONE,
#define X(w, name, enc, member, c) PLACE_##name,
	VMCS_FIELDS(X)
#undef X
		PLACES
};
_Static_assert(PLACES <= 256, "one byte");

const u8 vmcs12_places[VMCS12_SLOTS] = {
#define X(w, name, enc, member, c) [VMCS12_SLOT(enc)] = PLACE_##name,
	VMCS_FIELDS(X)
#undef X
};

const struct vmcs12_field vmcs12_table[] = {
#define X(w, name, enc, member, c)                                                                           \
	[PLACE_##name] = {                                                                                   \
		.offset = offsetof(struct vmcs12, member),                                                   \
		.cap = (c),                                                                                  \
		.width = FIELD_WIDTH(enc),                                                                   \
		.group = VMCS12_GROUP(enc),                                                                  \
		.read_only = VMCS_ENC_TYPE(enc) == VMCS_TYPE_INFO,                                           \
	},
	VMCS_FIELDS(X)
#undef X
};

u32 vmcs12_max_index(const struct vmx_caps *caps)
{
	u32 max = 0;

	for (u32 slot = 0; slot < VMCS12_SLOTS; slot++) {
		u32 index = slot % VMCS12_INDEXES;

		if (vmcs12_places[slot] && index > max &&
		    vmcs12_exists(&vmcs12_table[vmcs12_places[slot]], caps))
			max = index;
	}
	return max;
}
