/* SPDX-License-Identifier: Apache-2.0 */
/* The word Shutdown on port 0x8900 ends a guest; a wrong word does not, and the machine starts over with the
 * first letter. */
#include "l1.h"

const char test_title[] = "Shutdown port";

static void spell(const char *word)
{
	for (; *word; word++)
		outb(0x8900, (u8)*word);
}

void test_main(void)
{
	spell("Shutdow");
	spell("Shutdoor");
	expect_true("wrong-words-do-nothing", true);
	print("DONE 1 checks, 0 failed\n");
	print_flush();
	spell("Shutdown");
	delay_us(100000);
	expect_true("word-ends-the-guest", false);
}
