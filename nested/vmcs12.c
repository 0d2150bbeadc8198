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
#define ENC_INDEX(enc)    ((enc) >> 1 & 0x1ffu)
#define ENC_TYPE(enc)     ((enc) >> 10 & 3u)
#define ENC_WIDTH(enc)    ((enc) >> 13 & 3u)
#define ENC_RESERVED      (~(u64)0x6fff)
#define INDEXES           32u
#define SLOT(enc)         (ENC_WIDTH(enc) << 7 | ENC_TYPE(enc) << 5 | ENC_INDEX(enc))
#define SLOTS             (16 * INDEXES)
#define TYPE_INFO         1u
#define SHIFT_HIGH        32
#define IN(enc, from, to) ((enc) >= VMCS_##from && (enc) <= VMCS_##to)

/* The clean group of a field by its encoding; the first row that fits counts. TLFS "Enlightened VMCS", column
 * "clean field". */
/* clang-format off */
#define GROUP_OF(enc) ( \
	ENC_TYPE(enc) == TYPE_INFO			? GROUP_INFO : \
	IN(enc, VPID, VPID)				? GROUP_CONTROL_XLAT : \
	IN(enc, GUEST_ES_SEL, GUEST_TR_SEL)		? GROUP_GUEST_GRP2 : \
	IN(enc, GUEST_INTR_STATUS, GUEST_INTR_STATUS)	? GROUP_LIVE : \
	IN(enc, HOST_ES_SEL, HOST_TR_SEL)		? GROUP_HOST_GRP1 : \
	IN(enc, IO_BITMAP_A, IO_BITMAP_B)		? GROUP_IO_BITMAP : \
	IN(enc, MSR_BITMAP, MSR_BITMAP)			? GROUP_MSR_BITMAP : \
	IN(enc, TSC_OFFSET, VIRTUAL_APIC)		? GROUP_CONTROL_GRP2 : \
	IN(enc, EPTP, EPTP)				? GROUP_CONTROL_XLAT : \
	IN(enc, XSS_EXITING_BITMAP, TSC_MULTIPLIER)	? GROUP_CONTROL_GRP2 : \
	IN(enc, LINK_POINTER, GUEST_BNDCFGS)		? GROUP_GUEST_GRP1 : \
	IN(enc, HOST_PAT, HOST_PERF_GLOBAL_CTRL)	? GROUP_HOST_GRP1 : \
	IN(enc, PIN_CTL, PIN_CTL)			? GROUP_CONTROL_GRP1 : \
	IN(enc, PROC_CTL, PROC_CTL)			? GROUP_CONTROL_PROC : \
	IN(enc, EXCEPTION_BITMAP, EXCEPTION_BITMAP)	? GROUP_CONTROL_EXCPN : \
	IN(enc, EXIT_CTL, EXIT_CTL)			? GROUP_CONTROL_GRP1 : \
	IN(enc, ENTRY_CTL, ENTRY_CTL)			? GROUP_CONTROL_ENTRY : \
	IN(enc, ENTRY_INTR_INFO, ENTRY_INSN_LEN)	? GROUP_CONTROL_EVENT : \
	IN(enc, TPR_THRESHOLD, TPR_THRESHOLD)		? GROUP_LIVE : \
	IN(enc, SEC_CTL, SEC_CTL)			? GROUP_CONTROL_GRP1 : \
	IN(enc, GUEST_ES_LIMIT, GUEST_TR_AR)		? GROUP_GUEST_GRP2 : \
	IN(enc, GUEST_INTR_STATE, GUEST_INTR_STATE)	? GROUP_GUEST_BASIC : \
	IN(enc, GUEST_ACTIVITY, GUEST_ACTIVITY)		? GROUP_GUEST_GRP1 : \
	IN(enc, GUEST_SYSENTER_CS, GUEST_SYSENTER_CS)	? GROUP_GUEST_GRP1 : \
	IN(enc, PREEMPT_TIMER, PREEMPT_TIMER)		? GROUP_LIVE : \
	IN(enc, HOST_SYSENTER_CS, HOST_SYSENTER_CS)	? GROUP_HOST_GRP1 : \
	IN(enc, CR0_MASK, CR4_SHADOW)			? GROUP_CRDR : \
	IN(enc, GUEST_CR0, GUEST_CR4)			? GROUP_CRDR : \
	IN(enc, GUEST_ES_BASE, GUEST_IDTR_BASE)		? GROUP_GUEST_GRP2 : \
	IN(enc, GUEST_DR7, GUEST_DR7)			? GROUP_CRDR : \
	IN(enc, GUEST_RSP, GUEST_RSP)			? GROUP_GUEST_BASIC : \
	IN(enc, GUEST_RIP, GUEST_RIP)			? GROUP_LIVE : \
	IN(enc, GUEST_RFLAGS, GUEST_RFLAGS)		? GROUP_GUEST_BASIC : \
	IN(enc, GUEST_PENDING_DBG, GUEST_S_CET)		? GROUP_GUEST_GRP1 : \
	IN(enc, GUEST_SSP, GUEST_SSP)			? GROUP_GUEST_BASIC : \
	IN(enc, GUEST_SSP_TABLE, GUEST_SSP_TABLE)	? GROUP_GUEST_GRP1 : \
	IN(enc, HOST_CR0, HOST_CR4)			? GROUP_HOST_GRP1 : \
	IN(enc, HOST_FS_BASE, HOST_IDTR_BASE)		? GROUP_HOST_POINTER : \
	IN(enc, HOST_SYSENTER_ESP, HOST_SYSENTER_EIP)	? GROUP_HOST_GRP1 : \
	IN(enc, HOST_RSP, HOST_RSP)			? GROUP_HOST_POINTER : \
	IN(enc, HOST_RIP, HOST_SSP_TABLE)		? GROUP_HOST_GRP1 : \
	GROUP_OTHER)
/* clang-format on */

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
		.group = GROUP_OF(enc),                                                                      \
		.read_only = ENC_TYPE(enc) == TYPE_INFO,                                                     \
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
