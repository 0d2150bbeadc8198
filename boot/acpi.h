/* SPDX-License-Identifier: Apache-2.0 */
/* The few facts Nidus takes from ACPI. acpi_init reads memory at its machine address; the acpi_parse_
 * functions are pure. */
#ifndef NIDUS_BOOT_ACPI_H
#define NIDUS_BOOT_ACPI_H

#include "hv/poweroff.h"
#include "hv/types.h"

#define ACPI_CPUS_MAX       1024
#define ACPI_IOAPICS_MAX    16
#define ACPI_OVERRIDES_MAX  16
#define ACPI_OVERRIDE_LOW   BIT32(0)
#define ACPI_OVERRIDE_LEVEL BIT32(1)

struct acpi_ioapic {
	u32 address, gsi_base;
	u8 id;
};

/* ISA interrupt `irq` stands at global interrupt `gsi`. */
struct acpi_override {
	u8 irq;
	u32 gsi, flags; /* ACPI_OVERRIDE_ */
};

struct acpi {
	bool found; /* there was an RSDP */
	unsigned nr_cpus;
	u32 apic_id[ACPI_CPUS_MAX]; /* enabled CPUs, in MADT order */
	unsigned cpus_lost;         /* enabled CPUs beyond ACPI_CPUS_MAX */
	unsigned nr_ioapics;
	struct acpi_ioapic ioapic[ACPI_IOAPICS_MAX];
	unsigned nr_overrides;
	struct acpi_override override[ACPI_OVERRIDES_MAX];
	u16 pm_timer; /* port; 0: none */
	u64 dsdt;
	struct power_registers power;
};

extern struct acpi acpi;

/* Fill `acpi`. `rsdp`: the loader's copy, or all zero: then the BIOS area is searched. */
void acpi_init(const u8 rsdp[36]);

bool acpi_checksum(const void *p, size_t size);
void acpi_parse_madt(const u8 *table, size_t size, struct acpi *out);
void acpi_parse_fadt(const u8 *table, size_t size, struct acpi *out);
/* Find \_S5 in AML. False: it is not there in a form this reads. */
bool acpi_parse_s5(const u8 *aml, size_t size, u8 *type_a, u8 *type_b);

#endif
