/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCI configuration mechanism 1 with a host bridge at 00:00.0 and nothing else: absent functions read all
 * ones. PCI Local Bus Specification "Configuration Mechanism #1".
 */
#include "hv/dev/internal.h"
#include "hv/lib.h"

#define ADDRESS_ENABLE   BIT32(31)
#define ADDRESS_WRITABLE 0x80fffffcu
#define BRIDGE_ID                                                                                            \
	0x12378086u /* i440FX: the one every BIOS and OVMF know to have no memory-mapped configuration */
#define BRIDGE_CLASS   0x06000002u /* host bridge, revision 2 */
#define CONFIG_COMMAND 0x04
#define CONFIG_CLASS   0x08
#define CONFIG_PRIVATE 0x40    /* chip set registers from here on: plain storage */
#define COMMAND_VALUE  0x0006u /* memory and bus master */
#define STATUS_VALUE   0x0280u

static void put32(u8 *config, unsigned offset, u32 value)
{
	memcpy(config + offset, &value, 4);
}

void vpci_reset(struct machine *m)
{
	u8 *config = m->pci.bridge;

	m->pci.address = 0;
	memset(config, 0, sizeof(m->pci.bridge));
	put32(config, 0, BRIDGE_ID);
	put32(config, CONFIG_COMMAND, COMMAND_VALUE | STATUS_VALUE << 16);
	put32(config, CONFIG_CLASS, BRIDGE_CLASS);
}

/* The bridge's register that a data port access means, or NULL: no such function. */
static u8 *target(struct machine *m, u16 port)
{
	u32 address = m->pci.address;

	if (!(address & ADDRESS_ENABLE) || (address & 0x00ffff00))
		return NULL;
	return m->pci.bridge + (address & 0xfc) + (port & 3);
}

u32 vpci_in(struct machine *m, u16 port, unsigned size)
{
	const u8 *reg;
	u32 value = 0;

	if (port == 0xcf8)
		return size == 4 ? m->pci.address : port_ones(size);
	reg = target(m, port);
	if (!reg)
		return port_ones(size);
	for (unsigned i = 0; i < size && (port & 3) + i < 4; i++)
		value |= (u32)reg[i] << 8 * i;
	return value;
}

void vpci_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	u8 *reg;

	if (port == 0xcf8) {
		if (size == 4)
			m->pci.address = value & ADDRESS_WRITABLE;
		return;
	}
	reg = target(m, port);
	for (unsigned i = 0; reg && i < size && (port & 3) + i < 4; i++) {
		if (reg + i >= m->pci.bridge + CONFIG_PRIVATE)
			reg[i] = (u8)(value >> 8 * i);
	}
}
