/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what a multiboot1 loader handed over: command line, memory and, for each module, its size, CRC-32
 * and string. The tests compute the same from the files. Must not use anything but the boot information.
 */
#include "small.h"

static uint32_t crc32(const uint8_t *data, uint32_t size)
{
	static uint32_t table[256];
	uint32_t crc = ~0u;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (uint32_t i = 0; i < size; i++)
		crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
	return ~crc;
}

static void print_module(uint32_t number, const struct module *module)
{
	puts("module ");
	put_hex(number);
	puts(" size ");
	put_hex(module->end - module->start);
	puts(" crc ");
	put_hex(crc32(at(module->start), module->end - module->start));
	puts(module->start & 4095 ? " unaligned [" : " aligned [");
	puts(module->string ? at(module->string) : "");
	puts("]\r\n");
}

static void print_memory(const struct info *info)
{
	uint64_t ram = 0;

	for (uint32_t offset = 0; offset < info->mmap_length;) {
		const struct range *range = at(info->mmap_addr + offset);

		if (range->type == 1)
			ram += range->length;
		offset += range->size + 4;
	}
	puts("ram ");
	put_hex(ram);
	puts("\r\n");
}

void kernel_main(uint32_t magic, uint32_t info_address)
{
	const struct info *info = at(info_address);
	const struct module *modules = at(info->mods_addr);

	serial_init();
	if (magic != 0x2badb002) {
		puts("not started by a multiboot1 loader\r\n");
		port_f4(1);
		power_off();
		return;
	}
	puts("cmdline [");
	puts(info->flags & INFO_CMDLINE ? at(info->cmdline) : "");
	puts("]\r\n");
	if (info->flags & INFO_MMAP)
		print_memory(info);
	if (info->flags & INFO_MODULES)
		for (uint32_t i = 0; i < info->mods_count; i++)
			print_module(i, &modules[i]);
	puts("end of modules\r\n");
	port_f4(0);
	power_off();
}
