/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The local APIC's register interfaces: memory page, x2APIC MSRs, IA32_APIC_BASE, IA32_TSC_DEADLINE. One
 * table says which register exists where and which bits can be written. SDM "Local APIC Register Address
 * Map", "x2APIC Register Address Space", "x2APIC State Transitions".
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/vcpu.h"

enum { R = 1, W = 2, X2R = 4, X2W = 8 }; /* in the page; by MSR */
#define RW  (R | W)
#define X2  (X2R | X2W)
#define ALL (RW | X2)

#define LVT_TIMER_BITS   0x700ffu
#define LVT_PLAIN_BITS   0x107ffu
#define LVT_LINT_BITS    0x1a7ffu
#define LVT_ERROR_BITS   0x100ffu
#define LVT_READ_ONLY    (LVT_STATUS | LVT_REMOTE)
#define BASE_RESERVED    0x2ffull /* bits 7:0 and 9 */
#define CPUID_ECX_X2APIC BIT32(21)
#define REGISTERS        0x40u

struct reg_rule {
	u8 access;
	u32 writable;
};

/* By offset / 16, which is also MSR - 0x800. */
static const struct reg_rule rules[REGISTERS] = {
	[APIC_ID >> 4] = {R | X2R, 0},
	[APIC_VERSION >> 4] = {R | X2R, 0},
	[APIC_TPR >> 4] = {ALL, 0xff},
	[APIC_APR >> 4] = {R, 0},
	[APIC_PPR >> 4] = {R | X2R, 0},
	[APIC_EOI >> 4] = {W | X2W, 0},
	[APIC_RRD >> 4] = {R, 0},
	[APIC_LDR >> 4] = {RW | X2R, 0xff000000},
	[APIC_DFR >> 4] = {RW, 0xf0000000},
	[APIC_SVR >> 4] = {ALL, 0x1ff},
	[APIC_ISR >> 4 ...(APIC_ISR >> 4) + 7] = {R | X2R, 0},
	[APIC_TMR >> 4 ...(APIC_TMR >> 4) + 7] = {R | X2R, 0},
	[APIC_IRR >> 4 ...(APIC_IRR >> 4) + 7] = {R | X2R, 0},
	[APIC_ESR >> 4] = {ALL, 0},
	[APIC_ICR >> 4] = {ALL, 0xccfff},
	[APIC_ICR2 >> 4] = {RW, 0xff000000},
	[APIC_LVT_TIMER >> 4] = {ALL, LVT_TIMER_BITS},
	[APIC_LVT_THERMAL >> 4] = {ALL, LVT_PLAIN_BITS},
	[APIC_LVT_PERF >> 4] = {ALL, LVT_PLAIN_BITS},
	[APIC_LVT_LINT0 >> 4] = {ALL, LVT_LINT_BITS},
	[APIC_LVT_LINT1 >> 4] = {ALL, LVT_LINT_BITS},
	[APIC_LVT_ERROR >> 4] = {ALL, LVT_ERROR_BITS},
	[APIC_TIMER_INITIAL >> 4] = {ALL, 0xffffffff},
	[APIC_TIMER_CURRENT >> 4] = {R | X2R, 0},
	[APIC_TIMER_DIVIDE >> 4] = {ALL, 0xb},
	[APIC_SELF_IPI >> 4] = {X2W, 0xff},
};

bool vlapic_enabled(const struct vlapic *l)
{
	return l->vcpu->apic_base & APIC_BASE_ENABLE;
}

bool vlapic_is_x2apic(const struct vlapic *l)
{
	return l->vcpu->apic_base & APIC_BASE_X2APIC;
}

static u32 read_register(struct vlapic *l, u32 offset)
{
	switch (offset) {
	case APIC_TIMER_CURRENT:
		return vlapic_timer_current(l);
	case APIC_PPR:
	case APIC_APR:
		return vlapic_ppr(l);
	}
	return apic_get(l, offset);
}

/* SDM "Local APIC State After It Has Been Software Disabled": all LVT entries are masked and stay so. */
static void write_svr(struct vlapic *l, u32 value)
{
	apic_put(l, APIC_SVR, value);
	if (value & SVR_ENABLE)
		return;
	for (u32 lvt = APIC_LVT_TIMER; lvt <= APIC_LVT_ERROR; lvt += 0x10) {
		u32 masked = apic_get(l, lvt) | LVT_MASKED;

		if (lvt == APIC_LVT_TIMER)
			vlapic_timer_lvt(l, masked);
		else
			apic_put(l, lvt, masked);
	}
}

static void write_lvt(struct vlapic *l, u32 offset, u32 value)
{
	if (!(apic_get(l, APIC_SVR) & SVR_ENABLE))
		value |= LVT_MASKED;
	if (offset == APIC_LVT_TIMER) {
		vlapic_timer_lvt(l, value);
		return;
	}
	apic_put(l, offset, value);
	/* The PIC may have asked while LINT0 was masked. */
	if (offset == APIC_LVT_LINT0 && vlapic_accepts_extint(l->vcpu))
		vcpu_request(l->vcpu, PEND_INTR);
}

/* `value` is masked by the register's rule; `high` holds what stands above 32 bits (the ICR's destination).
 */
