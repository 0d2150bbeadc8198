/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device answers at which I/O port. One byte per port, built once and shared by all guests, so that an
 * access costs the same whatever is there. An access wider than the device's registers is split into bytes,
 * as an ISA bus does.
 */
#include "hv/dev/internal.h"
#include "hv/guest_console.h"

struct port_range {
	u16 first, last;
	u8 width; /* widest access the device takes whole */
	u32 (*in)(struct machine *m, u16 port, unsigned size);
	void (*out)(struct machine *m, u16 port, unsigned size, u32 value);
};

static u32 absent_in(struct machine *m, u16 port, unsigned size)
{
	(void)m;
	(void)port;
	return port_ones(size);
}

static void absent_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	(void)m;
	(void)port;
	(void)size;
	(void)value;
}

/* The emulators' debug port: reads its own number when it is there. */
static u32 debug_in(struct machine *m, u16 port, unsigned size)
{
	(void)m;
	(void)size;
	return port;
}

static void debug_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	(void)port;
	(void)size;
	guest_console_putc(m->guest, (u8)value);
}

/* clang-format off */
static const struct port_range ranges[] = {
	{0x0000, 0xffff, 4, absent_in, absent_out}, /* whatever no other entry names */
	{0x0020, 0x0021, 1, vpic_in, vpic_out},
	{0x0040, 0x0043, 1, vpit_in, vpit_out},
	{0x0060, 0x0060, 1, vreset_in, vreset_out},
	{0x0061, 0x0061, 1, vpit_speaker_in, vpit_speaker_out},
	{0x0064, 0x0064, 1, vreset_in, vreset_out},
	{0x0070, 0x0071, 1, vrtc_in, vrtc_out},
	{0x0092, 0x0092, 1, vreset_in, vreset_out},
	{0x00a0, 0x00a1, 1, vpic_in, vpic_out},
	{0x00e0, 0x00e3, 4, vtestdev_in, vtestdev_out},
	{0x00e9, 0x00e9, 1, debug_in, debug_out},
	{0x00f4, 0x00f4, 4, vreset_in, vreset_out},
	{0x03f8, 0x03ff, 1, vuart_in, vuart_out},
	{0x04d0, 0x04d1, 1, vpic_in, vpic_out},
	{0x0510, 0x0510, 2, vfwcfg_in, vfwcfg_out},
	{0x0511, 0x0511, 1, vfwcfg_in, vfwcfg_out},
	{0x0600, 0x060b, 4, vpm_in, vpm_out},
	{0x0cf8, 0x0cf8, 4, vpci_in, vpci_out},
	{0x0cf9, 0x0cf9, 1, vreset_in, vreset_out},
	{0x0cfc, 0x0cff, 4, vpci_in, vpci_out},
	{0x2000, 0x2017, 4, vtestdev_in, vtestdev_out},
	{0x8900, 0x8900, 1, vreset_in, vreset_out},
};
/* clang-format on */

static u8 device_at[0x10000];

void ports_init(void)
{
	for (unsigned i = 1; i < ARRAY_SIZE(ranges); i++)
		for (u32 port = ranges[i].first; port <= ranges[i].last; port++)
			device_at[port] = (u8)i;
}

/* A byte of a split access; beyond 0xffff there is nothing. */
static const struct port_range *byte_range(u32 port)
{
	return &ranges[port < ARRAY_SIZE(device_at) ? device_at[port] : 0];
}

static __attribute__((noinline)) u32 split_in(struct machine *m, u16 port, unsigned size)
{
	u32 value = 0;

	for (unsigned i = 0; i < size; i++)
		value |= (byte_range(port + i)->in(m, (u16)(port + i), 1) & 0xff) << 8 * i;
	return value;
}

u32 ports_in(struct machine *m, u16 port, unsigned size)
{
	const struct port_range *r = &ranges[device_at[port]];

	return likely(size <= r->width) ? r->in(m, port, size) & port_ones(size) : split_in(m, port, size);
}

static __attribute__((noinline)) void split_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	for (unsigned i = 0; i < size; i++)
		byte_range(port + i)->out(m, (u16)(port + i), 1, value >> 8 * i & 0xff);
}

void ports_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	const struct port_range *r = &ranges[device_at[port]];

	if (likely(size <= r->width))
		r->out(m, port, size, value & port_ones(size));
	else
		split_out(m, port, size, value);
}
