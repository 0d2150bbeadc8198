/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of ACPI tables to facts. Pure; every read is inside `size`. Offsets as in the ACPI specification's
 * tables. */
#include "boot/acpi.h"
#include "hv/lib.h"

#define MADT_ENTRIES      44
#define MADT_LAPIC        0
#define MADT_IOAPIC       1
#define MADT_OVERRIDE     2
#define MADT_X2APIC       9
#define MADT_CPU_ENABLED  BIT32(0)
#define FADT_DSDT         40
#define FADT_SMI_CMD      48
#define FADT_ACPI_ENABLE  52
#define FADT_PM1A_CONTROL 64
#define FADT_PM1B_CONTROL 68
#define FADT_PM_TIMER     76
#define FADT_FLAGS        112
#define FADT_RESET        116
#define FADT_RESET_VALUE  128
#define FADT_X_DSDT       140
#define FADT_X_PM1A       172
#define FADT_X_PM1B       184
#define FADT_X_PM_TIMER   208
#define FADT_RESET_OK     BIT32(10)
#define GAS_IO            1 /* address space of a generic address: system I/O */
#define AML_NAME          0x08
#define AML_PACKAGE       0x12
#define AML_BYTE          0x0a

bool acpi_checksum(const void *p, size_t size)
{
	const u8 *b = p;
	u8 sum = 0;

	for (size_t i = 0; i < size; i++)
		sum = (u8)(sum + b[i]);
	return sum == 0;
}

/* Little-endian number at `at`; 0 when the table is too short to hold it. */
static u64 number(const u8 *t, size_t size, size_t at, unsigned bytes)
{
	u64 v = 0;

	if (at + bytes > size)
		return 0;
	memcpy(&v, t + at, bytes);
	return v;
}

/* One APIC id may be listed twice (as type 0 and 9). Only enabled CPUs count: online-capable ones do not
 * exist yet. */
static void add_cpu(struct acpi *out, u32 apic_id, u32 flags)
{
	if (!(flags & MADT_CPU_ENABLED))
		return;
	for (unsigned i = 0; i < out->nr_cpus; i++)
		if (out->apic_id[i] == apic_id)
			return;
	if (out->nr_cpus == ACPI_CPUS_MAX)
		out->cpus_lost++;
	else
		out->apic_id[out->nr_cpus++] = apic_id;
}

static void add_override(struct acpi *out, const u8 *e, size_t size)
{
	u32 flags = (u32)number(e, size, 8, 2);

	if (out->nr_overrides == ACPI_OVERRIDES_MAX)
		return;
	out->override[out->nr_overrides++] = (struct acpi_override){
		.irq = (u8)number(e, size, 3, 1),
		.gsi = (u32)number(e, size, 4, 4),
		.flags = ((flags & 3) == 3 ? ACPI_OVERRIDE_LOW : 0) |
			 ((flags >> 2 & 3) == 3 ? ACPI_OVERRIDE_LEVEL : 0),
	};
}

static void add_ioapic(struct acpi *out, const u8 *e, size_t size)
{
	if (out->nr_ioapics == ACPI_IOAPICS_MAX)
		return;
	out->ioapic[out->nr_ioapics++] = (struct acpi_ioapic){
		.id = (u8)number(e, size, 2, 1),
		.address = (u32)number(e, size, 4, 4),
		.gsi_base = (u32)number(e, size, 8, 4),
	};
}

static void madt_entry(const u8 *e, size_t size, struct acpi *out)
{
	switch (e[0]) {
	case MADT_LAPIC:
		if (size >= 8 && e[3] != 0xff)
			add_cpu(out, e[3], (u32)number(e, size, 4, 4));
		break;
	case MADT_X2APIC:
		if (size >= 16)
			add_cpu(out, (u32)number(e, size, 4, 4), (u32)number(e, size, 8, 4));
		break;
	case MADT_IOAPIC:
		if (size >= 12)
			add_ioapic(out, e, size);
		break;
	case MADT_OVERRIDE:
		if (size >= 10)
			add_override(out, e, size);
		break;
	default:
		break;
	}
}

void acpi_parse_madt(const u8 *table, size_t size, struct acpi *out)
{
	for (size_t at = MADT_ENTRIES; at + 2 <= size && table[at + 1] >= 2 && at + table[at + 1] <= size;
	     at += table[at + 1])
		madt_entry(table + at, table[at + 1], out);
}

/* A port of an "extended" block (generic address) when it names one, else of the old field. */
static u16 port(const u8 *t, size_t size, size_t old, size_t extended)
{
	u64 x = number(t, size, extended + 4, 8);

	if (x && x <= 0xffff && number(t, size, extended, 1) == GAS_IO)
		return (u16)x;
	return (u16)number(t, size, old, 4);
}

void acpi_parse_fadt(const u8 *table, size_t size, struct acpi *out)
{
	struct power_registers *p = &out->power;
	u64 reset = number(table, size, FADT_RESET + 4, 8);

	out->dsdt = number(table, size, FADT_X_DSDT, 8);
	if (!out->dsdt)
		out->dsdt = number(table, size, FADT_DSDT, 4);
	out->pm_timer = port(table, size, FADT_PM_TIMER, FADT_X_PM_TIMER);
	p->pm1a_control = port(table, size, FADT_PM1A_CONTROL, FADT_X_PM1A);
	p->pm1b_control = port(table, size, FADT_PM1B_CONTROL, FADT_X_PM1B);
	p->smi_command = (u16)number(table, size, FADT_SMI_CMD, 4);
	p->acpi_enable = (u8)number(table, size, FADT_ACPI_ENABLE, 1);
	if ((number(table, size, FADT_FLAGS, 4) & FADT_RESET_OK) &&
	    number(table, size, FADT_RESET, 1) == GAS_IO && reset <= 0xffff) {
		p->reset_port = (u16)reset;
		p->reset_value = (u8)number(table, size, FADT_RESET_VALUE, 1);
	}
}

/* An integer of a package as compilers write small ones: Zero, One, or a byte. Returns its length, 0:
 * something else. */
static size_t aml_small(const u8 *aml, size_t size, size_t at, u8 *value)
{
	if (at < size && aml[at] <= 1) {
		*value = aml[at];
		return 1;
	}
	if (at + 1 < size && aml[at] == AML_BYTE) {
		*value = aml[at + 1];
		return 2;
	}
	return 0;
}

/* ACPI "Package Length Encoding": the top two bits of the first byte count the bytes that follow. */
static bool s5_package(const u8 *aml, size_t size, size_t at, u8 *type_a, u8 *type_b)
{
	size_t n;

	if (at + 2 >= size || aml[at] != AML_PACKAGE)
		return false;
	at += 3u + (aml[at + 1] >> 6); /* opcode, length, element count */
	n = aml_small(aml, size, at, type_a);
	if (!n)
		return false;
	if (!aml_small(aml, size, at + n, type_b))
		*type_b = *type_a;
	return true;
}

bool acpi_parse_s5(const u8 *aml, size_t size, u8 *type_a, u8 *type_b)
{
	for (size_t i = 1; i + 4 < size; i++) {
		bool named =
			aml[i - 1] == AML_NAME || (aml[i - 1] == '\\' && i > 1 && aml[i - 2] == AML_NAME);

		if (named && memcmp(aml + i, "_S5_", 4) == 0 && s5_package(aml, size, i + 4, type_a, type_b))
			return true;
	}
	return false;
}
