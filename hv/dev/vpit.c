/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 8254 timer and port 0x61. Nothing counts: a channel remembers when its count was loaded and computes
 * the rest from the TSC. Only channel 0's rising edges need a host timer; edges are computed from the load
 * time, so periods never drift, and edges too near to each other become one.
 */
#include "hv/dev/internal.h"

#define PIT_HZ        1193182u
#define PIT_IRQ       0
#define SPEAKER_GATE  BIT32(0) /* port 0x61 */
#define SPEAKER_WRITE 0x0fu
#define SPEAKER_TICK  BIT32(4)
#define SPEAKER_OUT   BIT32(5)
#define REFRESH_TICKS 18 /* of PIT_HZ: 15 us */
#define READ_BACK     3
#define STATUS_OUT    BIT32(7)
#define STATUS_NULL   BIT32(6)

/* Clocks since the count was loaded or triggered. */
static u64 clocks(const struct vpit_channel *c, u64 now)
{
	return c->held + (c->counting ? clock_scale(now - c->start, PIT_HZ, tsc_hz) : 0);
}

static bool periodic(const struct vpit_channel *c)
{
	return c->mode == 2 || c->mode == 3;
}

/* OUT after `n` clocks. Datasheet 8254 "Mode Definitions". */
static bool output(const struct vpit_channel *c, u64 now)
{
	u64 n = clocks(c, now);

	if (!c->loaded)
		return c->mode != 0;
	switch (c->mode) {
	case 0:
		return n >= c->count;
	case 1:
		return n >= c->count || (!c->counting && !n);
	case 2:
		return !c->gate || n % c->count != c->count - 1;
	case 3:
		return !c->gate || n % c->count < (c->count + 1) / 2;
	default:
		return n != c->count;
	}
}

static u32 binary(const struct vpit_channel *c, u32 v)
{
	if (!c->bcd)
		return v;
	return (v & 15) + (v >> 4 & 15) * 10 + (v >> 8 & 15) * 100 + (v >> 12 & 15) * 1000;
}

static u16 coded(const struct vpit_channel *c, u32 v)
{
	if (!c->bcd)
		return (u16)v;
	v %= 10000;
	return (u16)(v % 10 | v / 10 % 10 << 4 | v / 100 % 10 << 8 | v / 1000 << 12);
}

static u16 counter(const struct vpit_channel *c, u64 now)
{
	u32 wrap = c->bcd ? 10000 : 65536;
	u64 n = clocks(c, now);
	u32 left;

	if (!c->loaded)
		return 0;
	switch (c->mode) {
	case 2:
		left = c->count - (u32)(n % c->count);
		break;
	case 3:
		/* Two at a time, through the whole count in each half. */
		left = c->count - (u32)(2 * n % c->count);
		left &= ~1u;
		break;
	default:
		left = (u32)((c->count + wrap - n % wrap) % wrap);
	}
	return coded(c, left);
}

/* Host TSC of the k-th clock after the start, rounded up. */
static u64 clock_time(const struct vpit_channel *c, u64 k)
{
	return c->start + clock_scale(k - c->held, tsc_hz, PIT_HZ) + 1;
}

/* Arm channel 0's host timer for its next rising edge at or after `now`. */
static void arm(struct machine *m, u64 now)
{
	struct vpit *p = &m->pit;
	const struct vpit_channel *c = &p->channel[0];
	u64 n = clocks(c, now), edge;

	p->due = 0;
	if (c->loaded && c->counting) {
		if (periodic(c)) {
			n = MAX(n, clocks(c, now + clock_min_gap()));
			edge = (n / c->count + 1) * c->count;
		} else {
			edge = c->count + (c->mode >= 4 ? 1 : 0);
		}
		if (edge > clocks(c, now))
			p->due = clock_time(c, edge);
	}
	if (p->due)
		timer_arm(&p->timer, p->due);
	else
		timer_cancel(&p->timer);
}

static void on_timer(void *arg)
{
	struct machine *m = arg;
	struct vpit *p = &m->pit;
	u64 now = machine_clock();

	spin_lock(&m->lock);
	/* Reprogrammed by another CPU while we were on our way: not due, or armed again. */
	if (p->due && now >= p->due) {
		machine_irq(m, PIT_IRQ, false);
		machine_irq(m, PIT_IRQ, true);
		p->due = 0;
		if (periodic(&p->channel[0]))
			arm(m, now);
	}
	spin_unlock(&m->lock);
}

void vpit_init(struct machine *m)
{
	m->pit.timer.fn = on_timer;
	m->pit.timer.arg = m;
}

void vpit_reset(struct machine *m)
{
	struct vpit *p = &m->pit;

	timer_cancel(&p->timer);
	p->due = 0;
	p->port61 = 0;
	for (unsigned i = 0; i < 3; i++)
		p->channel[i] = (struct vpit_channel){.mode = 3, .access = 3, .gate = i != 2};
	machine_irq(m, PIT_IRQ, true);
}

