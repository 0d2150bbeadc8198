/* SPDX-License-Identifier: Apache-2.0 */
/* Reads RSDP, RSDT/XSDT, MADT and FADT. Trusts the tables: they come from the machine under test and their
 * sums are checked. */
#include "acpi.h"
#include "x86.h"

struct table {
	char signature[4];
	u32 length;
	u8 revision, checksum;
	char oem[6], oem_table[8];
	u32 oem_revision, creator, creator_revision;
} __attribute__((packed));

struct rsdp {
	char signature[8];
	u8 checksum;
	char oem[6];
	u8 revision;
	u32 rsdt, length;
	u64 xsdt;
} __attribute__((packed));

struct acpi acpi = {.ioapic_base = 0xfec00000, .cpu_count = 0};

static u8 sum(u64 at, u32 n)
{
	u8 s = 0;

	for (const u8 *p = ptr_to(at); n--; p++)
		s = (u8)(s + *p);
	return s;
}

bool acpi_checksum_ok(u64 table)
{
	return sum(table, ((struct table *)ptr_to(table))->length) == 0;
}

static u64 find_rsdp(u64 from, u64 to)
{
	for (u64 at = from; at < to; at += 16)
		if (!memcmp(ptr_to(at), "RSD PTR ", 8) && sum(at, 20) == 0)
			return at;
	return 0;
}

/* ACPI "Multiple APIC Description Table". */
static void read_madt(u64 at)
{
	const u8 *p = ptr_to(at + 44), *end = ptr_to(at + ((struct table *)ptr_to(at))->length);

	acpi.madt = at;
	for (; p < end && p[1]; p += p[1]) {
		bool local = p[0] == 0 && (p[4] & 1), local_x2 = p[0] == 9 && (p[8] & 1);

		if ((local || local_x2) && acpi.cpu_count < ARRAY_SIZE(acpi.cpu_apic_id))
			acpi.cpu_apic_id[acpi.cpu_count++] =
				local ? p[3] : *(const u32 *)(const void *)(p + 4);
		else if (p[0] == 1)
			acpi.ioapic_base = *(const u32 *)(const void *)(p + 4);
		else if (p[0] == 2 && p[3] == 0)
			acpi.irq0_gsi = *(const u32 *)(const void *)(p + 4);
	}
}

/* ACPI "\_Sx": looks for the name _S5_ and the package that follows; enough for tables made by compilers. */
static void read_s5(u64 dsdt)
{
	const u8 *p = ptr_to(dsdt), *end = p + ((struct table *)ptr_to(dsdt))->length - 8;

	acpi.dsdt = dsdt;
	for (; p < end; p++) {
		if (memcmp(p, "_S5_\x12", 5))
			continue;
		p += 5 + (p[5] >> 6) + 2; /* package length, element count */
		acpi.has_s5 = true;
		acpi.s5_type = *p == 0x0a ? p[1] : *p > 1 ? 0 : *p;
		return;
	}
}

/* ACPI "Fixed ACPI Description Table (FADT)". */
static void read_fadt(u64 at)
{
	const u8 *p = ptr_to(at);
	u32 length = ((const struct table *)ptr_to(at))->length;

	acpi.fadt = at;
	acpi.sci = *(const u16 *)(const void *)(p + 46);
	acpi.pm1a_event = (u16) * (const u32 *)(const void *)(p + 56);
	acpi.pm1a_control = (u16) * (const u32 *)(const void *)(p + 64);
	acpi.pm_timer = (u16) * (const u32 *)(const void *)(p + 76);
	acpi.timer_32bit = *(const u32 *)(const void *)(p + 112) & BIT(8);
	if (length >= 129 && (*(const u32 *)(const void *)(p + 112) & BIT(10)) && p[116] == 1) {
		acpi.reset_port = *(const u64 *)(const void *)(p + 120);
		acpi.reset_value = p[128];
	}
	read_s5(*(const u32 *)(const void *)(p + 40));
}

static void read_table(u64 at)
{
	if (!memcmp(ptr_to(at), "APIC", 4))
		read_madt(at);
	if (!memcmp(ptr_to(at), "FACP", 4))
		read_fadt(at);
}

void acpi_read(void)
{
	u64 at = find_rsdp(0xe0000, 0x100000), ebda;
	const struct rsdp *r;
	u32 entry = 4;
	u64 root;

	ebda = (u64)(*(volatile u16 *)ptr_to(0x40e)) << 4;
	if (!at)
		at = find_rsdp(ebda, ebda + 1024);
	if (!at)
		return;
	acpi.found = true;
	r = ptr_to(at);
	root = r->rsdt;
	if (r->revision >= 2 && r->xsdt) {
		root = acpi.xsdt = r->xsdt;
		entry = 8;
	}
	for (u64 p = root + 36; p < root + ((struct table *)ptr_to(root))->length; p += entry)
		read_table(entry == 8 ? *(u64 *)ptr_to(p) : *(u32 *)ptr_to(p));
}
