/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair of 8259A interrupt controllers with the chip set's edge/level registers. Line 2 of the master is the
 * slave's output and follows it, so nothing is lost between two requests of the slave. Knows nothing of the
 * APICs but its output's way to LINT0.
 */
#include "hv/dev/internal.h"
#include "hv/lib.h"

#define CASCADE     2
#define SPURIOUS    7
#define ELCR_MASTER 0xf8 /* lines that may be level-triggered */
#define ELCR_SLAVE  0xde
#define BIOS_MASTER 0x08 /* vectors a PC BIOS leaves behind */
#define BIOS_SLAVE  0x70
/* And masks: the cascade, 10 and 11 are open. No device of the platform has the two; test images pull them.
 */
#define BIOS_MASK_MASTER 0xfb
#define BIOS_MASK_SLAVE  0xf3
#define ICW1_ICW4        BIT32(0)
#define ICW1_SINGLE      BIT32(1)
#define ICW1_LTIM        BIT32(3)
#define ICW1_INIT        BIT32(4)
#define ICW4_AEOI        BIT32(1)
#define ICW4_SFNM        BIT32(4)
#define OCW2_EOI         BIT32(5)
#define OCW2_SPECIFY     BIT32(6)
#define OCW2_ROTATE      BIT32(7)
#define OCW3             BIT32(3)

static u8 level_lines(const struct vpic *p, const struct vpic_chip *c)
{
	u8 mask = c->ltim ? 0xff : c->elcr;

	return c == &p->chip[0] ? (u8)(mask | BIT32(CASCADE)) : mask;
}

/* The line of highest priority in `set`, or -1. */
static int first_line(const struct vpic_chip *c, u8 set)
{
	for (unsigned i = 0; i < 8; i++) {
		unsigned line = (c->first + i) & 7;

		if (set & BIT32(line))
			return (int)line;
	}
	return -1;
}

static unsigned rank(const struct vpic_chip *c, int line)
{
	return line < 0 ? 8 : (unsigned)(line - c->first) & 7;
}

/* The line that the chip would tell the CPU now, or -1. */
static int requested(const struct vpic *p, const struct vpic_chip *c)
{
	u8 served = c->isr;
	int line = first_line(c, c->irr & (u8)~c->imr);

	if (c->special_mask)
		served &= (u8)~c->imr;
	/* Special fully nested mode: the slave may interrupt itself with something of higher priority. */
	if (c->sfnm && c == &p->chip[0])
		served &= (u8)~BIT32(CASCADE);
	return rank(c, line) < rank(c, first_line(c, served)) ? line : -1;
}

/* An edge stays latched when its line falls, as chip sets and emulators have it (the 8259A itself wanted it
 * held until INTA). */
static void chip_line(const struct vpic *p, struct vpic_chip *c, unsigned line, bool level)
{
	u8 bit = (u8)BIT32(line);
	bool follows = level_lines(p, c) & bit;

	if (level && (follows || !(c->lines & bit)))
		c->irr |= bit;
	if (!level && follows)
		c->irr &= (u8)~bit;
	c->lines = level ? c->lines | bit : c->lines & (u8)~bit;
}

/* Work out the outputs again after any change. */
static void settle(struct machine *m)
{
	struct vpic *p = &m->pic;
	bool output, before = m->guest->pic_output;

	chip_line(p, &p->chip[0], CASCADE, requested(p, &p->chip[1]) >= 0);
	output = requested(p, &p->chip[0]) >= 0;
	__atomic_store_n(&m->guest->pic_output, output, __ATOMIC_RELAXED);
	if (output && !before)
		vlapic_lint0_edge(m->guest);
}

static void rotate_behind(struct vpic_chip *c, unsigned line)
{
	c->first = (line + 1) & 7;
}

/* One chip's part of an INTA cycle: the line. */
static unsigned acknowledge(const struct vpic *p, struct vpic_chip *c)
{
	int line = requested(p, c);

	if (line < 0)
		return SPURIOUS;
	if (!(level_lines(p, c) & BIT32(line)))
		c->irr &= (u8)~BIT32(line);
	if (!c->aeoi)
		c->isr |= (u8)BIT32(line);
	else if (c->rotate_aeoi)
		rotate_behind(c, (unsigned)line);
	return (unsigned)line;
}

u8 vpic_ack(struct machine *m)
{
	struct vpic *p = &m->pic;
	unsigned line = acknowledge(p, &p->chip[0]);
	u8 vector = (u8)(p->chip[0].base + line);

	if (line == CASCADE)
		vector = (u8)(p->chip[1].base + acknowledge(p, &p->chip[1]));
	settle(m);
	return vector;
}

