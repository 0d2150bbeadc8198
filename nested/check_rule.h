/* SPDX-License-Identifier: Apache-2.0 */
/* How a check is written, and the tests that several rules share. For nested/check_*.c only. */
#ifndef NIDUS_NESTED_CHECK_RULE_H
#define NIDUS_NESTED_CHECK_RULE_H

#include "hv/x86.h"
#include "mm/ept.h"
#include "nested/checks.h"

/* VM-instruction error numbers and exit reason. */
#define FAIL_CONTROLS 7
#define FAIL_HOST     8
#define FAIL_GUEST    33
#define FAIL_MSR      34

/* SDM "VM-Entry Failures During or After Loading Guest State": exit qualifications of reason 33. */
#define QUAL_OTHER 0
#define QUAL_PDPTE 2
#define QUAL_LINK  4

#define PASS                                                                                                 \
	(struct fail)                                                                                        \
	{                                                                                                    \
		0                                                                                            \
	}
#define RULE_QUAL(ok, e, q)                                                                                  \
	do {                                                                                                 \
		if (!(ok))                                                                                   \
			return (struct fail){(e), __LINE__, (q)};                                            \
	} while (0)
#define RULE(ok, e) RULE_QUAL(ok, e, QUAL_OTHER)
/* Run a group of rules. */
#define RULES(call)                                                                                          \
	do {                                                                                                 \
		struct fail fail_ = (call);                                                                  \
		if (fail_.err)                                                                               \
			return fail_;                                                                        \
	} while (0)

static inline bool implies(u64 a, bool b)
{
	return !a || b;
}

static inline bool in_width(u64 addr, const struct check_facts *f)
{
	return !(addr >> f->phys_bits);
}

/* A 4-KByte aligned address within the physical width. */
static inline bool page_ok(u64 addr, const struct check_facts *f)
{
	return !(addr & ~PAGE_MASK) && in_width(addr, f);
}

/* Bits 63 to `bits` - 1 are equal. */
static inline bool canonical_in(u64 addr, unsigned bits)
{
	s64 top = (s64)addr >> (bits - 1);

	return top == 0 || top == -1;
}

static inline bool canonical(u64 addr, const struct check_facts *f)
{
	return canonical_in(addr, f->linear_bits);
}

/* SDM "Restrictions on VMX Operation": bits fixed to 1 by `fixed0`, to 0 by the complement of `fixed1`. */
static inline bool fixed_ok(u64 cr, u64 fixed0, u64 fixed1)
{
	return (cr & fixed0) == fixed0 && !(cr & ~fixed1);
}

/* Every byte of IA32_PAT is one of 0, 1, 4, 5, 6, 7. */
static inline bool pat_ok(u64 pat)
{
	for (unsigned i = 0; i < 8; i++) {
		u8 type = (u8)(pat >> 8 * i);

		if (type > 7 || type == 2 || type == 3)
			return false;
	}
	return true;
}

/* IA32_S_CET, SSP and the interrupt SSP table: SDM "Checks on Host Control Registers, MSRs, and SSP". */
static inline bool cet_ok(u64 s_cet, u64 ssp, u64 table, const struct check_facts *f)
{
	u64 reserved = 0x3c0;
	bool both = (s_cet & 0xc00) == 0xc00; /* TRACKER and SUPPRESS */

	return !(s_cet & reserved) && !both && canonical(s_cet, f) && !(ssp & 3) && canonical(ssp, f) &&
	       canonical(table, f);
}

/* nested/check_seg.c: SDM "Checks on Guest Segment Registers" and "Checks on Guest Descriptor-Table
 * Registers". */
struct fail check_segments(const struct vmcs12 *v12, const struct check_facts *f);

#endif
