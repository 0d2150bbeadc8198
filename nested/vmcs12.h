/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMCS12: the VMCS an L1 hypervisor believes in, as L0 keeps it, and the table from field encoding to member.
 * Everything is made from hv/vmcs_fields.def. Pure: nothing here touches hardware or guest memory.
 */
#ifndef NIDUS_NESTED_VMCS12_H
#define NIDUS_NESTED_VMCS12_H

#include "hv/types.h"
#include "hv/vmcs.h"
#include "nested/caps.h"

/* VMX_BASIC bits 30:0 as L1 sees it. Changes whenever the layout below does, so that a page of another
 * version is refused. */
#define VMCS12_REVISION 0x4e494401u

typedef u16 vmcs12_16;
typedef u32 vmcs12_32;
typedef u64 vmcs12_64;
typedef u64 vmcs12_NW;

/* One member for each field, in the order of the list. */
struct vmcs12 {
#define X(width, name, enc, member, cap) vmcs12_##width member;
	VMCS_FIELDS(X)
#undef X
};

/*
 * Groups of fields that change together: dirtiness is kept for each (BIT32(group)). 0-15 are the clean fields
 * of the enlightened VMCS, TLFS "Enlightened VMCS", by their bit number; the others hold what the TLFS gives
 * no clean bit.
 */
enum vmcs12_group {
	GROUP_IO_BITMAP,
	GROUP_MSR_BITMAP,
	GROUP_CONTROL_GRP2,
	GROUP_CONTROL_GRP1,
	GROUP_CONTROL_PROC,
	GROUP_CONTROL_EVENT,
	GROUP_CONTROL_ENTRY,
	GROUP_CONTROL_EXCPN,
	GROUP_CRDR,
	GROUP_CONTROL_XLAT,
	GROUP_GUEST_BASIC,
	GROUP_GUEST_GRP1,
	GROUP_GUEST_GRP2,
	GROUP_HOST_POINTER,
	GROUP_HOST_GRP1,
	GROUP_ENLIGHTENMENTS,
	GROUP_LIVE,  /* changes for nearly every entry: RIP, TPR threshold, preemption timer, guest interrupt
			status */
	GROUP_OTHER, /* MSR lists, CR3 targets, #PF mask and match, and all fields the enlightened VMCS lacks
		      */
	GROUP_INFO,  /* exit information: no entry reads it */
	GROUPS,
};
#define GROUPS_ALL (BIT32(GROUPS) - 1)

/* SDM "Field Encoding in VMCS", bits 11:10. */
#define VMCS_ENC_TYPE(enc) ((enc) >> 10 & 3u)
#define VMCS_TYPE_INFO     1u
#define VMCS_TYPE_GUEST    2u

#define VMCS_IN(enc, from, to) ((enc) >= VMCS_##from && (enc) <= VMCS_##to)

/* The clean group of a field by its encoding; the first row that fits counts. TLFS "Enlightened VMCS", column
 * "clean field". */
