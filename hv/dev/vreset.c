/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All the ports by which a guest ends or restarts its machine: reset control 0xcf9, the keyboard controller's
 * reset pulse, port 0x92, the debug exit 0xf4 and the emulators' shutdown port 0x8900. There is no keyboard:
 * status always reads 0 and the FADT says so.
 */
#include "hv/dev/internal.h"

#define RESET_CPU      BIT32(2) /* 0xcf9 */
#define RESET_BITS     0x0eu
#define FAST_RESET     BIT32(0) /* 0x92 */
#define FAST_A20       BIT32(1)
#define KBC_PULSE      0xf0u /* 0xf0-0xff: pulse the output lines whose bit is 0 */
#define KBC_PULSE_LINE BIT32(0)

static const char shutdown_word[] = "Shutdown";

void vreset_reset(struct machine *m)
{
	m->reset = (struct vreset){.port92 = FAST_A20};
}

static void write_shutdown(struct machine *m, u8 c)
{
	struct vreset *r = &m->reset;

	if (c == (u8)shutdown_word[r->word])
		r->word++;
	else
		r->word = c == (u8)shutdown_word[0];
	if (r->word < sizeof(shutdown_word) - 1)
		return;
	r->word = 0;
	m->outcome = OUTCOME_EXIT;
	m->exit_code = 0;
}

void vreset_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	struct vreset *r = &m->reset;
	u8 byte = (u8)value;

	(void)size;
	switch (port) {
	case 0x64:
		if ((byte & KBC_PULSE) == KBC_PULSE && !(byte & KBC_PULSE_LINE))
			m->outcome = OUTCOME_RESET;
		break;
	case 0x92:
		if (byte & ~r->port92 & FAST_RESET)
			m->outcome = OUTCOME_RESET;
		r->port92 = byte & (FAST_RESET | FAST_A20);
		break;
	case 0xf4:
		m->outcome = OUTCOME_EXIT;
		m->exit_code = value;
		break;
	case 0xcf9:
		if (byte & ~r->control & RESET_CPU)
			m->outcome = OUTCOME_RESET;
		r->control = byte & RESET_BITS;
		break;
	case 0x8900:
		write_shutdown(m, byte);
		break;
	}
}

u32 vreset_in(struct machine *m, u16 port, unsigned size)
{
	switch (port) {
	case 0x60:
	case 0x64:
		return 0;
	case 0x92:
		return m->reset.port92;
	case 0xcf9:
		return m->reset.control;
	}
	return port_ones(size);
}
