/* SPDX-License-Identifier: Apache-2.0 */
/* SDM "Checks on Guest Segment Registers" and "Checks on Guest Descriptor-Table Registers". Pure. */
#include "nested/check_rule.h"

/* SDM "Guest Register State", format of access rights. */
#define AR_TYPE(ar) ((ar)&15u)
#define AR_S        BIT32(4)
#define AR_DPL(ar)  ((ar) >> 5 & 3u)
#define AR_P        BIT32(7)
#define AR_L        BIT32(13)
#define AR_DB       BIT32(14)
#define AR_G        BIT32(15)
#define AR_RESERVED 0xfffe0f00u
#define AR_VM86     0xf3u
#define SEL_RPL(s)  ((s)&3u)
#define SEL_TI      4u

/* Segment types. */
#define TYPE_ACCESSED     1u
#define TYPE_READABLE     2u
#define TYPE_CODE         8u
#define TYPE_DATA_RW      3u /* read/write, accessed */
#define TYPE_DATA_DOWN    7u /* expand-down too */
#define TYPE_CODE_ACC     9u
#define TYPE_CODE_READ    11u
#define TYPE_CONFORM      13u
#define TYPE_CONFORM_READ 15u
#define TYPE_LDT          2u
#define TYPE_TSS16_BUSY   3u
#define TYPE_TSS_BUSY     11u

enum { ES, CS, SS, DS, FS, GS, SEGS };

struct seg {
	u16 sel;
	u32 limit, ar;
	u64 base;
};

#define SEG(v, name)                                                                                         \
	{                                                                                                    \
		(v)->guest_##name##_sel, (v)->guest_##name##_limit, (v)->guest_##name##_ar,                  \
			(v)->guest_##name##_base                                                             \
	}

static bool usable(const struct seg *s)
{
	return !(s->ar & AR_UNUSABLE);
}

/* S19: limit bits 11:0 not all ones want G = 0, limit bits 31:20 not all zeros want G = 1. */
static bool granular(const struct seg *s)
{
	if (s->ar & AR_G)
		return (s->limit & 0xfff) == 0xfff;
	return !(s->limit >> 20);
}

/* S3, S6: virtual-8086 mode fixes bases, limits and access rights. */
static struct fail check_vm86(const struct seg seg[SEGS])
{
	for (unsigned i = 0; i < SEGS; i++) {
		RULE(seg[i].base == (u64)seg[i].sel << 4, FAIL_GUEST);
		RULE(seg[i].limit == 0xffff && seg[i].ar == AR_VM86, FAIL_GUEST);
	}
	return PASS;
}

/* The rules for CS alone. Pre: not virtual-8086 mode. */
static struct fail check_cs(const struct seg seg[SEGS], bool unrestricted, bool ia32e)
{
	u32 ar = seg[CS].ar, type = AR_TYPE(ar), dpl = AR_DPL(ar), ss_dpl = AR_DPL(seg[SS].ar);
	bool exact = type == TYPE_CODE_ACC || type == TYPE_CODE_READ;
	bool conforming = type == TYPE_CONFORM || type == TYPE_CONFORM_READ;
	bool flat_data = type == TYPE_DATA_RW;

	RULE(exact || conforming || (flat_data && unrestricted), FAIL_GUEST); /* S7 */
	RULE(implies(flat_data, dpl == 0), FAIL_GUEST);                       /* S11 */
	RULE(implies(exact, dpl == ss_dpl), FAIL_GUEST);                      /* S12 */
	RULE(implies(conforming, dpl <= ss_dpl), FAIL_GUEST);                 /* S13 */
	RULE(implies(ia32e && (ar & AR_L), !(ar & AR_DB)), FAIL_GUEST);       /* S18 */
	return PASS;
}

/* The rules for SS alone. Pre: not virtual-8086 mode. */
static struct fail check_ss(const struct seg seg[SEGS], bool unrestricted, bool real_mode)
{
	const struct seg *ss = &seg[SS];
	u32 type = AR_TYPE(ss->ar);
	bool dpl0 = real_mode || AR_TYPE(seg[CS].ar) == TYPE_DATA_RW;

	RULE(unrestricted || SEL_RPL(ss->sel) == SEL_RPL(seg[CS].sel), FAIL_GUEST);            /* S2 */
	RULE(implies(usable(ss), type == TYPE_DATA_RW || type == TYPE_DATA_DOWN), FAIL_GUEST); /* S8 */
	RULE(unrestricted || AR_DPL(ss->ar) == SEL_RPL(ss->sel), FAIL_GUEST);                  /* S14 */
	RULE(implies(dpl0, AR_DPL(ss->ar) == 0), FAIL_GUEST);                                  /* S15 */
	return PASS;
}

