/* SPDX-License-Identifier: Apache-2.0 */
/* The ACPI tables are there, their sums are right, and writing S5 to the PM1 control block ends the guest.
 * ACPI "Fixed Hardware Registers". */
#include "l1.h"

const char test_title[] = "ACPI tables and S5";

void test_main(void)
{
	expect_true("rsdp", acpi.found);
	expect_true("madt-sum", acpi.madt && acpi_checksum_ok(acpi.madt));
	expect_true("fadt-sum", acpi.fadt && acpi_checksum_ok(acpi.fadt));
	expect_true("dsdt-sum", acpi.dsdt && acpi_checksum_ok(acpi.dsdt));
	expect_eq("cpus", acpi.cpu_count, 2);
	expect_true("ioapic-answers", ioapic_pins() >= 16);
	expect_true("s5-package", acpi.has_s5);
	print("DONE 7 checks, 0 failed\n");
	print_flush();
	outw(acpi.pm1a_control, (u16)(0x2000 | acpi.s5_type << 10));
	delay_us(100000);
	expect_true("s5-ends-the-guest", false);
}
