/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the machine: off, reset, or halted. */
#ifndef NIDUS_HV_POWEROFF_H
#define NIDUS_HV_POWEROFF_H

#include "hv/options.h"
#include "hv/types.h"

/* What ACPI says about it (boot/acpi fills it); all zero: nothing known. */
struct power_registers {
	u16 pm1a_control, pm1b_control; /* ports; 0: none */
	u16 smi_command;                /* port; 0: none */
	u8 acpi_enable;                 /* value for smi_command */
	bool has_s5;
	u8 s5_type_a, s5_type_b; /* SLP_TYP values */
	u16 reset_port;          /* reset register when it is a port; 0: none */
	u8 reset_value;
};

void poweroff_init(const struct power_registers *r);
/* Do it. Waits for the console first. Any CPU, any state. `status` is 0 when all went well; who runs this
 * machine as a virtual one is told any other (port 0xf4: Nidus, QEMU's isa-debug-exit) at a power-off. */
void machine_end(enum ending how, u32 status) __attribute__((noreturn));

#endif
