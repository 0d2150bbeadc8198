/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An IO-APIC with 24 pins, version 0x20 (it has an EOI register). `level` at a pin means asserted: the
 * polarity bit is kept but changes nothing, since the platform's tables say how each line is wired. Datasheet
 * 82093AA and the I/O hubs' "I/O APIC" chapters.
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"

#define WINDOW_SELECT 0x00
#define WINDOW_DATA   0x10
#define WINDOW_EOI    0x40

#define REG_ID          0x00
#define REG_VERSION     0x01
#define REG_ARBITRATION 0x02
#define REG_ENTRIES     0x10
#define VERSION         (0x20u | (IOAPIC_PINS - 1) << 16)

#define ENTRY_LOGICAL  BIT(11)
#define ENTRY_STATUS   BIT(12) /* read-only */
#define ENTRY_REMOTE   BIT(14) /* remote IRR, read-only */
#define ENTRY_LEVEL    BIT(15)
#define ENTRY_MASKED   BIT(16)
#define ENTRY_RESERVED 0x00fffffffffe0000ull

static void send(struct machine *m, u64 entry)
{
	u32 dest = (u32)(entry >> 56);
	struct apic_message msg = {
		.dest = dest,
		.logical = entry & ENTRY_LOGICAL,
		.level = entry & ENTRY_LEVEL,
		.vector = (u8)entry,
		.mode = entry >> 8 & 7,
	};

	if (!msg.logical && dest == 0xff)
		msg.dest = APIC_BROADCAST;
	apic_deliver(m->guest, &msg);
}

/* A level-triggered pin that asks and is not being served. */
static void serve_level(struct machine *m, unsigned pin)
{
	u64 *e = &m->ioapic.entry[pin];

	if (!(*e & ENTRY_LEVEL) || (*e & (ENTRY_MASKED | ENTRY_REMOTE)) || !(m->ioapic.lines & BIT32(pin)))
		return;
	*e |= ENTRY_REMOTE;
	send(m, *e);
}

void vioapic_line(struct machine *m, unsigned pin, bool level)
{
	struct vioapic *io = &m->ioapic;
	u32 bit = BIT32(pin);
	bool edge = level && !(io->lines & bit);

	io->lines = level ? io->lines | bit : io->lines & ~bit;
	if (!level)
		return;
	if (io->entry[pin] & ENTRY_LEVEL)
		serve_level(m, pin);
	else if (edge && !(io->entry[pin] & ENTRY_MASKED))
		send(m, io->entry[pin]);
}

void vioapic_eoi(struct machine *m, u8 vector)
{
	for (unsigned pin = 0; pin < IOAPIC_PINS; pin++) {
		u64 *e = &m->ioapic.entry[pin];

		if ((u8)*e != vector || !(*e & ENTRY_REMOTE))
			continue;
		*e &= ~ENTRY_REMOTE;
		serve_level(m, pin);
	}
}

void vioapic_reset(struct machine *m)
{
	m->ioapic.select = 0;
	m->ioapic.id = 0; /* the MADT says the same */
	for (unsigned pin = 0; pin < IOAPIC_PINS; pin++)
		m->ioapic.entry[pin] = ENTRY_MASKED;
}

static void write_entry(struct machine *m, unsigned index, u32 value)
{
	u64 *e = &m->ioapic.entry[index >> 1];
	u64 read_only = *e & (ENTRY_STATUS | ENTRY_REMOTE);
	u64 new = index & 1 ? (*e & 0xffffffff) | (u64)value << 32 : (*e & ~0xffffffffull) | value;

	new &= ~(ENTRY_RESERVED | ENTRY_STATUS | ENTRY_REMOTE);
	/* Switching to edge ends the service: how an EOI is faked where there is no EOI register. */
	*e = new &ENTRY_LEVEL ? new | read_only : new;
	serve_level(m, index >> 1);
}

static u32 read_register(const struct vioapic *io)
{
	unsigned index = io->select - REG_ENTRIES;

	switch (io->select) {
	case REG_ID:
	case REG_ARBITRATION:
		return (u32)io->id << 24;
	case REG_VERSION:
		return VERSION;
	}
	if (io->select < REG_ENTRIES || index >= 2 * IOAPIC_PINS)
		return 0;
	return (u32)(io->entry[index >> 1] >> (index & 1 ? 32 : 0));
}

u32 vioapic_read(struct machine *m, u32 offset)
{
	switch (offset) {
	case WINDOW_SELECT:
		return m->ioapic.select;
	case WINDOW_DATA:
		return read_register(&m->ioapic);
	}
	return 0;
}

void vioapic_write(struct machine *m, u32 offset, u32 value)
{
	struct vioapic *io = &m->ioapic;

	switch (offset) {
	case WINDOW_SELECT:
		io->select = (u8)value;
		break;
	case WINDOW_DATA:
		if (io->select == REG_ID)
			io->id = value >> 24 & 0xf;
		else if (io->select >= REG_ENTRIES && io->select < REG_ENTRIES + 2 * IOAPIC_PINS)
			write_entry(m, io->select - REG_ENTRIES, value);
		break;
	case WINDOW_EOI:
		vioapic_eoi(m, (u8)value);
		break;
	}
}