/* DS, ES, FS and GS. Pre: usable, not virtual-8086 mode. */
static struct fail check_data(const struct seg *s, bool unrestricted)
{
	u32 type = AR_TYPE(s->ar);

	RULE(type & TYPE_ACCESSED, FAIL_GUEST); /* S9 */
	RULE(implies(type & TYPE_CODE, type & TYPE_READABLE), FAIL_GUEST);
	RULE(unrestricted || type > TYPE_CODE_READ || AR_DPL(s->ar) >= SEL_RPL(s->sel), FAIL_GUEST); /* S16 */
	return PASS;
}

static struct fail check_six(const struct seg seg[SEGS], const struct vmcs12 *v)
{
	bool unrestricted = vmcs12_sec(v) & SEC_UNRESTRICTED;

	RULES(check_cs(seg, unrestricted, v->entry_ctl & ENTRY_IA32E));
	RULES(check_ss(seg, unrestricted, !(v->guest_cr0 & CR0_PE)));
	for (unsigned i = 0; i < SEGS; i++) {
		const struct seg *s = &seg[i];

		if (i != CS && !usable(s))
			continue;
		if (i != CS && i != SS)
			RULES(check_data(s, unrestricted));
		RULE(s->ar & AR_S, FAIL_GUEST);                             /* S10 */
		RULE((s->ar & AR_P) && !(s->ar & AR_RESERVED), FAIL_GUEST); /* S17 */
		RULE(granular(s), FAIL_GUEST);                              /* S19 */
	}
	return PASS;
}

/* S1, S4, S5: selectors and bases in every mode. */
static struct fail check_bases(const struct seg seg[SEGS], const struct seg *ldtr, const struct seg *tr,
			       const struct check_facts *f)
{
	RULE(!(tr->sel & SEL_TI) && implies(usable(ldtr), !(ldtr->sel & SEL_TI)), FAIL_GUEST); /* S1 */
	RULE(canonical(tr->base, f) && canonical(seg[FS].base, f) && canonical(seg[GS].base, f),
	     FAIL_GUEST); /* S4 */
	RULE(implies(usable(ldtr), canonical(ldtr->base, f)), FAIL_GUEST);
	RULE(!(seg[CS].base >> 32), FAIL_GUEST); /* S5 */
	for (unsigned i = ES; i <= DS; i++)
		RULE(i == CS || implies(usable(&seg[i]), !(seg[i].base >> 32)), FAIL_GUEST);
	return PASS;
}

/* S20: TR is usable and a busy TSS. S21: LDTR, when usable, an LDT. */
static struct fail check_system(const struct seg *ldtr, const struct seg *tr, bool ia32e)
{
	u32 type = AR_TYPE(tr->ar);

	RULE(usable(tr), FAIL_GUEST);
	RULE(type == TYPE_TSS_BUSY || (type == TYPE_TSS16_BUSY && !ia32e), FAIL_GUEST);
	RULE(!(tr->ar & AR_S) && (tr->ar & AR_P) && !(tr->ar & AR_RESERVED), FAIL_GUEST);
	RULE(granular(tr), FAIL_GUEST);
	if (usable(ldtr)) {
		RULE(AR_TYPE(ldtr->ar) == TYPE_LDT, FAIL_GUEST);
		RULE(!(ldtr->ar & AR_S) && (ldtr->ar & AR_P) && !(ldtr->ar & AR_RESERVED), FAIL_GUEST);
		RULE(granular(ldtr), FAIL_GUEST);
	}
	return PASS;
}

struct fail check_segments(const struct vmcs12 *v12, const struct check_facts *f)
{
	const struct seg seg[SEGS] = {
		[ES] = SEG(v12, es), [CS] = SEG(v12, cs), [SS] = SEG(v12, ss),
		[DS] = SEG(v12, ds), [FS] = SEG(v12, fs), [GS] = SEG(v12, gs),
	};
	const struct seg ldtr = SEG(v12, ldtr), tr = SEG(v12, tr);

	RULES(check_bases(seg, &ldtr, &tr, f));
	if (v12->guest_rflags & RFLAGS_VM)
		RULES(check_vm86(seg));
	else
		RULES(check_six(seg, v12));
	RULES(check_system(&ldtr, &tr, v12->entry_ctl & ENTRY_IA32E));
	RULE(canonical(v12->guest_gdtr_base, f) && canonical(v12->guest_idtr_base, f), FAIL_GUEST); /* D1 */
	RULE(!(v12->guest_gdtr_limit >> 16) && !(v12->guest_idtr_limit >> 16), FAIL_GUEST);         /* D2 */
	return PASS;
}