static void start(struct machine *m, unsigned i, u64 now)
{
	struct vpit_channel *c = &m->pit.channel[i];

	c->start = now;
	c->held = 0;
	/* Modes 1 and 5 wait for a rising gate; the others count while the gate is high. */
	c->counting = c->gate && c->mode != 1 && c->mode != 5;
	if (i == 0) {
		machine_irq(m, PIT_IRQ, c->mode != 0);
		arm(m, now);
	}
}

static void load(struct machine *m, unsigned i, u16 value)
{
	struct vpit_channel *c = &m->pit.channel[i];
	u32 count = binary(c, value);

	c->count = count ? count : (c->bcd ? 10000 : 65536);
	c->loaded = true;
	start(m, i, machine_clock());
}

static void write_count(struct machine *m, unsigned i, u8 value)
{
	struct vpit_channel *c = &m->pit.channel[i];

	switch (c->access) {
	case 1:
		load(m, i, value);
		break;
	case 2:
		load(m, i, (u16)(value << 8));
		break;
	default:
		if (c->write_high) {
			load(m, i, (u16)(value << 8 | c->low));
		} else {
			c->low = value;
			/* Mode 0: "writing the first byte disables counting". */
			if (c->mode == 0)
				c->loaded = false;
		}
		c->write_high = !c->write_high;
	}
}

static void latch_count(struct vpit_channel *c, u64 now)
{
	if (c->latched)
		return; /* a second latch command before the read is ignored */
	c->latch = counter(c, now);
	c->latched = c->access == 3 ? 2 : 1;
	c->read_high = c->access == 2;
}

static void latch_status(struct vpit_channel *c, u64 now)
{
	if (c->status_latched)
		return;
	c->status = (u8)((output(c, now) ? STATUS_OUT : 0) | (c->loaded ? 0 : STATUS_NULL) |
			 (u32)c->access << 4 | (u32)c->mode << 1 | c->bcd);
	c->status_latched = true;
}

static void read_back(struct machine *m, u8 value)
{
	u64 now = machine_clock();

	for (unsigned i = 0; i < 3; i++) {
		if (!(value & 2u << i))
			continue;
		if (!(value & BIT32(5)))
			latch_count(&m->pit.channel[i], now);
		if (!(value & BIT32(4)))
			latch_status(&m->pit.channel[i], now);
	}
}

static void write_control(struct machine *m, u8 value)
{
	unsigned i = value >> 6, access = value >> 4 & 3, mode = value >> 1 & 7;
	struct vpit_channel *c = &m->pit.channel[i];

	if (i == READ_BACK) {
		read_back(m, value);
		return;
	}
	if (access == 0) {
		latch_count(c, machine_clock());
		return;
	}
	*c = (struct vpit_channel){
		.mode = (u8)(mode > 5 ? mode - 4 : mode),
		.access = (u8)access,
		.bcd = value & 1,
		.gate = c->gate,
	};
	if (i == 0) {
		machine_irq(m, PIT_IRQ, mode != 0);
		arm(m, machine_clock());
	}
}

void vpit_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	(void)size;
	if (port == 0x43)
		write_control(m, (u8)value);
	else
		write_count(m, port & 3, (u8)value);
}

static u8 read_count(struct vpit_channel *c)
{
	u16 value = c->latched ? c->latch : counter(c, machine_clock());
	bool high = c->access == 2 || (c->access == 3 && c->read_high);

	if (c->latched)
		c->latched--;
	if (c->access == 3)
		c->read_high = !c->read_high;
	return (u8)(high ? value >> 8 : value);
}

u32 vpit_in(struct machine *m, u16 port, unsigned size)
{
	struct vpit_channel *c = &m->pit.channel[port & 3];

	(void)size;
	if (port == 0x43)
		return 0xff; /* the control register cannot be read */
	if (c->status_latched) {
		c->status_latched = false;
		return c->status;
	}
	return read_count(c);
}

/* Datasheet 8254 "Gate Pin Operations Summary". */
static void set_gate(struct vpit_channel *c, bool gate, u64 now)
{
	bool rising = gate && !c->gate;

	c->gate = gate;
	if (!c->loaded)
		return;
	if (rising && c->mode != 0 && c->mode != 4) {
		/* Triggers modes 1 and 5, restarts modes 2 and 3. */
		c->start = now;
		c->held = 0;
		c->counting = true;
	} else if (rising) {
		c->start = now;
		c->counting = true;
	} else if (!gate && c->counting && c->mode != 1 && c->mode != 5) {
		c->held = clocks(c, now);
		c->counting = false;
	}
}

u32 vpit_speaker_in(struct machine *m, u16 port, unsigned size)
{
	u64 now = machine_clock();
	u32 value = m->pit.port61 & SPEAKER_WRITE;

	(void)port;
	(void)size;
	if (clock_scale(now, PIT_HZ, tsc_hz) / REFRESH_TICKS & 1)
		value |= SPEAKER_TICK;
	if (output(&m->pit.channel[2], now))
		value |= SPEAKER_OUT;
	return value;
}

void vpit_speaker_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	bool gate = value & SPEAKER_GATE;

	(void)port;
	(void)size;
	if (gate != m->pit.channel[2].gate)
		set_gate(&m->pit.channel[2], gate, machine_clock());
	m->pit.port61 = (u8)(value & SPEAKER_WRITE);
}
