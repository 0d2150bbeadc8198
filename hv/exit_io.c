/* SPDX-License-Identifier: Apache-2.0 */
/* Port accesses of L1, string forms included. */
#include "hv/cpu.h"
#include "hv/exit.h"
#include "mm/guest_copy.h"

/* Elements moved in one exit at most; a REP goes on by executing the instruction again, as after an
 * interrupt. */
#define STRING_BATCH 512u

/* SDM table "Exit Qualification for I/O Instructions". */
struct io_qual {
	u16 port;
	u8 size;
	bool in, rep;
};

#define QUAL_IN     BIT(3)
#define QUAL_STRING BIT(4)

static struct io_qual io_qual_decode(u64 q)
{
	return (struct io_qual){
		.port = (u16)(q >> 16), .size = (u8)((q & 7) + 1), .in = q & QUAL_IN, .rep = q >> 5 & 1};
}

static enum exit_action port_access(struct vcpu *v, u64 qual)
{
	unsigned size = (unsigned)(qual & 7) + 1;
	u32 value;

	if (!(qual & QUAL_IN)) {
		machine_out(v, (u16)(qual >> 16), size, (u32)v->regs[RAX]);
		return RESUME_NEXT;
	}
	value = machine_in(v, (u16)(qual >> 16), size);
	v = cpu_running();
	/* A 32-bit result clears the upper half, the smaller ones keep the rest. */
	if (size == 1)
		*(u8 *)&v->regs[RAX] = (u8)value;
	else if (size == 2)
		*(u16 *)&v->regs[RAX] = (u16)value;
	else
		v->regs[RAX] = value;
	return RESUME_NEXT;
}

/* What the instruction information says of INS and OUTS: address size; the segment is in the linear address
 * already. */
static u64 address_mask(void)
{
	unsigned size = vmcs_read32(VMCS_EXIT_INSN_INFO) >> 7 & 7;

	return size == 0 ? 0xffff : size == 1 ? 0xffffffff : ~0ull;
}

static void set_masked(struct vcpu *v, enum reg r, u64 mask, u64 value)
{
	/* 32-bit register writes clear the upper half; 16-bit ones keep the rest. */
	v->regs[r] = mask == 0xffff ? (v->regs[r] & ~mask) | (value & mask) : value & mask;
}

/* One element at `linear`. False: a fault was queued. */
static bool move_element(struct vcpu *v, const struct io_qual *q, const struct paging *p, u64 linear)
{
	struct page_fault f;
	bool mmio = false;
	u32 value = 0;

	if (q->in) {
		/* Check before the port is read: a fault must leave the device untouched. */
		if (!guest_read_linear(&v->guest->mem, p, linear, &value, q->size, ACCESS_WRITE, &f, &mmio))
			goto fault;
		value = machine_in(v, q->port, q->size);
		if (guest_write_linear(&v->guest->mem, p, linear, &value, q->size, &f, &mmio))
			return true;
	} else if (guest_read_linear(&v->guest->mem, p, linear, &value, q->size, ACCESS_READ, &f, &mmio)) {
		machine_out(v, q->port, q->size, value);
		return true;
	}
fault:
	if (mmio)
		fault_gp(v); /* string I/O to or from a device page: nothing sane does it */
	else
		inject_page_fault(v, f.linear, f.error);
	return false;
}

/* Not inlined: the frame it needs would be every port access's. */
static __attribute__((noinline)) enum exit_action string_access(struct vcpu *v, u64 qual)
{
	struct io_qual decoded = io_qual_decode(qual), *q = &decoded;
	u64 mask = address_mask(), linear = vmcs_read_nw(VMCS_GUEST_LINEAR);
	u64 flags = vmcs_read_nw(VMCS_GUEST_RFLAGS), step = flags & RFLAGS_DF ? -(u64)q->size : q->size;
	enum reg index = q->in ? RDI : RSI;
	u64 count = q->rep ? v->regs[RCX] & mask : 1;
	struct paging p;

	vcpu_paging(v, &p);
	for (unsigned n = 0; count && n < STRING_BATCH; n++, count--) {
		if (!move_element(v, q, &p, linear))
			return RESUME;
		linear += step;
		set_masked(v, index, mask, v->regs[index] + step);
		if (q->rep)
			set_masked(v, RCX, mask, count - 1);
	}
	return count ? RESUME : RESUME_NEXT;
}

enum exit_action exit_io(struct vcpu *v)
{
	u64 qual = vmcs_read_sure(VMCS_EXIT_QUAL);

	return likely(!(qual & QUAL_STRING)) ? port_access(v, qual) : string_access(v, qual);
}