static void write_register(struct vlapic *l, u32 offset, u32 value, u32 high)
{
	switch (offset) {
	case APIC_TPR:
		vlapic_set_tpr(l->vcpu, (u8)value);
		break;
	case APIC_EOI:
		vlapic_eoi(l->vcpu);
		break;
	case APIC_DFR:
		apic_put(l, offset, value | 0x0fffffff);
		break;
	case APIC_SVR:
		write_svr(l, value);
		break;
	case APIC_ESR:
		apic_put(l, offset, __atomic_exchange_n(&l->esr_pending, 0, __ATOMIC_SEQ_CST));
		break;
	case APIC_ICR:
		apic_put(l, APIC_ICR, value);
		vlapic_icr(l, value, high);
		break;
	case APIC_LVT_TIMER ... APIC_LVT_ERROR:
		write_lvt(l, offset, value);
		break;
	case APIC_TIMER_INITIAL:
		vlapic_timer_initial(l, value);
		break;
	case APIC_TIMER_DIVIDE:
		vlapic_timer_divide(l, value);
		break;
	case APIC_SELF_IPI:
		vlapic_accept(l, (u8)value, false);
		break;
	default:
		apic_put(l, offset, value);
	}
}

/* The rule of a page offset; NULL: no register (bytes 4-15 of each 16 are none). */
static const struct reg_rule *page_rule(struct vlapic *l, u32 offset)
{
	const struct reg_rule *r = offset < REGISTERS << 4 && !(offset & 0xf) ? &rules[offset >> 4] : NULL;

	if (r && (r->access & RW))
		return r;
	if (!(offset & 0xf))
		vlapic_error(l, ESR_ADDRESS);
	return NULL;
}

u32 vlapic_mmio_read(struct vcpu *v, u32 offset)
{
	const struct reg_rule *r = page_rule(v->lapic, offset);

	return r && (r->access & R) ? read_register(v->lapic, offset) : 0;
}

void vlapic_mmio_write(struct vcpu *v, u32 offset, u32 value)
{
	const struct reg_rule *r = page_rule(v->lapic, offset);

	if (!r || !(r->access & W))
		return;
	write_register(v->lapic, offset, value & r->writable, apic_get(v->lapic, APIC_ICR2) >> 24);
}

static bool x2apic_read(struct vlapic *l, u32 msr, u64 *value)
{
	u32 index = msr - MSR_X2APIC_BASE;

	if (!vlapic_is_x2apic(l) || index >= REGISTERS || !(rules[index].access & X2R))
		return false;
	*value = read_register(l, index << 4);
	if (index == APIC_ICR >> 4)
		*value |= (u64)apic_get(l, APIC_ICR2) << 32;
	return true;
}

static bool x2apic_write(struct vlapic *l, u32 msr, u64 value)
{
	u32 index = msr - MSR_X2APIC_BASE, offset = index << 4, ignored = 0;
	u32 high = (u32)(value >> 32);

	if (!vlapic_is_x2apic(l) || index >= REGISTERS || !(rules[index].access & X2W))
		return false;
	if (offset == APIC_ICR)
		ignored = LVT_STATUS; /* no delivery status here; processors ignore the bit */
	else if (high)
		return false;
	if (offset >= APIC_LVT_TIMER && offset <= APIC_LVT_ERROR)
		ignored = LVT_READ_ONLY;
	if ((u32)value & ~(rules[index].writable | ignored))
		return false;
	if (offset == APIC_ICR)
		apic_put(l, APIC_ICR2, high);
	write_register(l, offset, (u32)value & rules[index].writable, high);
	return true;
}

u64 vlapic_base(const struct vcpu *v)
{
	return v->apic_base;
}

/* SDM "x2APIC State Transitions": what may follow what. */
static bool base_ok(struct vcpu *v, u64 value)
{
	u64 enable = value & APIC_BASE_ENABLE, x2apic = value & APIC_BASE_X2APIC;
	u64 was_x2apic = v->apic_base & APIC_BASE_X2APIC, was_enabled = v->apic_base & APIC_BASE_ENABLE;
	u8 phys_bits = (u8)vcpu_cpuid(v, 0x80000008, 0).eax;

	if ((value & BASE_RESERVED) || value >> phys_bits)
		return false;
	if (!x2apic)
		return !(was_x2apic && enable); /* back to xAPIC only through off */
	return enable && was_enabled && (vcpu_cpuid(v, 1, 0).ecx & CPUID_ECX_X2APIC);
}

static bool base_write(struct vcpu *v, u64 value)
{
	u64 changed = v->apic_base ^ value;

	if (!base_ok(v, value))
		return false;
	v->apic_base = value;
	if (!(value & APIC_BASE_ENABLE)) {
		/* Off loses all state: re-enabled, the APIC stands as after INIT. */
		if (changed & APIC_BASE_ENABLE)
			vlapic_reset(v, true);
	} else if (changed & APIC_BASE_X2APIC) {
		vlapic_enter_x2apic(v->lapic);
	}
	if (changed)
		vcpu_request(
			v, PEND_INTR); /* the gate tells the processor, and the PIC's way may have changed */
	return true;
}

bool vlapic_msr_read(struct vcpu *v, u32 msr, u64 *value)
{
	switch (msr) {
	case MSR_APIC_BASE:
		*value = v->apic_base;
		return true;
	case MSR_TSC_DEADLINE:
		*value = vlapic_timer_deadline(v->lapic);
		return true;
	}
	return x2apic_read(v->lapic, msr, value);
}

bool vlapic_msr_write(struct vcpu *v, u32 msr, u64 value)
{
	switch (msr) {
	case MSR_APIC_BASE:
		return base_write(v, value);
	case MSR_TSC_DEADLINE:
		vlapic_timer_set_deadline(v->lapic, value);
		return true;
	}
	return x2apic_write(v->lapic, msr, value);
}