void vpic_line(struct machine *m, unsigned irq, bool level)
{
	struct vpic *p = &m->pic;
	struct vpic_chip *c = &p->chip[irq >> 3];

	if (level == !!(c->lines & BIT32(irq & 7)))
		return;
	chip_line(p, c, irq & 7, level);
	settle(m);
}

void vpic_reset(struct machine *m)
{
	struct vpic *p = &m->pic;

	for (unsigned i = 0; i < 2; i++) {
		u8 lines = p->chip[i].lines;

		memset(&p->chip[i], 0, sizeof(p->chip[i]));
		p->chip[i].lines = lines;
		p->chip[i].imr = i ? BIOS_MASK_SLAVE : BIOS_MASK_MASTER;
		p->chip[i].base = i ? BIOS_SLAVE : BIOS_MASTER;
	}
	m->guest->pic_output = false;
}

static void icw1(struct vpic *p, struct vpic_chip *c, u8 value)
{
	c->step = 2;
	c->want_icw4 = value & ICW1_ICW4;
	c->single = value & ICW1_SINGLE;
	c->ltim = value & ICW1_LTIM;
	c->imr = c->isr = c->first = 0;
	c->aeoi = c->rotate_aeoi = c->sfnm = c->special_mask = c->poll = c->read_isr = false;
	/* Edge detection starts anew; lines that are level-triggered still ask. */
	c->irr = c->lines & level_lines(p, c);
}

/* ICW2-4 and OCW1: the odd address. */
static void write_data(struct vpic_chip *c, u8 value)
{
	switch (c->step) {
	case 2:
		c->base = value & 0xf8;
		c->step = c->single ? (c->want_icw4 ? 4 : 0) : 3;
		break;
	case 3:
		c->step = c->want_icw4 ? 4 : 0;
		break;
	case 4:
		c->aeoi = value & ICW4_AEOI;
		c->sfnm = value & ICW4_SFNM;
		c->step = 0;
		break;
	default:
		c->imr = value;
	}
}

static void ocw2(struct vpic_chip *c, u8 value)
{
	bool rotate = value & OCW2_ROTATE;
	int line = value & 7;

	if (!(value & OCW2_EOI)) {
		if ((value & (OCW2_ROTATE | OCW2_SPECIFY)) == (OCW2_ROTATE | OCW2_SPECIFY))
			rotate_behind(c, (unsigned)line); /* set priority */
		else if (!(value & OCW2_SPECIFY))
			c->rotate_aeoi = rotate;
		return;
	}
	if (!(value & OCW2_SPECIFY))
		line = first_line(c, c->special_mask ? c->isr & (u8)~c->imr : c->isr);
	if (line < 0)
		return;
	c->isr &= (u8)~BIT32(line);
	if (rotate)
		rotate_behind(c, (unsigned)line);
}

static void ocw3(struct vpic_chip *c, u8 value)
{
	if (value & BIT32(6))
		c->special_mask = value & BIT32(5);
	c->poll = value & BIT32(2);
	if (value & BIT32(1))
		c->read_isr = value & BIT32(0);
}

static struct vpic_chip *chip_at(struct machine *m, u16 port)
{
	return &m->pic.chip[port < 0x4d0 ? port >> 7 : port & 1]; /* 0x20, 0x21; 0xa0, 0xa1; 0x4d0; 0x4d1 */
}

void vpic_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	struct vpic_chip *c = chip_at(m, port);
	u8 byte = (u8)value;

	(void)size;
	if (port >= 0x4d0)
		c->elcr = byte & (port == 0x4d0 ? ELCR_MASTER : ELCR_SLAVE);
	else if (port & 1)
		write_data(c, byte);
	else if (byte & ICW1_INIT)
		icw1(&m->pic, c, byte);
	else if (byte & OCW3)
		ocw3(c, byte);
	else
		ocw2(c, byte);
	settle(m);
}

/* Not inlined: the frame it needs would be every read's. */
static __attribute__((noinline)) u32 poll(struct machine *m, struct vpic_chip *c)
{
	bool waiting = requested(&m->pic, c) >= 0;
	unsigned line = acknowledge(&m->pic, c);

	c->poll = false;
	settle(m);
	return waiting ? 0x80 | line : 0;
}

u32 vpic_in(struct machine *m, u16 port, unsigned size)
{
	struct vpic_chip *c = chip_at(m, port);

	(void)size;
	if (port >= 0x4d0)
		return c->elcr;
	if (c->poll)
		return poll(m, c);
	if (port & 1)
		return c->imr;
	return c->read_isr ? c->isr : c->irr;
}
