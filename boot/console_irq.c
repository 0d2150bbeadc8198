/* SPDX-License-Identifier: Apache-2.0 */
/* L0 uses one device interrupt, typed characters. All other pins stay masked for good: guests get no physical
 * devices. */
#include "boot/console_irq.h"
#include "boot/acpi.h"
#include "hv/cpu.h"
#include "hv/uart.h"
#include "hv/x86.h"
#include "mm/hostpt.h"

#define COM1_IRQ       4
#define IOAPIC_VERSION 1
#define IOAPIC_PIN(n)  (0x10 + 2 * (n))
#define PIN_MASKED     BIT32(16)
#define PIN_LEVEL      BIT32(15)
#define PIN_LOW        BIT32(13)

static volatile u32 *ioapic_at(const struct acpi_ioapic *io)
{
	return hpa_ptr(HPA(io->address));
}

/* IO-APIC: register select at 0x00, window at 0x10. */
static u32 ioapic_read(const struct acpi_ioapic *io, u32 reg)
{
	ioapic_at(io)[0] = reg;
	return ioapic_at(io)[4];
}

static void ioapic_write(const struct acpi_ioapic *io, u32 reg, u32 value)
{
	ioapic_at(io)[0] = reg;
	ioapic_at(io)[4] = value;
}

static u32 ioapic_pins(const struct acpi_ioapic *io)
{
	return (ioapic_read(io, IOAPIC_VERSION) >> 16 & 0xff) + 1;
}

/* 8259A initialisation words; the vectors 0x20-0x2f never fire, for all lines are masked. */
void pic_silence(void)
{
	static const u8 words[][2] = {{0x11, 0x11}, {0x20, 0x28}, {0x04, 0x02}, {0x01, 0x01}};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		out8(i ? 0x21 : 0x20, words[i][0]);
		out8(i ? 0xa1 : 0xa0, words[i][1]);
	}
	out8(0x21, 0xff);
	out8(0xa1, 0xff);
}

void ioapics_silence(void)
{
	for (unsigned i = 0; i < acpi.nr_ioapics; i++) {
		const struct acpi_ioapic *io = &acpi.ioapic[i];

		hostpt_map_device(HPA(io->address), PAGE_SIZE);
		for (u32 pin = 0; pin < ioapic_pins(io); pin++)
			ioapic_write(io, IOAPIC_PIN(pin), PIN_MASKED);
	}
}

/* Where an ISA interrupt really arrives; ISA's own way (edge, high) unless the MADT overrides it. */
static struct acpi_override isa_route(u8 irq)
{
	for (unsigned i = 0; i < acpi.nr_overrides; i++)
		if (acpi.override[i].irq == irq)
			return acpi.override[i];
	return (struct acpi_override){.irq = irq, .gsi = irq};
}

void console_irq_enable(void)
{
	struct acpi_override route = isa_route(COM1_IRQ);
	u32 low = HOST_VEC_CONSOLE;

	low |= route.flags & ACPI_OVERRIDE_LOW ? PIN_LOW : 0;
	low |= route.flags & ACPI_OVERRIDE_LEVEL ? PIN_LEVEL : 0;
	for (unsigned i = 0; i < acpi.nr_ioapics; i++) {
		const struct acpi_ioapic *io = &acpi.ioapic[i];
		u32 pin = route.gsi - io->gsi_base;

		if (route.gsi < io->gsi_base || pin >= ioapic_pins(io))
			continue;
		ioapic_write(io, IOAPIC_PIN(pin) + 1, cpus[0]->apic_id << 24);
		ioapic_write(io, IOAPIC_PIN(pin), low);
		uart_enable_interrupt();
	}
}
