/* SPDX-License-Identifier: Apache-2.0 */
/* A triple fault ends this guest and nothing else. */
#include "l1.h"

const char test_title[] = "triple fault";

void test_main(void)
{
	print_flush();
	lidt((struct desc_ptr){0, 0});
	asm volatile("ud2");
}
