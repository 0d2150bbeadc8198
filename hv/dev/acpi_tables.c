/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ACPI tables of an L1, built in a buffer and written into its BIOS area once, before a loader runs; the
 * few words of the BIOS data area that kernels look at, and a BIOS that has no service to offer. ACPI
 * specification, "ACPI Software Programming Model".
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/lib.h"
#include "mm/guest_copy.h"

extern const unsigned char dsdt_aml[];
extern const size_t dsdt_aml_size;

#define TABLES_MAX    (L1_ACPI_RSDP - L1_ACPI_BASE)
#define FACS_SIZE     64
#define FADT_SIZE     268
#define FADT_REVISION 5
#define RSDP_SIZE     36
#define RSDP_V1_SIZE  20
#define HEADER_SIZE   36
#define TABLE_ALIGN   64

/* FADT "Fixed Feature Flags". */
#define FADT_WBINVD     BIT32(0)
#define FADT_PROC_C1    BIT32(2)
#define FADT_NO_POWER   BIT32(4) /* no fixed power button */
#define FADT_NO_SLEEP   BIT32(5)
#define FADT_RTC_NO_FIX BIT32(6)
#define FADT_TIMER_32   BIT32(8)
#define FADT_RESET_REG  BIT32(10)
/* FADT "IA-PC Boot Architecture Flags": legacy devices; no keyboard controller; no VGA. */
#define BOOT_LEGACY BIT32(0)
#define BOOT_NO_VGA BIT32(2)

#define NO_C2   0xfff
#define NO_C3   0xfff
#define CENTURY 0x32

/* MADT "Interrupt Controller Structure Types". */
#define MADT_PCAT      1u /* there is a PIC pair */
#define ISO_EDGE_HIGH  0x5u
#define ISO_LEVEL_HIGH 0xdu
#define ALL_PROCESSORS 0xff

#define SPACE_IO 1

struct writer {
	u8 *data;
	size_t size, max;
	bool full;
};

static void put(struct writer *w, const void *data, size_t n)
{
	if (w->full || n > w->max - w->size) {
		w->full = true;
		return;
	}
	memcpy(w->data + w->size, data, n);
	w->size += n;
}

static void put8(struct writer *w, u32 value)
{
	u8 v = (u8)value;

	put(w, &v, 1);
}

static void put16(struct writer *w, u32 value)
{
	u16 v = (u16)value;

	put(w, &v, 2);
}

static void put32(struct writer *w, u32 value)
{
	put(w, &value, 4);
}

static void put64(struct writer *w, u64 value)
{
	put(w, &value, 8);
}

static void put_zeros(struct writer *w, size_t n)
{
	while (n--)
		put8(w, 0);
}

static void align(struct writer *w)
{
	while (w->size % TABLE_ALIGN)
		put8(w, 0);
}

static u8 checksum(const u8 *data, size_t n)
{
	u8 sum = 0;

	while (n--)
		sum += *data++;
	return (u8)-sum;
}

/* ACPI "System Description Table Header"; length and checksum come with end_table. */
static size_t begin_table(struct writer *w, const char *signature, u8 revision)
{
	size_t start;

	align(w);
	start = w->size;
	put(w, signature, 4);
	put32(w, 0);
	put8(w, revision);
	put8(w, 0);
	put(w, "NIDUS ", 6);
	put(w, "NIDUSL1 ", 8);
	put32(w, 1);
	put(w, "NIDU", 4);
	put32(w, 1);
	return start;
}

/* Returns the table's guest-physical address. */
static u32 end_table(struct writer *w, size_t start)
{
	u32 length = (u32)(w->size - start);

	if (!w->full) {
		memcpy(w->data + start + 4, &length, 4);
		w->data[start + 9] = checksum(w->data + start, length);
	}
	return L1_ACPI_BASE + (u32)start;
}

static u32 put_facs(struct writer *w)
{
	u32 at;

	align(w);
	at = L1_ACPI_BASE + (u32)w->size;
	put(w, "FACS", 4);
	put32(w, FACS_SIZE);
	put_zeros(w, 24);
	put8(w, 2); /* version */
	put_zeros(w, FACS_SIZE - 33);
	return at;
}

static u32 put_dsdt(struct writer *w)
{
	u32 at;

	align(w);
	at = L1_ACPI_BASE + (u32)w->size;
	put(w, dsdt_aml, dsdt_aml_size);
	return at;
}