/* clang-format off */
#define VMCS12_GROUP(enc) ( \
	VMCS_ENC_TYPE(enc) == VMCS_TYPE_INFO			? GROUP_INFO : \
	VMCS_IN(enc, VPID, VPID)				? GROUP_CONTROL_XLAT : \
	VMCS_IN(enc, GUEST_ES_SEL, GUEST_TR_SEL)		? GROUP_GUEST_GRP2 : \
	VMCS_IN(enc, GUEST_INTR_STATUS, GUEST_INTR_STATUS)	? GROUP_LIVE : \
	VMCS_IN(enc, HOST_ES_SEL, HOST_TR_SEL)		? GROUP_HOST_GRP1 : \
	VMCS_IN(enc, IO_BITMAP_A, IO_BITMAP_B)		? GROUP_IO_BITMAP : \
	VMCS_IN(enc, MSR_BITMAP, MSR_BITMAP)			? GROUP_MSR_BITMAP : \
	VMCS_IN(enc, TSC_OFFSET, VIRTUAL_APIC)		? GROUP_CONTROL_GRP2 : \
	VMCS_IN(enc, EPTP, EPTP)				? GROUP_CONTROL_XLAT : \
	VMCS_IN(enc, XSS_EXITING_BITMAP, TSC_MULTIPLIER)	? GROUP_CONTROL_GRP2 : \
	VMCS_IN(enc, LINK_POINTER, GUEST_BNDCFGS)		? GROUP_GUEST_GRP1 : \
	VMCS_IN(enc, HOST_PAT, HOST_PERF_GLOBAL_CTRL)	? GROUP_HOST_GRP1 : \
	VMCS_IN(enc, PIN_CTL, PIN_CTL)			? GROUP_CONTROL_GRP1 : \
	VMCS_IN(enc, PROC_CTL, PROC_CTL)			? GROUP_CONTROL_PROC : \
	VMCS_IN(enc, EXCEPTION_BITMAP, EXCEPTION_BITMAP)	? GROUP_CONTROL_EXCPN : \
	VMCS_IN(enc, EXIT_CTL, EXIT_CTL)			? GROUP_CONTROL_GRP1 : \
	VMCS_IN(enc, ENTRY_CTL, ENTRY_CTL)			? GROUP_CONTROL_ENTRY : \
	VMCS_IN(enc, ENTRY_INTR_INFO, ENTRY_INSN_LEN)	? GROUP_CONTROL_EVENT : \
	VMCS_IN(enc, TPR_THRESHOLD, TPR_THRESHOLD)		? GROUP_LIVE : \
	VMCS_IN(enc, SEC_CTL, SEC_CTL)			? GROUP_CONTROL_GRP1 : \
	VMCS_IN(enc, GUEST_ES_LIMIT, GUEST_TR_AR)		? GROUP_GUEST_GRP2 : \
	VMCS_IN(enc, GUEST_INTR_STATE, GUEST_INTR_STATE)	? GROUP_GUEST_BASIC : \
	VMCS_IN(enc, GUEST_ACTIVITY, GUEST_ACTIVITY)		? GROUP_GUEST_GRP1 : \
	VMCS_IN(enc, GUEST_SYSENTER_CS, GUEST_SYSENTER_CS)	? GROUP_GUEST_GRP1 : \
	VMCS_IN(enc, PREEMPT_TIMER, PREEMPT_TIMER)		? GROUP_LIVE : \
	VMCS_IN(enc, HOST_SYSENTER_CS, HOST_SYSENTER_CS)	? GROUP_HOST_GRP1 : \
	VMCS_IN(enc, CR0_MASK, CR4_SHADOW)			? GROUP_CRDR : \
	VMCS_IN(enc, GUEST_CR0, GUEST_CR4)			? GROUP_CRDR : \
	VMCS_IN(enc, GUEST_ES_BASE, GUEST_IDTR_BASE)		? GROUP_GUEST_GRP2 : \
	VMCS_IN(enc, GUEST_DR7, GUEST_DR7)			? GROUP_CRDR : \
	VMCS_IN(enc, GUEST_RSP, GUEST_RSP)			? GROUP_GUEST_BASIC : \
	VMCS_IN(enc, GUEST_RIP, GUEST_RIP)			? GROUP_LIVE : \
	VMCS_IN(enc, GUEST_RFLAGS, GUEST_RFLAGS)		? GROUP_GUEST_BASIC : \
	VMCS_IN(enc, GUEST_PENDING_DBG, GUEST_S_CET)		? GROUP_GUEST_GRP1 : \
	VMCS_IN(enc, GUEST_SSP, GUEST_SSP)			? GROUP_GUEST_BASIC : \
	VMCS_IN(enc, GUEST_SSP_TABLE, GUEST_SSP_TABLE)	? GROUP_GUEST_GRP1 : \
	VMCS_IN(enc, HOST_CR0, HOST_CR4)			? GROUP_HOST_GRP1 : \
	VMCS_IN(enc, HOST_FS_BASE, HOST_IDTR_BASE)		? GROUP_HOST_POINTER : \
	VMCS_IN(enc, HOST_SYSENTER_ESP, HOST_SYSENTER_EIP)	? GROUP_HOST_GRP1 : \
	VMCS_IN(enc, HOST_RSP, HOST_RSP)			? GROUP_HOST_POINTER : \
	VMCS_IN(enc, HOST_RIP, HOST_SSP_TABLE)		? GROUP_HOST_GRP1 : \
	GROUP_OTHER)
/* clang-format on */

