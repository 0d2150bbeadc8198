/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MC146818 clock with its CMOS memory. Time is computed from the TSC; the flags of register C are brought
 * up to date when somebody looks or a host timer fires, which is armed only while an enabled interrupt is
 * awaited. Memory sizes stand where a PC BIOS puts them.
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/lib.h"

#define RTC_HZ       32768u
#define RTC_IRQ      8
#define UPDATE_TICKS 8 /* 244 us of update-in-progress before each second */
#define DAY_SECONDS  86400

enum {
	SECOND,
	ALARM_SECOND,
	MINUTE,
	ALARM_MINUTE,
	HOUR,
	ALARM_HOUR,
	WEEKDAY,
	DAY,
	MONTH,
	YEAR,
	REG_A,
	REG_B,
	REG_C,
	REG_D
};
#define CMOS_SHUTDOWN 0x0f
#define CMOS_CENTURY  0x32

#define A_UPDATING BIT32(7)
#define A_RESET    0x26u /* 32768 Hz time base, 1024 Hz periodic rate */
#define B_SET      BIT32(7)
#define B_PERIODIC BIT32(6) /* the same bits are the flags of C */
#define B_ALARM    BIT32(5)
#define B_UPDATE   BIT32(4)
#define B_BINARY   BIT32(2)
#define B_24H      BIT32(1)
#define B_ENABLES  (B_PERIODIC | B_ALARM | B_UPDATE)
#define C_IRQ      BIT32(7)
#define D_VALID    0x80
#define ANY        0xc0 /* alarm "don't care" */
#define PM         0x80

static u64 ticks(const struct machine *m)
{
	return clock_scale(machine_clock() - m->rtc.start, RTC_HZ, tsc_hz);
}

static bool frozen(const struct vrtc *r)
{
	return r->ram[REG_B] & B_SET;
}

static u8 encode(const struct vrtc *r, unsigned v)
{
	return (u8)(r->ram[REG_B] & B_BINARY ? v : v / 10 % 10 << 4 | v % 10);
}

static u8 decode(const struct vrtc *r, u8 v)
{
	return r->ram[REG_B] & B_BINARY ? v : (u8)((v & 15) + (v >> 4) * 10);
}

static u8 encode_hour(const struct vrtc *r, unsigned hour)
{
	if (r->ram[REG_B] & B_24H)
		return encode(r, hour);
	return (u8)(encode(r, hour % 12 ? hour % 12 : 12) | (hour >= 12 ? PM : 0));
}

static unsigned decode_hour(const struct vrtc *r, u8 v)
{
	if (r->ram[REG_B] & B_24H)
		return decode(r, v);
	return decode(r, v & (u8)~PM) % 12u + (v & PM ? 12 : 0);
}

/* The time registers as they read at `seconds`. */
static void show_time(struct vrtc *r, s64 seconds)
{
	struct calendar c = calendar_of(seconds);

	r->frozen[SECOND] = encode(r, c.second);
	r->frozen[MINUTE] = encode(r, c.minute);
	r->frozen[HOUR] = encode_hour(r, c.hour);
	r->frozen[WEEKDAY] = encode(r, c.weekday);
	r->frozen[DAY] = encode(r, c.day);
	r->frozen[MONTH] = encode(r, c.month);
	r->frozen[YEAR] = encode(r, (unsigned)(c.year % 100));
	r->century = encode(r, (unsigned)(c.year / 100));
}

static s64 time_shown(const struct vrtc *r)
{
	struct calendar c = {
		.year = decode(r, r->century) * 100 + decode(r, r->frozen[YEAR]),
		.month = decode(r, r->frozen[MONTH]),
		.day = decode(r, r->frozen[DAY]),
		.hour = (u8)decode_hour(r, r->frozen[HOUR]),
		.minute = decode(r, r->frozen[MINUTE]),
		.second = decode(r, r->frozen[SECOND]),
	};

	return calendar_seconds(&c);
}

/* 32768 Hz ticks from one periodic flag to the next; 0: off. Datasheet "Periodic Interrupt Rate" (rates 1 and
 * 2 are as 8 and 9). */
static u32 period(const struct vrtc *r)
{
	unsigned rate = r->ram[REG_A] & 15;

	if (rate == 0)
		return 0;
	return BIT32((rate <= 2 ? rate + 7 : rate) - 1);
}

static bool alarm_matches(const struct vrtc *r, unsigned reg, unsigned value)
{
	u8 alarm = r->frozen[reg];

	if ((alarm & ANY) == ANY)
		return true;
	return (reg == ALARM_HOUR ? decode_hour(r, alarm) : decode(r, alarm)) == value;
}

