/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The emulators' test device, for test images that need hands on the hardware: a register that gives back
 * what it was given, and interrupt lines a guest can pull by itself. It reaches nothing but the guest's own
 * machine. QEMU's "pc-testdev".
 */
#include "hv/dev/internal.h"

void vtestdev_reset(struct machine *m)
{
	m->testdev = 0;
	for (unsigned gsi = 0; gsi < IOAPIC_PINS; gsi++)
		machine_irq(m, gsi, false);
}

u32 vtestdev_in(struct machine *m, u16 port, unsigned size)
{
	if (port < TESTDEV_LINES)
		return m->testdev >> 8 * (port & 3);
	return port_ones(size);
}

void vtestdev_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	unsigned shift = 8 * (port & 3);

	if (port >= TESTDEV_LINES)
		machine_irq(m, port - TESTDEV_LINES, value & 1);
	else
		m->testdev = (m->testdev & ~(port_ones(size) << shift)) | value << shift;
}
