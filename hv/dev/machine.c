/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine as the rest of hv/ sees it: takes the lock, finds the device, and acts on ends and resets after
 * the lock is free. Devices never call guest_end or guest_reset themselves.
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/lib.h"
#include "hv/vcpu.h"
#include "mm/palloc.h"

#define MACHINE_ORDER 1

_Static_assert(sizeof(struct machine) <= PAGE_SIZE << MACHINE_ORDER, "struct machine outgrew its pages");

struct machine *machine_create(struct guest *g)
{
	struct machine *m = pages_alloc(MACHINE_ORDER);

	if (!m)
		return NULL;
	m->guest = g;
	g->machine = m;
	ports_init();
	vpit_init(m);
	vrtc_init(m);
	vpm_init(m);
	vfwcfg_init(m);
	machine_reset(m);
	return m;
}

void machine_reset(struct machine *m)
{
	spin_lock(&m->lock);
	vpic_reset(m); /* the devices' lines are masked and reach nobody */
	vioapic_reset(m);
	vtestdev_reset(m);
	vpit_reset(m);
	vrtc_reset(m);
	vuart_reset(m);
	vpm_reset(m);
	vreset_reset(m);
	vfwcfg_reset(m);
	vpci_reset(m);
	vpic_reset(m); /* again: the lines' edges are forgotten */
	m->outcome = OUTCOME_NONE;
	spin_unlock(&m->lock);
	/* The vCPUs stand still or are not there yet; vcpu_reset does the rest of their APICs. */
	for (unsigned i = 0; i < m->guest->nr_vcpus; i++)
		if (m->guest->vcpu[i] && m->guest->vcpu[i]->lapic)
			vlapic_timer_reset(m->guest->vcpu[i]->lapic);
}

u32 machine_in(struct vcpu *v, u16 port, unsigned size)
{
	struct machine *m = v->guest->machine;
	u32 value;

	spin_lock(&m->lock);
	value = ports_in(m, port, size);
	spin_unlock(&m->lock);
	return value;
}

/* What a write asked for, once the lock is free. */
static __attribute__((noinline, cold)) void act_on_outcome(struct machine *m)
{
	enum outcome outcome;
	u32 code;

	spin_lock(&m->lock);
	outcome = m->outcome;
	code = m->exit_code;
	m->outcome = OUTCOME_NONE;
	spin_unlock(&m->lock);
	if (outcome == OUTCOME_EXIT)
		guest_exit(m->guest, code);
	else if (outcome == OUTCOME_RESET)
		guest_reset(m->guest);
}

void machine_out(struct vcpu *v, u16 port, unsigned size, u32 value)
{
	struct machine *m = v->guest->machine;
	enum outcome outcome;

	spin_lock(&m->lock);
	ports_out(m, port, size, value);
	outcome = m->outcome;
	spin_unlock(&m->lock);
	if (unlikely(outcome != OUTCOME_NONE))
		act_on_outcome(m);
}

static bool in_lapic_page(const struct vcpu *v, u64 gpa)
{
	u64 base = v->apic_base;

	return (base & (APIC_BASE_ENABLE | APIC_BASE_X2APIC)) == APIC_BASE_ENABLE &&
	       ((gpa ^ base) & PAGE_MASK) == 0;
}

static bool in_ioapic_page(u64 gpa)
{
	return (gpa & PAGE_MASK) == L1_IOAPIC;
}

static u64 size_mask(unsigned size)
{
	return size >= 8 ? ~0ull : MASK(8 * size);
}

/* Registers are 32 bits wide; a narrower read gets its part of one, a wider one zeros above. */
u64 machine_mmio_read(struct vcpu *v, gpa_t gpa, unsigned size)
{
	u32 offset = (u32)(gpa.v & ~PAGE_MASK), reg = offset & ~3u;
	struct machine *m = v->guest->machine;
	u64 value;

	if (in_lapic_page(v, gpa.v)) {
		value = vlapic_mmio_read(v, reg);
	} else if (in_ioapic_page(gpa.v)) {
		spin_lock(&m->lock);
		value = vioapic_read(m, reg);
		spin_unlock(&m->lock);
	} else {
		return size_mask(size);
	}
	return value >> 8 * (offset & 3) & size_mask(size);
}

void machine_mmio_write(struct vcpu *v, gpa_t gpa, unsigned size, u64 value)
{
	u32 reg = (u32)(gpa.v & ~PAGE_MASK) & ~3u;
	struct machine *m = v->guest->machine;

	value &= size_mask(size);
	if (in_lapic_page(v, gpa.v)) {
		vlapic_mmio_write(v, reg, (u32)value);
	} else if (in_ioapic_page(gpa.v)) {
		spin_lock(&m->lock);
		vioapic_write(m, reg, (u32)value);
		spin_unlock(&m->lock);
	}
}

/* The timer's ISA line 0 is pin 2 of the IO-APIC, as the MADT tells; the cascade line 2 of the PIC is
 * nobody's. */
void machine_irq(struct machine *m, unsigned gsi, bool level)
{
	if (gsi < 16 && gsi != 2)
		vpic_line(m, gsi, level);
	if (gsi < IOAPIC_PINS)
		vioapic_line(m, gsi == 0 ? 2 : gsi, level);
}

void machine_console_input(struct machine *m, u8 c)
{
	spin_lock(&m->lock);
	vuart_input(m, c);
	spin_unlock(&m->lock);
}

u8 machine_pic_ack(struct machine *m)
{
	u8 vector;

	spin_lock(&m->lock);
	vector = vpic_ack(m);
	spin_unlock(&m->lock);
	return vector;
}

void machine_eoi(struct machine *m, u8 vector)
{
	spin_lock(&m->lock);
	vioapic_eoi(m, vector);
	spin_unlock(&m->lock);
}
