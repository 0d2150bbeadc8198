/* SPDX-License-Identifier: Apache-2.0 */
/* What the library takes from the ACPI tables: CPUs, IO-APIC, PM timer. */
#pragma once

#include "types.h"

struct acpi {
	bool found;
	u32 cpu_count;
	u32 cpu_apic_id[64]; /* enabled CPUs, in table order */
	u64 ioapic_base;
	u32 irq0_gsi; /* where the PIT is wired */
	u16 pm_timer; /* port, 0 when absent */
	u16 pm1a_event, pm1a_control;
	u16 sci;
	u8 s5_type; /* SLP_TYPa of \_S5 when has_s5 */
	bool has_s5;
	bool timer_32bit;
	u64 reset_port; /* I/O port of the reset register, 0 when absent */
	u8 reset_value;
	u64 xsdt, madt, fadt, dsdt;
};

extern struct acpi acpi;

void acpi_read(void);
bool acpi_checksum_ok(u64 table);
