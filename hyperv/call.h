/* SPDX-License-Identifier: Apache-2.0 */
/* A hypercall's control word, status codes, and the set of VPs that calls name. Pure. TLFS "Hypercall
 * Interface". */
#ifndef NIDUS_HYPERV_CALL_H
#define NIDUS_HYPERV_CALL_H

#include "hv/types.h"

#define CALL_FAST BIT(16) /* of the control word: the input is in registers */

enum hv_status {
	HV_SUCCESS = 0,
	HV_INVALID_CODE = 2,
	HV_INVALID_INPUT = 3,
	HV_INVALID_ALIGNMENT = 4,
	HV_INVALID_PARAMETER = 5,
};

enum hv_code {
	HV_FLUSH_SPACE = 0x0002,
	HV_FLUSH_LIST = 0x0003,
	HV_LONG_SPIN_WAIT = 0x0008,
	HV_SEND_IPI = 0x000b,
	HV_FLUSH_SPACE_EX = 0x0013,
	HV_FLUSH_LIST_EX = 0x0014,
	HV_SEND_IPI_EX = 0x0015,
	HV_FLUSH_GPA_SPACE = 0x00af,
	HV_FLUSH_GPA_LIST = 0x00b0,
};

/* What each call's input looks like, in 64-bit words. */
struct call_form {
	u16 code;
	u8 header;     /* fixed part */
	bool list;     /* a rep call, one word an element */
	bool variable; /* a variable header follows the fixed one */
};
/* NULL: no such call. */
const struct call_form *call_form(u16 code);
/* The same question, asked quickly. */
static inline bool call_exists(u16 code)
{
	switch (code) {
	case HV_FLUSH_SPACE ... HV_FLUSH_LIST:
	case HV_LONG_SPIN_WAIT:
	case HV_SEND_IPI:
	case HV_FLUSH_SPACE_EX ... HV_SEND_IPI_EX:
	case HV_FLUSH_GPA_SPACE ... HV_FLUSH_GPA_LIST:
		return true;
	default:
		return false;
	}
}

struct call {
	u16 code;
	bool fast;       /* the input is in registers */
	u16 variable;    /* words of variable header */
	u16 reps, start; /* list elements, and the first to do */
};

/* Take the control word apart and hold it against the call's form. */
enum hv_status call_decode(u64 control, struct call *out);
/* The calls that flush virtual addresses. */
static inline bool call_is_flush(u64 control)
{
	u16 code = (u16)control;

	return code == HV_FLUSH_SPACE || code == HV_FLUSH_LIST || code == HV_FLUSH_SPACE_EX ||
	       code == HV_FLUSH_LIST_EX;
}
/* Words of input a decoded call has. */
unsigned call_words(const struct call *c);
/* That of a control word whose code no call has: as if nothing else had been looked at. */
static inline u64 call_result_unknown(u64 control)
{
	return HV_INVALID_CODE | (control >> 48 & 0xfff) << 32;
}
/* The value L1 gets: status, and for a list how far it was done. */
static inline u64 call_result(const struct call *c, enum hv_status s)
{
	return (u64)s | (s == HV_SUCCESS ? (u64)c->reps << 32 : (u64)c->start << 32);
}

/*
 * TLFS "VP set": format, mask of banks, then a word for each bank named. *mask gets VPs 0 to 63: a guest has
 * no more. `words` is what the variable header holds.
 */
enum hv_status call_vp_set(const u64 *set, unsigned words, u64 all, u64 *mask);
/* The same for the VPs of an L2, whose numbers have no such bound: VP n is bit n modulo 64. */
enum hv_status call_vp_set_folded(const u64 *set, unsigned words, u64 *mask);

#endif
