/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VMCALL of L1 as a hypercall: registers, a copy of the input, the call, the result. The calls themselves are
 * elsewhere. TLFS "Hypercall Interface". Pre, everywhere: VMCS01 is current.
 */
#include "hyperv/hypercall.h"
#include "mm/guest_copy.h"

#define FAST_WORDS 2u

#define AR_LONG BIT32(13) /* of CS: 64-bit code */
#define AR_DPL  (3u << 5) /* of SS: the CPL */

static inline bool is_wide(void)
{
	return vmcs_read_sure(VMCS_GUEST_CS_AR) & AR_LONG && vmcs_read_sure(VMCS_GUEST_EFER) & EFER_LMA;
}

static u64 pair(const struct vcpu *v, enum reg high, enum reg low)
{
	return v->regs[high] << 32 | (u32)v->regs[low];
}

struct hypercall_regs hypercall_registers(const struct vcpu *v)
{
	if (is_wide())
		return (struct hypercall_regs){v->regs[RCX], v->regs[RDX], v->regs[R8], true};
	return (struct hypercall_regs){pair(v, RDX, RAX), pair(v, RBX, RCX), pair(v, RDI, RSI), false};
}

void hypercall_result(struct vcpu *v, const struct hypercall_regs *r, u64 result)
{
	v->regs[RAX] = r->wide ? result : (u32)result;
	if (!r->wide)
		v->regs[RDX] = result >> 32;
}

static enum hv_status long_spin_wait(struct vcpu *v, const struct call *c, const u64 *in, bool *again)
{
	(void)v, (void)c, (void)in, (void)again;
	return HV_SUCCESS;
}

static const struct {
	u16 code;
	u8 counter;
	call_fn *fn;
} calls[] = {
	/* clang-format off */
	{ HV_FLUSH_SPACE,     COUNT_SPACE_FLUSH,   flush_space },
	{ HV_FLUSH_LIST,      COUNT_LIST_FLUSH,    flush_list },
	{ HV_LONG_SPIN_WAIT,  COUNT_OTHER,	   long_spin_wait },
	{ HV_SEND_IPI,	      COUNT_IPI,	   send_ipi },
	{ HV_FLUSH_SPACE_EX,  COUNT_SPACE_FLUSH,   flush_space_ex },
	{ HV_FLUSH_LIST_EX,   COUNT_LIST_FLUSH,    flush_list_ex },
	{ HV_SEND_IPI_EX,     COUNT_IPI,	   send_ipi_ex },
	{ HV_FLUSH_GPA_SPACE, COUNT_MAPPING_FLUSH, flush_gpa_space },
	{ HV_FLUSH_GPA_LIST,  COUNT_MAPPING_FLUSH, flush_gpa_list },
	/* clang-format on */
};

/* The input lies in one page, aligned; it is copied whole before anything looks at it. */
static enum hv_status fetch(struct vcpu *v, const struct hypercall_regs *r, const struct call *c)
{
	u64 *in = hv_vp(v)->input, bytes = 8ull * call_words(c);

	if (c->fast) {
		in[0] = r->input;
		in[1] = r->output;
		return HV_SUCCESS;
	}
	if (r->input & 7 || (r->input & ~PAGE_MASK) + bytes > PAGE_SIZE)
		return HV_INVALID_ALIGNMENT;
	return guest_read(&v->guest->mem, GPA(r->input), in, bytes) ? HV_SUCCESS : HV_INVALID_PARAMETER;
}

static __attribute__((noinline)) enum hv_status carry_out(struct vcpu *v, const struct hypercall_regs *r,
							  const struct call *c, bool *again)
{
	enum hv_status s = fetch(v, r, c);

	for (size_t i = 0; s == HV_SUCCESS && i < ARRAY_SIZE(calls); i++) {
		if (calls[i].code != c->code)
			continue;
		s = calls[i].fn(v, c, hv_vp(v)->input, again);
		hv_vp(v)->count[calls[i].counter] += s == HV_SUCCESS && !*again;
		break;
	}
	return s;
}

/* TLFS "Legal Hypercall Environments". */
bool hypercall_is_legal(const struct hypercall_regs *r)
{
	return !(vmcs_read_sure(VMCS_GUEST_SS_AR) & AR_DPL) && (r->wide || vcpu_cr0() & CR0_PE);
}

/* Of calls that exist, and in modes other than 64-bit code. */
static __attribute__((noinline)) enum exit_action call(struct vcpu *v)
{
	struct hypercall_regs r = hypercall_registers(v);
	struct call c;
	enum hv_status s = call_decode(r.control, &c);
	bool again = false;

	/* More input than the two registers would be in XMM registers, which is not offered. */
	if (!hypercall_is_legal(&r) || (s == HV_SUCCESS && c.fast && call_words(&c) > FAST_WORDS))
		return fault_ud(v);
	if (s == HV_SUCCESS)
		s = carry_out(v, &r, &c, &again);
	if (again)
		return RESUME;
	hypercall_result(v, &r, call_result(&c, s));
	return RESUME_NEXT;
}

/* A call that does not exist needs no look at its input, whatever the number is. */
enum exit_action hypercall(struct vcpu *v)
{
	u64 control = v->regs[RCX];

	if (unlikely(!hv_partition(v)->os_id))
		return vmcall_without_interface(v);
	if (call_exists((u16)control) || !is_wide() || vmcs_read_sure(VMCS_GUEST_SS_AR) & AR_DPL)
		return call(v);
	v->regs[RAX] = call_result_unknown(control);
	return RESUME_NEXT;
}