/* False: no second of a day matches, and there is no use in looking for one. */
static bool alarm_possible(const struct vrtc *r)
{
	static const struct {
		u8 reg, limit;
	} parts[] = {{ALARM_HOUR, 24}, {ALARM_MINUTE, 60}, {ALARM_SECOND, 60}};

	for (unsigned i = 0; i < ARRAY_SIZE(parts); i++) {
		u8 alarm = r->frozen[parts[i].reg];
		unsigned value = parts[i].reg == ALARM_HOUR ? decode_hour(r, alarm) : decode(r, alarm);

		if ((alarm & ANY) != ANY && value >= parts[i].limit)
			return false;
	}
	return true;
}

/* Seconds from `from` (on) to the first second the alarm matches; more than a day: never. Goes by hours, then
 * minutes, then seconds. */
static u32 until_alarm(const struct vrtc *r, s64 from)
{
	u32 first = (u32)((from % DAY_SECONDS + DAY_SECONDS) % DAY_SECONDS), t = first;

	if (!alarm_possible(r))
		return DAY_SECONDS + 1;
	while (t < first + DAY_SECONDS) {
		if (!alarm_matches(r, ALARM_HOUR, t / 3600 % 24))
			t += 3600 - t % 3600;
		else if (!alarm_matches(r, ALARM_MINUTE, t / 60 % 60))
			t += 60 - t % 60;
		else if (!alarm_matches(r, ALARM_SECOND, t % 60))
			t++;
		else
			return t - first;
	}
	return DAY_SECONDS + 1;
}

/* Set the flags of what happened up to now, and drive the interrupt line. */
static void catch_up(struct machine *m)
{
	struct vrtc *r = &m->rtc;
	u64 now = ticks(m), seconds = now / RTC_HZ, before = r->seen / RTC_HZ;
	u8 flags = 0;

	if (period(r) && now / period(r) != r->seen / period(r))
		flags |= B_PERIODIC;
	if (!frozen(r) && seconds != before) {
		flags |= B_UPDATE;
		if (until_alarm(r, r->epoch + (s64)before + 1) < seconds - before)
			flags |= B_ALARM;
	}
	r->seen = now;
	r->ram[REG_C] |= flags;
	if (r->ram[REG_C] & r->ram[REG_B] & B_ENABLES)
		r->ram[REG_C] |= C_IRQ;
	machine_irq(m, RTC_IRQ, r->ram[REG_C] & C_IRQ);
}

/* The host timer for the next enabled event. While the line is up nothing new can happen: the guest must read
 * C first. */
static void arm(struct machine *m)
{
	struct vrtc *r = &m->rtc;
	u64 at = ~0ull, now = r->seen, seconds = now / RTC_HZ;

	if ((r->ram[REG_B] & B_PERIODIC) && period(r))
		at = (now / period(r) + 1) * period(r);
	if ((r->ram[REG_B] & B_UPDATE) && !frozen(r))
		at = MIN(at, (seconds + 1) * RTC_HZ);
	if ((r->ram[REG_B] & B_ALARM) && !frozen(r)) {
		u32 wait = until_alarm(r, r->epoch + (s64)seconds + 1);

		if (wait <= DAY_SECONDS)
			at = MIN(at, (seconds + 1 + wait) * RTC_HZ);
	}
	if (at == ~0ull || (r->ram[REG_C] & C_IRQ))
		timer_cancel(&r->timer);
	else
		timer_arm(&r->timer, r->start + clock_scale(at, tsc_hz, RTC_HZ) + 1);
}

static void on_timer(void *arg)
{
	struct machine *m = arg;

	spin_lock(&m->lock);
	catch_up(m);
	arm(m);
	spin_unlock(&m->lock);
}

static void put16(struct vrtc *r, unsigned reg, u64 value)
{
	value = MIN(value, 0xffffull);
	r->ram[reg] = (u8)value;
	r->ram[reg + 1] = (u8)(value >> 8);
}

/* Where PC BIOSes keep memory sizes: 15h KiB below 640K, 17h and 30h KiB above 1M, 34h 64-KiB units above
 * 16M, 5bh the same above 4G. */
static void put_sizes(struct vrtc *r, const struct guest *g)
{
	u64 low = g->mem.low, high = g->mem.high / (64 * KIB);

	put16(r, 0x15, 640);
	put16(r, 0x17, low > MIB ? (low - MIB) / KIB : 0);
	put16(r, 0x30, low > MIB ? (low - MIB) / KIB : 0);
	put16(r, 0x34, low > 16 * MIB ? (low - 16 * MIB) / (64 * KIB) : 0);
	put16(r, 0x5b, high & 0xffff);
	r->ram[0x5d] = (u8)(high >> 16);
	r->ram[0x5f] = (u8)(g->desc.vcpus - 1);
}

void vrtc_init(struct machine *m)
{
	m->rtc.timer.fn = on_timer;
	m->rtc.timer.arg = m;
	m->rtc.start = machine_clock();
	m->rtc.epoch = host_rtc_seconds();
}

