/* SPDX-License-Identifier: Apache-2.0 */
/* Taking hypercall input apart. Every number in it is L1's: nothing is used before it was compared. */
#include "hyperv/call.h"

#define CONTROL_CODE(c)     ((u16)(c))
#define CONTROL_VARIABLE(c) ((u16)((c) >> 17 & 0x1ff))
#define CONTROL_REPS(c)     ((u16)((c) >> 32 & 0xfff))
#define CONTROL_START(c)    ((u16)((c) >> 48 & 0xfff))
/* 30:27, 31 (is nested: for an L0 above L1), 47:44, 63:60. */
#define CONTROL_RESERVED 0xf000f000f8000000ull

#define FAST_WORDS 2

/* By code. */
static const struct call_form forms[] = {
	/* clang-format off */
	{ HV_FLUSH_SPACE,     3, false, false },
	{ HV_FLUSH_LIST,      3, true,	false },
	{ HV_LONG_SPIN_WAIT,  1, false, false },
	{ HV_SEND_IPI,	      2, false, false },
	{ HV_FLUSH_SPACE_EX,  4, false, true },
	{ HV_FLUSH_LIST_EX,   4, true,	true },
	{ HV_SEND_IPI_EX,     3, false, true },
	{ HV_FLUSH_GPA_SPACE, 2, false, false },
	{ HV_FLUSH_GPA_LIST,  2, true,	false },
	/* clang-format on */
};

const struct call_form *call_form(u16 code)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (forms[i].code == code)
			return &forms[i];
	return NULL;
}

static bool reps_ok(const struct call_form *f, const struct call *c)
{
	return f->list ? c->start < c->reps : !c->reps && !c->start;
}

enum hv_status call_decode(u64 control, struct call *out)
{
	const struct call_form *f = call_form(CONTROL_CODE(control));

	*out = (struct call){
		.code = CONTROL_CODE(control),
		.fast = control & CALL_FAST,
		.variable = CONTROL_VARIABLE(control),
		.reps = CONTROL_REPS(control),
		.start = CONTROL_START(control),
	};
	if (!f)
		return HV_INVALID_CODE;
	if (control & CONTROL_RESERVED || !reps_ok(f, out) || (out->variable && !f->variable))
		return HV_INVALID_INPUT;
	return HV_SUCCESS;
}

unsigned call_words(const struct call *c)
{
	return 0u + call_form(c->code)->header + c->variable + c->reps;
}

static unsigned count_bits(u64 x)
{
	unsigned n = 0;

	for (; x; x &= x - 1)
		n++;
	return n;
}

enum { SET_SPARSE, SET_ALL };

enum hv_status call_vp_set(const u64 *set, unsigned words, u64 all, u64 *mask)
{
	u64 format = set[0], banks = set[1];

	if (format == SET_ALL) {
		*mask = all;
		return HV_SUCCESS;
	}
	if (format != SET_SPARSE)
		return HV_INVALID_PARAMETER;
	if (count_bits(banks) != words)
		return HV_INVALID_INPUT;
	*mask = banks & 1 ? set[2] : 0;
	return HV_SUCCESS;
}

enum hv_status call_vp_set_folded(const u64 *set, unsigned words, u64 *mask)
{
	enum hv_status s = call_vp_set(set, words, ~0ull, mask);

	for (unsigned i = 0; s == HV_SUCCESS && i < words; i++)
		*mask |= set[2 + i];
	return s;
}
