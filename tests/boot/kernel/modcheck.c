/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what a multiboot1 loader handed over: command line, memory and, for each module, its size, CRC-32
 * and string. The tests compute the same from the files. Must not use anything but the boot information.
 */
#include <stdint.h>

#define INFO_CMDLINE (1u << 2)
#define INFO_MODULES (1u << 3)
#define INFO_MMAP    (1u << 6)

struct info {
	uint32_t flags, mem_lower, mem_upper, boot_device, cmdline, mods_count, mods_addr, syms[4],
		mmap_length, mmap_addr;
};

struct module {
	uint32_t start, end, string, reserved;
};

struct range {
	uint32_t size;
	uint64_t base, length;
	uint32_t type;
} __attribute__((packed));

void kernel_main(uint32_t magic, uint32_t info_address);

static inline void outb(uint16_t port, uint8_t value)
{
	asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
{
	uint8_t value;

	asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static void *at(uint32_t address)
{
	return (void *)(uintptr_t)address;
}

static void put(char c)
{
	while (!(inb(0x3fd) & 0x20))
		;
	outb(0x3f8, (uint8_t)c);
}

static void puts(const char *s)
{
	while (*s)
		put(*s++);
}

static void put_hex(uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put("0123456789abcdef"[value >> shift & 15]);
}

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

static void power_off(uint32_t code)
{
	while (!(inb(0x3fd) & 0x40))
		;
	asm volatile("outl %0, %1" : : "a"(code), "Nd"((uint16_t)0xf4));
	for (const char *p = "Shutdown"; *p; p++)
		outb(0x8900, (uint8_t)*p);
	asm volatile("outw %0, %1" : : "a"((uint16_t)0x2000), "Nd"((uint16_t)0x604));
}

void kernel_main(uint32_t magic, uint32_t info_address)
{
	const struct info *info = at(info_address);
	const struct module *modules = at(info->mods_addr);

	outb(0x3fb, 3); /* eight bits, no parity */
	if (magic != 0x2badb002) {
		puts("not started by a multiboot1 loader\r\n");
		power_off(1);
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
	power_off(0);
}