/* The clock is battery-backed: a reset clears enables and flags, and what the firmware writes at boot. */
void vrtc_reset(struct machine *m)
{
	struct vrtc *r = &m->rtc;

	timer_cancel(&r->timer);
	r->index = 0;
	r->ram[REG_A] = A_RESET;
	r->ram[REG_B] = B_24H;
	r->ram[REG_C] = 0;
	r->ram[REG_D] = D_VALID;
	r->ram[CMOS_SHUTDOWN] = 0;
	r->shown = 0;
	put_sizes(r, m->guest);
	r->seen = ticks(m);
	machine_irq(m, RTC_IRQ, false);
}

#define TIME_REGISTERS                                                                                       \
	(BIT32(SECOND) | BIT32(MINUTE) | BIT32(HOUR) | BIT32(WEEKDAY) | BIT32(DAY) | BIT32(MONTH) |          \
	 BIT32(YEAR))

static bool is_time(unsigned reg)
{
	return (reg <= YEAR && TIME_REGISTERS >> reg & 1) || reg == CMOS_CENTURY;
}

/* The time registers, unless they hold this second's values already. */
static void refresh(struct vrtc *r)
{
	u64 now = machine_clock(), second;

	if (likely(now < r->shown))
		return;
	second = (now - r->start) / tsc_hz;
	show_time(r, r->epoch + (s64)second);
	r->shown = r->start + (second + 1) * tsc_hz;
}

static __attribute__((noinline)) u32 read_register(struct machine *m, unsigned reg)
{
	struct vrtc *r = &m->rtc;
	u8 value;

	if (is_time(reg) && !frozen(r))
		refresh(r);
	switch (reg) {
	case SECOND ... YEAR:
		return r->frozen[reg];
	case CMOS_CENTURY:
		return r->century;
	case REG_A:
		return r->ram[REG_A] |
		       (!frozen(r) && ticks(m) % RTC_HZ >= RTC_HZ - UPDATE_TICKS ? A_UPDATING : 0);
	case REG_C:
		catch_up(m);
		value = r->ram[REG_C];
		r->ram[REG_C] = 0;
		machine_irq(m, RTC_IRQ, false);
		arm(m);
		return value;
	}
	return r->ram[reg];
}

/* A time register: kept until SET goes off, or at once part of the running time. */
static void write_time(struct machine *m, unsigned reg, u8 value)
{
	struct vrtc *r = &m->rtc;
	s64 running = r->epoch + (s64)(ticks(m) / RTC_HZ);

	if (!frozen(r))
		show_time(r, running);
	if (reg == CMOS_CENTURY)
		r->century = value;
	else
		r->frozen[reg] = value;
	if (!frozen(r))
		r->epoch += time_shown(r) - running;
}

/* SET on: the time registers stand still. SET off: time goes on from what they hold. */
static void write_b(struct machine *m, u8 value)
{
	struct vrtc *r = &m->rtc;
	bool was = frozen(r);

	catch_up(m);
	if (!was && (value & B_SET))
		show_time(r, r->epoch + (s64)(r->seen / RTC_HZ));
	if (value & B_SET)
		value &= (u8)~B_UPDATE; /* "SET clears UIE" */
	r->ram[REG_B] = value;
	if (was && !frozen(r)) {
		r->epoch = time_shown(r);
		r->start = machine_clock();
		r->seen = 0;
	}
	catch_up(m);
}

static void write_register(struct machine *m, unsigned reg, u8 value)
{
	struct vrtc *r = &m->rtc;

	r->shown = 0;
	if (is_time(reg)) {
		write_time(m, reg, value);
		return;
	}
	switch (reg) {
	case ALARM_SECOND:
	case ALARM_MINUTE:
	case ALARM_HOUR:
		catch_up(m);
		r->frozen[reg] = value;
		break;
	case REG_A:
		catch_up(m);
		r->ram[REG_A] = value & 0x7f;
		break;
	case REG_B:
		write_b(m, value);
		break;
	case REG_C:
	case REG_D:
		return;
	default:
		r->ram[reg] = value;
		return;
	}
	arm(m);
}

void vrtc_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	(void)size;
	if (port == 0x70)
		m->rtc.index = value & 0x7f; /* bit 7 is the NMI mask of old chip sets */
	else
		write_register(m, m->rtc.index, (u8)value);
}

u32 vrtc_in(struct machine *m, u16 port, unsigned size)
{
	const struct vrtc *r = &m->rtc;

	(void)size;
	if (port == 0x70)
		return r->index;
	/* The short way of the next most frequent case. */
	if (likely(r->index <= YEAR && TIME_REGISTERS >> r->index & 1 && machine_clock() < r->shown))
		return r->frozen[r->index];
	return read_register(m, r->index);
}
