/* SPDX-License-Identifier: Apache-2.0 */
/* VMREAD and VMWRITE of L1. They act on L0's copy of VMCS12; a write marks its group dirty for the next
 * entry. Pre: VMCS01 is current. */
#include "mm/guest_copy.h"
#include "nested/internal.h"

/* Exit instruction information, format for VMREAD and VMWRITE. */
#define INFO_REGISTER    BIT32(10)
#define INFO_REG1(info)  ((info) >> 3 & 15)
#define INFO_FIELD(info) ((info) >> 28)

/* The operand's width and that of the encoding's register: 64 bits in 64-bit mode, else 32. */
struct rw_operand {
	u32 info;
	bool wide;
	u64 encoding;
};

static struct rw_operand rw_decode(const struct vcpu *v)
{
	struct rw_operand o = {.info = vmcs_read32(VMCS_EXIT_INSN_INFO), .wide = vcpu_64bit()};

	o.encoding = vcpu_reg(v, INFO_FIELD(o.info));
	if (!o.wide)
		o.encoding = (u32)o.encoding;
	return o;
}

static bool find_field(const struct nested *n, u64 encoding, struct vmcs12_field *f)
{
	return vmcs12_lookup(encoding, f) && vmcs12_exists(f, &n->caps);
}

u64 vmread_encoding(struct vcpu *v)
{
	return rw_decode(v).encoding;
}

static enum exit_action give(struct vcpu *v, const struct rw_operand *o, u64 value)
{
	if (o->info & INFO_REGISTER)
		vcpu_set_reg(v, INFO_REG1(o->info), o->wide ? value : (u32)value);
	else if (!operand_write_any(v, &value, o->wide ? 8 : 4))
		return RESUME;
	return vmsucceed(v);
}

enum exit_action vmread_give(struct vcpu *v, u64 value)
{
	struct rw_operand o = rw_decode(v);

	return give(v, &o, value);
}

/* From the VMCS `e`: L1's current one, or that at L2's link pointer; NULL: none. */
static __attribute__((cold, noinline)) enum exit_action read_any(struct vcpu *v, struct vmcs02 *e)
{
	struct rw_operand o = rw_decode(v);
	struct vmcs12_field f;

	if (!e)
		return vmfail_invalid(v);
	if (!find_field(v->nested, o.encoding, &f))
		return vmfail(v, ERROR_NO_FIELD);
	guest_area_fetch(v, e, BIT32(f.group));
	return give(v, &o, vmcs12_read(&e->v12, &f));
}

static __attribute__((cold, noinline)) enum exit_action write_any(struct vcpu *v, struct vmcs02 *e)
{
	struct rw_operand o = rw_decode(v);
	struct vmcs12_field f;
	u64 value = 0;

	if (!e)
		return vmfail_invalid(v);
	if (o.info & INFO_REGISTER)
		value = vcpu_reg(v, INFO_REG1(o.info));
	else if (!operand_read_any(v, &value, o.wide ? 8 : 4))
		return RESUME;
	if (!o.wide)
		value = (u32)value;
	if (!find_field(v->nested, o.encoding, &f))
		return vmfail(v, ERROR_NO_FIELD);
	if (f.read_only && !(v->nested->caps.misc & VMX_MISC_WRITE_INFO))
		return vmfail(v, ERROR_READ_ONLY);
	guest_area_fetch(v, e, BIT32(f.group)); /* the whole group will be loaded */
	vmcs12_write(&e->v12, &f, value);
	e->dirty |= BIT32(f.group);
	if (f.read_only && e->shadow.live) { /* L1 reads it there */
		shadow_publish(e);
		vmcs_load(v->vmcs);
	}
	return vmsucceed(v);
}

/*
 * What nearly all are: both operands registers other than RSP, in 64-bit code, a whole field that exists and
 * is up to date. NULL: none of these, or not known; the long way tells.
 */
static inline const struct vmcs12_field *plain_field(const struct vcpu *v, u32 info)
{
	const struct nested *n = v->nested;
	const struct vmcs12_field *f;
	u64 encoding = v->regs[INFO_FIELD(info)];

	if (!(info & INFO_REGISTER) || INFO_FIELD(info) == RSP || INFO_REG1(info) == RSP || !n->wide ||
	    !n->current || encoding & (VMCS12_ENC_RESERVED | VMCS12_ENC_HIGH))
		return NULL;
	f = vmcs12_entry(encoding);
	if (f->cap != VMCS12_CAP_ALWAYS && (!f->cap || !vmcs12_exists(f, &n->caps)))
		return NULL;
	return n->current->stale & BIT32(f->group) ? NULL : f;
}

enum exit_action emul_vmread(struct vcpu *v)
{
	u32 info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	const struct vmcs12_field *f = plain_field(v, info);

	if (unlikely(!f))
		return read_any(v, v->nested->current);
	v->regs[INFO_REG1(info)] = vmcs12_read_whole(&v->nested->current->v12, f);
	return vmsucceed(v);
}

enum exit_action emul_vmwrite(struct vcpu *v)
{
	u32 info = (u32)vmcs_read_sure(VMCS_EXIT_INSN_INFO);
	const struct vmcs12_field *f = plain_field(v, info);

	if (unlikely(!f || f->read_only))
		return write_any(v, v->nested->current);
	vmcs12_write(&v->nested->current->v12, f, v->regs[INFO_REG1(info)]);
	v->nested->current->dirty |= BIT32(f->group);
	return vmsucceed(v);
}

/* --- L2's, by VMCS shadowing of its L1. SDM "VMREAD", "VMWRITE". Pre: VMCS02 is current. --- */

bool l1_wants_field(const struct vcpu *v, const struct vmcs02 *e, bool write)
{
	u64 map = write ? e->v12.vmwrite_bitmap : e->v12.vmread_bitmap, encoding;
	u8 byte;

	if (!v12_sec(e, SEC_SHADOW_VMCS))
		return true;
	encoding = rw_decode(v).encoding;
	return SHADOW_MAP_RANGE(encoding) ||
	       !guest_read(&v->guest->mem, GPA(map + SHADOW_MAP_BYTE(encoding)), &byte, 1) ||
	       byte & SHADOW_MAP_BIT(encoding);
}

/* The entry has checked what the link pointer names. False: there is no memory for it, the guest ends. */
static bool linked(struct vcpu *v, struct vmcs02 **e)
{
	u64 ptr = v->nested->current->v12.link_pointer;

	*e = ptr == NO_VMCS ? NULL : vmcs02_get(v, ptr);
	if (*e)
		shadow_settle(v, *e);
	else if (ptr != NO_VMCS)
		guest_end(v->guest, "killed: no memory for a nested VMCS");
	return *e || ptr == NO_VMCS;
}

enum exit_action l0_vmread(struct vcpu *v)
{
	struct vmcs02 *e;

	if (vcpu_cpl())
		return fault_gp(v);
	return linked(v, &e) ? read_any(v, e) : RESUME;
}

enum exit_action l0_vmwrite(struct vcpu *v)
{
	struct vmcs02 *e;

	if (vcpu_cpl())
		return fault_gp(v);
	return linked(v, &e) ? write_any(v, e) : RESUME;
}