/* ACPI "Generic Address Structure" of an I/O port block. */
static void put_port(struct writer *w, u8 bits, u8 access, u64 port)
{
	put8(w, SPACE_IO);
	put8(w, bits);
	put8(w, 0);
	put8(w, access);
	put64(w, port);
}

static void put_no_port(struct writer *w)
{
	put_zeros(w, 12);
}

/* ACPI "Fixed ACPI Description Table", fields in its order. */
static u32 put_fadt(struct writer *w, u32 facs, u32 dsdt)
{
	size_t start = begin_table(w, "FACP", FADT_REVISION);

	put32(w, facs);
	put32(w, dsdt);
	put8(w, 0);
	put8(w, 0); /* preferred profile: unspecified */
	put16(w, SCI_IRQ);
	put32(w, 0);     /* no SMI command port: always in ACPI mode */
	put_zeros(w, 4); /* ACPI_ENABLE, ACPI_DISABLE, S4BIOS_REQ, PSTATE_CNT */
	put32(w, PM_BASE);
	put32(w, 0);
	put32(w, PM_CONTROL);
	put32(w, 0);
	put32(w, 0); /* PM2 */
	put32(w, PM_TIMER);
	put32(w, 0); /* GPE0 */
	put32(w, 0);
	put8(w, 4); /* PM1_EVT_LEN */
	put8(w, 2);
	put8(w, 0);
	put8(w, 4);      /* PM_TMR_LEN */
	put_zeros(w, 4); /* GPE lengths and base, CST_CNT */
	put16(w, NO_C2);
	put16(w, NO_C3);
	put_zeros(w, 4); /* flush size and stride */
	put_zeros(w, 4); /* duty offset and width, day and month alarm */
	put8(w, CENTURY);
	put16(w, BOOT_LEGACY | BOOT_NO_VGA);
	put8(w, 0);
	put32(w, FADT_WBINVD | FADT_PROC_C1 | FADT_NO_POWER | FADT_NO_SLEEP | FADT_RTC_NO_FIX |
			 FADT_TIMER_32 | FADT_RESET_REG);
	put_port(w, 8, 1, 0xcf9);
	put8(w, 0x06);
	put_zeros(w, 3); /* ARM flags, minor version */
	put64(w, 0);     /* the FACS is named by its 32-bit field */
	put64(w, dsdt);
	put_port(w, 32, 2, PM_BASE);
	put_no_port(w);
	put_port(w, 16, 2, PM_CONTROL);
	put_no_port(w);
	put_no_port(w);
	put_port(w, 32, 3, PM_TIMER);
	put_no_port(w); /* GPE0, GPE1, sleep control, sleep status */
	put_no_port(w);
	put_no_port(w);
	put_no_port(w);
	return end_table(w, start);
}

static void put_override(struct writer *w, u8 irq, u32 gsi, u16 flags)
{
	put8(w, 2);
	put8(w, 10);
	put8(w, 0); /* ISA */
	put8(w, irq);
	put32(w, gsi);
	put16(w, flags);
}

/* ACPI "Multiple APIC Description Table". */
static u32 put_madt(struct writer *w, const struct guest *g)
{
	size_t start = begin_table(w, "APIC", 3);

	put32(w, L1_LAPIC);
	put32(w, MADT_PCAT);
	for (unsigned i = 0; i < g->nr_vcpus; i++) {
		put8(w, 0);
		put8(w, 8);
		put8(w, i);
		put8(w, i);
		put32(w, 1); /* enabled */
	}
	put8(w, 1);
	put8(w, 12);
	put8(w, 0); /* IO-APIC id, as its register says */
	put8(w, 0);
	put32(w, L1_IOAPIC);
	put32(w, 0);
	put_override(w, 0, 2, ISO_EDGE_HIGH);
	put_override(w, SCI_IRQ, SCI_IRQ, ISO_LEVEL_HIGH);
	put8(w, 4); /* NMI at LINT1 */
	put8(w, 6);
	put8(w, ALL_PROCESSORS);
	put16(w, 0);
	put8(w, 1);
	return end_table(w, start);
}

static u32 put_rsdt(struct writer *w, u32 fadt, u32 madt)
{
	size_t start = begin_table(w, "RSDT", 1);

	put32(w, fadt);
	put32(w, madt);
	return end_table(w, start);
}

static u32 put_xsdt(struct writer *w, u32 fadt, u32 madt)
{
	size_t start = begin_table(w, "XSDT", 1);

	put64(w, fadt);
	put64(w, madt);
	return end_table(w, start);
}