/* Widths as in encoding bits 14:13. */
enum vmcs12_width { WIDTH_16, WIDTH_64, WIDTH_32, WIDTH_NATURAL };

struct vmcs12_field {
	u16 offset; /* of the member in struct vmcs12 */
	u16 cap;    /* bit of struct vmx_caps that makes the field exist, or VMCS12_CAP_ALWAYS; 0: no field */
	u8 width;   /* enum vmcs12_width */
	u8 group;   /* enum vmcs12_group */
	bool read_only; /* exit information: VMWRITE only with VMX_MISC bit 29 */
	bool high;      /* (of a copy) the encoding names bits 63:32 of a 64-bit field */
};
#define VMCS12_CAP_ALWAYS 1u /* a bit of VMX_BASIC's revision, which no field depends on */

/*
 * SDM "Field Encoding in VMCS": bit 0 high half, 9:1 index, 11:10 type, 14:13 width, all others 0. The table
 * is found by width, type and five bits of index.
 */
#define VMCS12_INDEXES      32u
#define VMCS12_SLOTS        (16 * VMCS12_INDEXES)
#define VMCS12_SLOT(enc)    (FIELD_WIDTH(enc) << 7 | VMCS_ENC_TYPE(enc) << 5 | ((enc) >> 1 & 31u))
#define VMCS12_ENC_RESERVED (~(u64)0x6c3f)
#define VMCS12_ENC_HIGH     BIT(0)
extern const u8
	vmcs12_places[VMCS12_SLOTS]; /* index in vmcs12_table; 0, where the table holds nothing: no field */
extern const struct vmcs12_field vmcs12_table[];

static inline const struct vmcs12_field *vmcs12_entry(u64 enc)
{
	return &vmcs12_table[vmcs12_places[VMCS12_SLOT((u32)enc)]];
}

/* Constant time. False: no such field in any capability set (error 12). `enc` is the whole register operand
 * of VMREAD or VMWRITE. */
static inline bool vmcs12_lookup(u64 enc, struct vmcs12_field *out)
{
	if (enc & VMCS12_ENC_RESERVED)
		return false;
	*out = *vmcs12_entry(enc);
	if (unlikely(enc & VMCS12_ENC_HIGH)) {
		out->high = true;
		return out->cap && out->width == WIDTH_64;
	}
	return out->cap;
}

/* Whether the field exists with these capabilities (else error 12). */
static inline bool vmcs12_exists(const struct vmcs12_field *f, const struct vmx_caps *caps)
{
	const u64 *words = &caps->basic;

	return f->cap == VMCS12_CAP_ALWAYS || words[f->cap >> 6] >> (f->cap & 63) & 1;
}

/* Read; narrower fields are zero-extended. `f` is an entry of the table. */
static inline u64 vmcs12_read_whole(const struct vmcs12 *v12, const struct vmcs12_field *f)
{
	static const u8 spare[] = {[WIDTH_16] = 48, [WIDTH_64] = 0, [WIDTH_32] = 32, [WIDTH_NATURAL] = 0};
	u64 value;

	/* Within the struct: asserted. */
	__builtin_memcpy(&value, (const char *)v12 + f->offset, sizeof(value));
	return value << spare[f->width] >> spare[f->width];
}

/* The same for a field that was looked up: a high-half access gives bits 63:32. */
static inline u64 vmcs12_read(const struct vmcs12 *v12, const struct vmcs12_field *f)
{
	u64 value = vmcs12_read_whole(v12, f);

	return f->high ? value >> 32 : value;
}

/* Write, truncated to the field; a high-half access replaces bits 63:32 by the low half of `value`. The
 * caller marks f->group dirty. */
static inline void vmcs12_write(struct vmcs12 *v12, const struct vmcs12_field *f, u64 value)
{
	char *at = (char *)v12 + f->offset;

	if (f->width == WIDTH_16)
		__builtin_memcpy(at, &value, 2);
	else if (f->width == WIDTH_32)
		__builtin_memcpy(at, &value, 4);
	else if (unlikely(f->high))
		__builtin_memcpy(at + 4, &value, 4);
	else
		__builtin_memcpy(at, &value, 8);
}

/* Highest index (encoding bits 9:1) of the fields that exist: VMX_VMCS_ENUM. */
u32 vmcs12_max_index(const struct vmx_caps *caps);

#endif
