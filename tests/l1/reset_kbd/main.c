/* SPDX-License-Identifier: Apache-2.0 */
/* Reset through the keyboard controller's reset line, command 0xfe to port 0x64. */
#include "l1.h"

const char test_title[] = "reset by kbd";

void test_main(void)
{
	expect_true("before-the-reset", true);
	print("DONE 1 checks, 0 failed\n");
	print_flush();
	outb(0x64, 0xfe);
	delay_us(100000);
	expect_true("reset-took-effect", false);
}
