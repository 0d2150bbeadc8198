/* SPDX-License-Identifier: Apache-2.0 */
/* Finds ACPI tables: RSDP, then XSDT or RSDT, then the two tables of interest. What they say is
 * acpi_parse.c's part. */
#include "boot/acpi.h"
#include "hv/lib.h"
#include "hv/print.h"
#include "mm/hostpt.h"

#define HEADER_SIZE 36
#define TABLE_MAX   (4 * MIB) /* longer is taken for garbage */

struct rsdp {
	char signature[8];
	u8 checksum;
	char oem[6];
	u8 revision;
	u32 rsdt;
	u32 length; /* from here on: revision 2 and later */
	u64 xsdt;
	u8 checksum_all, reserved[3];
} __attribute__((packed));

_Static_assert(sizeof(struct rsdp) == 36, "ACPI: Root System Description Pointer");

struct acpi acpi;

static bool rsdp_ok(const struct rsdp *r)
{
	return memcmp(r->signature, "RSD PTR ", 8) == 0 && acpi_checksum(r, 20);
}

static bool search(u64 start, u64 end, struct rsdp *out)
{
	for (u64 a = start; a + sizeof(*out) <= end; a += 16) {
		if (rsdp_ok(hpa_ptr(HPA(a)))) {
			memcpy(out, hpa_ptr(HPA(a)), sizeof(*out));
			return true;
		}
	}
	return false;
}

/* ACPI "Finding the RSDP on IA-PC Systems": first KiB of the EBDA, then the BIOS area. Page 0 is absent, so
 * go by the map below it. */
static bool find_rsdp(struct rsdp *out)
{
	return search(0x80000, 0xa0000, out) || search(0xe0000, 0x100000, out);
}

/* The whole table, mapped and checked; NULL: not believable. */
static const u8 *table_at(u64 a, u32 *size)
{
	const u8 *t = hpa_ptr(HPA(a));

	if (!a || a >= BIT(46))
		return NULL;
	hostpt_need(HPA(a), HEADER_SIZE);
	memcpy(size, t + 4, 4);
	if (*size < HEADER_SIZE || *size > TABLE_MAX)
		return NULL;
	hostpt_need(HPA(a), *size);
	return acpi_checksum(t, *size) ? t : NULL;
}

static void read_dsdt(void)
{
	struct power_registers *p = &acpi.power;
	u32 size;
	const u8 *dsdt = table_at(acpi.dsdt, &size);

	p->has_s5 =
		dsdt && acpi_parse_s5(dsdt + HEADER_SIZE, size - HEADER_SIZE, &p->s5_type_a, &p->s5_type_b);
}

static void read_table(u64 a)
{
	u32 size;
	const u8 *t = table_at(a, &size);

	if (!t)
		return;
	if (memcmp(t, "APIC", 4) == 0)
		acpi_parse_madt(t, size, &acpi);
	if (memcmp(t, "FACP", 4) == 0) {
		acpi_parse_fadt(t, size, &acpi);
		read_dsdt();
	}
}

/* Entries of the XSDT have 8 bytes, of the RSDT 4. */
static bool read_root(u64 a, unsigned entry)
{
	u32 size;
	const u8 *t = table_at(a, &size);

	if (!t)
		return false;
	for (u32 at = HEADER_SIZE; at + entry <= size; at += entry) {
		u64 table = 0;

		memcpy(&table, t + at, entry);
		read_table(table);
	}
	return true;
}

void acpi_init(const u8 copy[36])
{
	struct rsdp r;

	memcpy(&r, copy, sizeof(r));
	if (!rsdp_ok(&r) && !find_rsdp(&r)) {
		log_warn("no ACPI tables found: one CPU, and power-off by chance");
		return;
	}
	acpi.found = true;
	if (r.revision < 2 || !r.xsdt || !read_root(r.xsdt, 8))
		read_root(r.rsdt, 4);
}
