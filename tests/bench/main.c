/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bench: prints what each operation of an L1 hypervisor costs, in TSC ticks, as `ROW name ticks
 * operations`. The command line says which set: set=plain (default), set=hyperv, set=noapicv. Under Bochs a
 * tick is one retired instruction of any level. Judges nothing: tools/nidus bench compares.
 */
#include "bench.h"
#include "vmx.h"

const char test_title[] = "bench";

volatile u32 mark_pairs;
static u32 rows;

void row(const char *name, u64 ticks, u32 operations)
{
	rows++;
	print("ROW %s %lu %u %u\n", name, ticks, operations, mark_pairs);
}

void test_main(void)
{
	if (boot_option("set=noapicv")) {
		rows_apic("-no-apicv");
	} else if (boot_option("set=hyperv")) {
		rows_hyperv();
	} else {
		rows_l1();
		if (vmx_available()) {
			rows_vmx();
			rows_round_trip();
			rows_memory();
		}
		rows_apic("");
	}
	expect_true("measured", rows != 0);
	report_done();
}