/* ACPI "Root System Description Pointer": the first checksum covers the first revision's part. */
static void build_rsdp(u8 rsdp[RSDP_SIZE], u32 rsdt, u32 xsdt)
{
	struct writer w = {.data = rsdp, .max = RSDP_SIZE};

	put(&w, "RSD PTR ", 8);
	put8(&w, 0);
	put(&w, "NIDUS ", 6);
	put8(&w, 2);
	put32(&w, rsdt);
	put32(&w, RSDP_SIZE);
	put64(&w, xsdt);
	put_zeros(&w, 4);
	rsdp[8] = checksum(rsdp, RSDP_V1_SIZE);
	rsdp[32] = checksum(rsdp, RSDP_SIZE);
}

/* BIOS data area: COM1, the EBDA's segment, KiB of base memory. */
static bool write_bios_data(struct guest *g)
{
	const u16 com1 = 0x3f8, ebda = L1_EBDA >> 4, base = L1_EBDA >> 10, ebda_kib = 1;

	return guest_write(&g->mem, GPA(0x400), &com1, 2) && guest_write(&g->mem, GPA(0x40e), &ebda, 2) &&
	       guest_write(&g->mem, GPA(0x413), &base, 2) && guest_write(&g->mem, GPA(L1_EBDA), &ebda_kib, 2);
}

#define BIOS_CODE     (L1_ACPI_RSDP + RSDP_SIZE)
#define BIOS_SEGMENT  0xf0000000u
#define SERVICE_FIRST 0x10u
#define SERVICE_LAST  0x1au
#define MEMORY_SIZE   0x12u

/*
 * Kernels that start in protected mode go back to real mode to ask a BIOS for memory, discs and screen (Xen's
 * trampoline does); without vectors they would run away through low memory. The services say by the carry
 * flag that they do not exist, all but the size of conventional memory, which has no way to say so; every
 * other interrupt just returns.
 */
static const u8 bios_code[] = {
	0x1e,             /* push %ds */
	0xb8, 0x40, 0x00, /* mov $0x40, %ax */
	0x8e, 0xd8,       /* mov %ax, %ds */
	0xa1, 0x13, 0x00, /* mov 0x13, %ax: KiB, from the BIOS data area */
	0x1f,             /* pop %ds */
	0xcf,             /* iret */
#define NO_SERVICE 11
	0x55,                   /* push %bp */
	0x89, 0xe5,             /* mov %sp, %bp */
	0x80, 0x4e, 0x06, 0x01, /* orb $1, 6(%bp): CF in the caller's flags */
	0x5d,                   /* pop %bp */
#define JUST_RETURN 19
	0xcf /* iret */
};

static u32 bios_offset(unsigned vector)
{
	if (vector == MEMORY_SIZE)
		return 0;
	return vector >= SERVICE_FIRST && vector <= SERVICE_LAST ? NO_SERVICE : JUST_RETURN;
}

static bool write_bios(struct guest *g)
{
	u32 vector[256];

	for (unsigned i = 0; i < ARRAY_SIZE(vector); i++)
		vector[i] = BIOS_SEGMENT | ((BIOS_CODE & 0xffff) + bios_offset(i));
	return guest_write(&g->mem, GPA(0), vector, sizeof(vector)) &&
	       guest_write(&g->mem, GPA(BIOS_CODE), bios_code, sizeof(bios_code));
}

static bool write_tables(struct guest *g, u8 *buffer, size_t size)
{
	struct writer w = {.data = buffer, .max = MIN(size, TABLES_MAX)};
	u32 facs = put_facs(&w), dsdt = put_dsdt(&w);
	u32 fadt = put_fadt(&w, facs, dsdt), madt = put_madt(&w, g);
	u32 rsdt = put_rsdt(&w, fadt, madt), xsdt = put_xsdt(&w, fadt, madt);
	u8 rsdp[RSDP_SIZE];

	build_rsdp(rsdp, rsdt, xsdt);
	return !w.full && guest_write(&g->mem, GPA(L1_ACPI_BASE), buffer, w.size) &&
	       guest_write(&g->mem, GPA(L1_ACPI_RSDP), rsdp, sizeof(rsdp)) && write_bios_data(g) &&
	       write_bios(g);
}

/* Too big for the stack. Two guests may restart at the same time on two CPUs. */
bool machine_write_tables(struct guest *g)
{
	static u8 buffer[16384];
	static struct spinlock lock;
	bool ok;

	spin_lock(&lock);
	ok = write_tables(g, buffer, sizeof(buffer));
	spin_unlock(&lock);
	return ok;
}
