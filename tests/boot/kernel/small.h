/* SPDX-License-Identifier: Apache-2.0 */
/* What the small kernels share: boot information, COM1, the end. Must not need interrupts, paging or a
 * library. */
#ifndef NIDUS_TESTS_BOOT_SMALL_H
#define NIDUS_TESTS_BOOT_SMALL_H

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

static inline void *at(uint32_t address)
{
	return (void *)(uintptr_t)address;
}

static inline void put(char c)
{
	while (!(inb(0x3fd) & 0x20))
		;
	outb(0x3f8, (uint8_t)c);
}

static inline void puts(const char *s)
{
	while (*s)
		put(*s++);
}

static inline void put_hex(uint64_t value)
{
	int shift = 60;

	while (shift && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		put("0123456789abcdef"[value >> shift & 15]);
}

/* Ends a guest of Nidus with this code; nothing on the bare machine. */
static inline void port_f4(uint32_t code)
{
	while (!(inb(0x3fd) & 0x40))
		;
	asm volatile("outl %0, %1" : : "a"(code), "Nd"((uint16_t)0xf4));
}

/* The emulators' own ports: Bochs, QEMU. */
static inline void power_off(void)
{
	for (const char *p = "Shutdown"; *p; p++)
		outb(0x8900, (uint8_t)*p);
	asm volatile("outw %0, %1" : : "a"((uint16_t)0x2000), "Nd"((uint16_t)0x604));
}

/* Eight bits, no parity: what is printed before any loader or BIOS set COM1 up. */
static inline void serial_init(void)
{
	outb(0x3fb, 3);
}

#endif
