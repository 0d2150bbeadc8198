/* SPDX-License-Identifier: Apache-2.0 */
/* From the assembly start-up to test_main(): the order in which the library wakes up. */
#include "acpi.h"
#include "boot.h"
#include "cpu.h"
#include "irq.h"
#include "print.h"
#include "report.h"
#include "trap.h"

void bsp_main(void) __attribute__((noreturn));

void bsp_main(void)
{
	cpu_init();
	trap_init();
	boot_read();
	pic_init(0x20, 0x28); /* firmware leaves the timer running on vector 8 */
	print_init();
	print("\ntest: %s\n", test_title);
	acpi_read();
	cpu_list();
	test_main();
	report_done();
}
