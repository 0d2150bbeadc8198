/* SPDX-License-Identifier: Apache-2.0 */
/* The encoding table of VMCS12: made at compile time from hv/vmcs_fields.def. No policy, no memory of a
 * guest. */
#include "nested/vmcs12.h"
#include "nested/caps.h"

/* The capability column: which control must be allowed to be 1, as word << 5 | bit. */
enum cap_word { WORD_PIN, WORD_PROC, WORD_SEC, WORD_EXIT, WORD_ENTRY, WORD_VMFUNC, WORD_NONE };
#define CAP(word, bit)  (u8)((word) << 5 | (bit))
#define CAP_PIN(bit)    CAP(WORD_PIN, bit)
#define CAP_PROC(bit)   CAP(WORD_PROC, bit)
#define CAP_SEC(bit)    CAP(WORD_SEC, bit)
#define CAP_EXIT(bit)   CAP(WORD_EXIT, bit)
#define CAP_ENTRY(bit)  CAP(WORD_ENTRY, bit)
#define CAP_VMFUNC(bit) CAP(WORD_VMFUNC, bit)
#define ALWAYS          CAP(WORD_NONE, 0)

/*
 * SDM "Field Encoding in VMCS": bit 0 high half, 9:1 index, 11:10 type, 14:13 width, all others 0. The table
 * is indexed by width, type and five bits of index: sparse, but one load answers.
 */
#define ENC_INDEX(enc) ((enc) >> 1 & 0x1ffu)
#define ENC_WIDTH(enc) ((enc) >> 13 & 3u)
#define ENC_RESERVED   (~(u64)0x6fff)
#define INDEXES        32u
#define SLOT(enc)      (ENC_WIDTH(enc) << 7 | VMCS_ENC_TYPE(enc) << 5 | ENC_INDEX(enc))
#define SLOTS          (16 * INDEXES)
#define SHIFT_HIGH     32

#define X(w, name, enc, member, c)                                                                           \
	_Static_assert(((enc)&ENC_RESERVED) == 0 && ENC_INDEX(enc) < INDEXES, "encoding of " #name);
VMCS_FIELDS(X)
#undef X

static const struct vmcs12_field table[SLOTS] = {
#define X(w, name, enc, member, c)                                                                           \
	[SLOT(enc)] = {                                                                                      \
		.offset = offsetof(struct vmcs12, member),                                                   \
		.width = ENC_WIDTH(enc),                                                                     \
		.cap = (c),                                                                                  \
		.group = VMCS12_GROUP(enc),                                                                  \
		.read_only = VMCS_ENC_TYPE(enc) == VMCS_TYPE_INFO,                                           \
		.known = true,                                                                               \
	},
	VMCS_FIELDS(X)
#undef X
};

bool vmcs12_lookup(u64 enc, struct vmcs12_field *out)
{
	bool high = enc & 1;

	if ((enc & ENC_RESERVED) || ENC_INDEX(enc) >= INDEXES)
		return false;
	*out = table[SLOT(enc)];
	out->high = high;
	return out->known && (!high || out->width == WIDTH_64);
}

bool vmcs12_exists(const struct vmcs12_field *f, const struct vmx_caps *caps)
{
	u64 bit = BIT(f->cap & 31);

	switch ((enum cap_word)(f->cap >> 5)) {
	case WORD_PIN:
		return caps_may1(caps->true_pin) & bit;
	case WORD_PROC:
		return caps_may1(caps->true_proc) & bit;
	case WORD_SEC:
		return caps_may1(caps->sec) & bit;
	case WORD_EXIT:
		return caps_may1(caps->true_exit) & bit;
	case WORD_ENTRY:
		return caps_may1(caps->true_entry) & bit;
	case WORD_VMFUNC:
		return caps->vmfunc & bit;
	case WORD_NONE:
		break;
	}
	return true;
}

u64 vmcs12_read(const struct vmcs12 *v12, const struct vmcs12_field *f)
{
	const char *at = (const char *)v12 + f->offset;

	switch ((enum vmcs12_width)f->width) {
	case WIDTH_16:
		return *(const u16 *)(const void *)at;
	case WIDTH_32:
		return *(const u32 *)(const void *)at;
	case WIDTH_64:
	case WIDTH_NATURAL:
		break;
	}
	return *(const u64 *)(const void *)at >> (f->high ? SHIFT_HIGH : 0);
}

void vmcs12_write(struct vmcs12 *v12, const struct vmcs12_field *f, u64 value)
{
	void *at = (char *)v12 + f->offset;
	u64 *at64 = at;

	switch ((enum vmcs12_width)f->width) {
	case WIDTH_16:
		*(u16 *)at = (u16)value;
		return;
	case WIDTH_32:
		*(u32 *)at = (u32)value;
		return;
	case WIDTH_64:
	case WIDTH_NATURAL:
		break;
	}
	*at64 = f->high ? (u32)*at64 | value << SHIFT_HIGH : value;
}

u32 vmcs12_max_index(const struct vmx_caps *caps)
{
	u32 max = 0;

	for (u32 slot = 0; slot < SLOTS; slot++) {
		u32 index = slot % INDEXES;

		if (table[slot].known && index > max && vmcs12_exists(&table[slot], caps))
			max = index;
	}
	return max;
}
