/* SPDX-License-Identifier: Apache-2.0 */
/* Ends as its command line says: `exit=N` (one digit, port 0xf4), `shutdown` (port 0x8900), `triple`,
 * `reset`, `spin` (never). */
#include "small.h"

static const char *find(const char *text, const char *word)
{
	for (; *text; text++) {
		const char *a = text, *b = word;

		while (*b && *a == *b)
			a++, b++;
		if (!*b)
			return a;
	}
	return 0;
}

static void triple_fault(void)
{
	static const struct {
		uint16_t limit;
		uint32_t base;
	} __attribute__((packed)) none = {0, 0};

	asm volatile("lidt %0; ud2" : : "m"(none));
}

static void spin(void)
{
	puts("spinning\r\n");
	for (;;)
		asm volatile("cli; pause");
}

void kernel_main(uint32_t magic, uint32_t info_address)
{
	const struct info *info = at(info_address);
	const char *cmdline = magic == 0x2badb002 ? at(info->cmdline) : "";
	const char *code = find(cmdline, "exit=");

	serial_init();
	puts("hello\r\n");
	if (find(cmdline, "spin"))
		spin();
	if (find(cmdline, "triple"))
		triple_fault();
	if (find(cmdline, "reset"))
		outb(0xcf9, 6);
	if (code)
		port_f4((uint32_t)(*code - '0'));
	power_off();
}
