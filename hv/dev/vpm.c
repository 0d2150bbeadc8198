/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ACPI fixed hardware: PM1a event and control blocks and the 32-bit PM timer. There is no SMI command port,
 * so ACPI mode is always on (SCI_EN reads 1). ACPI "ACPI Register Model", "Power Management Timer".
 */
#include "hv/dev/internal.h"

#define STS_TIMER    BIT32(0)
#define STS_GLOBAL   BIT32(5)
#define STS_POWER    BIT32(8)
#define STS_SLEEP    BIT32(9)
#define STS_RTC      BIT32(10)
#define STS_WAKE     BIT32(15)
#define STS_ALL      (STS_TIMER | STS_GLOBAL | STS_POWER | STS_SLEEP | STS_RTC | STS_WAKE)
#define EN_ALL       (STS_TIMER | STS_GLOBAL | STS_POWER | STS_SLEEP | STS_RTC)
#define CNT_SCI_EN   BIT32(0)
#define CNT_SLP_TYPE 0x1c00u
#define CNT_SLP_EN   BIT32(13)
#define S5_TYPE      0u /* as \_S5 in dsdt.asl says */
#define TIMER_HALF   BIT(31)
#define BLOCK_SIZE   12u

static u64 timer_ticks(const struct machine *m)
{
	return clock_scale(machine_clock() - m->pm.start, PM_HZ, tsc_hz);
}

/* TMR_STS is set when the timer's top bit changes. */
static void catch_up(struct machine *m)
{
	struct vpm *p = &m->pm;
	u64 carries = timer_ticks(m) / TIMER_HALF;

	if (carries != p->carries)
		p->status |= STS_TIMER;
	p->carries = carries;
	machine_irq(m, SCI_IRQ, p->status & p->enable);
	if ((p->enable & STS_TIMER) && !(p->status & STS_TIMER))
		timer_arm(&p->timer, p->start + clock_scale((carries + 1) * TIMER_HALF + 1, tsc_hz, PM_HZ));
	else
		timer_cancel(&p->timer);
}

static void on_timer(void *arg)
{
	struct machine *m = arg;

	spin_lock(&m->lock);
	catch_up(m);
	spin_unlock(&m->lock);
}

void vpm_init(struct machine *m)
{
	m->pm.timer.fn = on_timer;
	m->pm.timer.arg = m;
	m->pm.start = machine_clock();
}

void vpm_reset(struct machine *m)
{
	m->pm.status = m->pm.enable = 0;
	m->pm.control = CNT_SCI_EN;
	catch_up(m);
	m->pm.status = 0;
}

u32 vpm_in(struct machine *m, u16 port, unsigned size)
{
	unsigned offset = port - PM_BASE;
	u64 value;

	/* The timer is read far more often than anything else. */
	if (offset >= 8)
		return (u32)timer_ticks(m) >> 8 * (offset - 8);
	(void)size;
	catch_up(m);
	value = m->pm.status | (u64)m->pm.enable << 16 | (u64)m->pm.control << 32;
	return (u32)(value >> 8 * offset);
}

/* Bytes of the block that an access touches, one after another. */
static void write_byte(struct vpm *p, unsigned offset, u8 value)
{
	unsigned shift = 8 * (offset & 1);
	u16 bits = (u16)(value << shift), keep = (u16)(0xff00 >> shift);

	switch (offset & ~1u) {
	case 0:
		p->status &= (u16)~bits; /* write one to clear */
		break;
	case 2:
		p->enable = (u16)(((p->enable & keep) | bits) & EN_ALL);
		break;
	case 4:
		p->control = (u16)((p->control & keep) | bits | CNT_SCI_EN);
		break;
	}
}

void vpm_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	struct vpm *p = &m->pm;

	catch_up(m);
	for (unsigned i = 0; i < size; i++)
		write_byte(p, port - PM_BASE + i, (u8)(value >> 8 * i));
	/* SLP_EN reads as zero; only S5 exists. */
	if ((p->control & CNT_SLP_EN) && (p->control & CNT_SLP_TYPE) == S5_TYPE << 10) {
		m->outcome = OUTCOME_EXIT;
		m->exit_code = 0;
	}
	p->control &= (u16)~CNT_SLP_EN;
	catch_up(m);
}
