/* SPDX-License-Identifier: Apache-2.0 */
/* Ways to end the machine, the orderly one first, the emulators' ports behind it. */
#include "hv/poweroff.h"
#include "hv/tsc.h"
#include "hv/uart.h"
#include "hv/x86.h"

#define SLP_TYP_SHIFT 10 /* ACPI "PM1 Control Registers" */
#define SLP_EN        BIT32(13)
#define SCI_EN        BIT32(0)
#define SETTLE_US     100000

static struct power_registers regs;

void poweroff_init(const struct power_registers *r)
{
	regs = *r;
}

/* Firmware starts in legacy mode; S5 works in ACPI mode only (ACPI "Transitioning from the Working to the
 * Soft Off State"). */
static void acpi_mode_on(void)
{
	if ((in16(regs.pm1a_control) & SCI_EN) || !regs.smi_command || !regs.acpi_enable)
		return;
	out8(regs.smi_command, regs.acpi_enable);
	for (unsigned i = 0; i < 1000 && !(in16(regs.pm1a_control) & SCI_EN); i++)
		tsc_delay_us(100);
}

static void set_sleep(u16 port, u8 type)
{
	u16 keep = (u16)(in16(port) & ~(7u << SLP_TYP_SHIFT | SLP_EN));

	out16(port, (u16)(keep | type << SLP_TYP_SHIFT));
	out16(port, (u16)(keep | type << SLP_TYP_SHIFT | SLP_EN));
}

static void acpi_off(void)
{
	if (!regs.has_s5 || !regs.pm1a_control)
		return;
	acpi_mode_on();
	if (regs.pm1b_control)
		set_sleep(regs.pm1b_control, regs.s5_type_b);
	set_sleep(regs.pm1a_control, regs.s5_type_a);
	tsc_delay_us(SETTLE_US);
}

/* Port 0xf4 is behind the coprocessor's on a real machine: nobody's. */
static void power_off(u32 status)
{
	if (status)
		out32(0xf4, status);
	acpi_off();
	out16(0x604, 0x2000);  /* QEMU q35, virtual machines with PIIX4-like PM at 0x600 */
	out16(0xb004, 0x2000); /* older QEMU and Bochs */
	for (const char *s = "Shutdown"; *s; s++)
		out8(0x8900, (u8)*s); /* Bochs */
}

static void reset(void)
{
	static const struct {
		u16 limit;
		u64 base;
	} __attribute__((packed)) no_idt;

	if (regs.reset_port)
		out8(regs.reset_port, regs.reset_value);
	tsc_delay_us(SETTLE_US);
	out8(0xcf9, 0x02);
	out8(0xcf9, 0x06);
	tsc_delay_us(SETTLE_US);
	out8(0x64, 0xfe);
	tsc_delay_us(SETTLE_US);
	asm volatile("lidt %0; int3" : : "m"(no_idt)); /* triple fault */
}

void machine_end(enum ending how, u32 status)
{
	uart_drain();
	if (how == END_POWEROFF)
		power_off(status);
	if (how == END_REBOOT)
		reset();
	for (;;)
		asm volatile("cli; hlt");
}
