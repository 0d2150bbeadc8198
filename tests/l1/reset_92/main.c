/* SPDX-License-Identifier: Apache-2.0 */
/* Reset through fast reset, bit 0 of port 0x92. */
#include "l1.h"

const char test_title[] = "reset by 92";

void test_main(void)
{
	expect_true("before-the-reset", true);
	print("DONE 1 checks, 0 failed\n");
	print_flush();
	outb(0x92, (u8)(inb(0x92) & ~1u));
	outb(0x92, (u8)(inb(0x92) | 1u));
	delay_us(100000);
	expect_true("reset-took-effect", false);
}
