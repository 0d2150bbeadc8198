/* SPDX-License-Identifier: Apache-2.0 */
/* The dword written to port 0xf4 is the guest's exit code. */
#include "l1.h"

const char test_title[] = "exit code";

void test_main(void)
{
	expect_true("before-the-end", true);
	print("DONE 1 checks, 0 failed\n");
	machine_exit(0x2a);
}
