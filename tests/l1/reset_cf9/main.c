/* SPDX-License-Identifier: Apache-2.0 */
/* Reset through the reset control register, port 0xcf9. */
#include "l1.h"

const char test_title[] = "reset by cf9";

void test_main(void)
{
	expect_true("before-the-reset", true);
	print("DONE 1 checks, 0 failed\n");
	print_flush();
	outb(0xcf9, 0x02);
	outb(0xcf9, 0x06);
	delay_us(100000);
	expect_true("reset-took-effect", false);
}
