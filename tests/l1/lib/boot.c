/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the multiboot information. Multiboot specification, "Boot information format". */
#include "boot.h"

#define MAGIC 0x2badb002

extern u32 boot_magic, boot_info_addr;

struct multiboot_info {
	u32 flags, mem_lower, mem_upper, boot_device, cmdline;
	u32 mods_count, mods_addr, syms[4], mmap_length, mmap_addr;
};

struct multiboot_range {
	u32 size;
	u64 base, length;
	u32 type;
} __attribute__((packed));

struct boot boot;

static void copy_cmdline(u32 at)
{
	const char *p = ptr_to(at);

	for (size_t i = 0; i + 1 < sizeof(boot.cmdline) && p[i]; i++)
		boot.cmdline[i] = p[i];
}

static void copy_ranges(u32 at, u32 length)
{
	u64 end = (u64)at + length;

	for (u64 p = at; p < end && boot.range_count < ARRAY_SIZE(boot.ranges);) {
		const struct multiboot_range *r = ptr_to(p);

		boot.ranges[boot.range_count++] = (struct mem_range){r->base, r->length, r->type};
		p += r->size + 4;
	}
}

void boot_read(void)
{
	const struct multiboot_info *m = ptr_to(boot_info_addr);

	boot.magic = boot_magic;
	if (boot_magic != MAGIC)
		return;
	boot.flags = m->flags;
	if (m->flags & BIT(0))
		boot.mem_upper_kb = m->mem_upper;
	if (m->flags & BIT(2))
		copy_cmdline(m->cmdline);
	if ((m->flags & BIT(3)) && m->mods_count) {
		boot.module_count = m->mods_count;
		boot.module_start = ((const u32 *)ptr_to(m->mods_addr))[0];
		boot.module_end = ((const u32 *)ptr_to(m->mods_addr))[1];
	}
	if (m->flags & BIT(6))
		copy_ranges(m->mmap_addr, m->mmap_length);
}

u64 boot_ram_bytes(void)
{
	u64 bytes = 0;

	for (u32 i = 0; i < boot.range_count; i++)
		if (boot.ranges[i].type == MEM_RAM)
			bytes += boot.ranges[i].size;
	return bytes;
}

bool boot_option(const char *word)
{
	size_t n = strlen(word);

	for (const char *p = boot.cmdline; *p; p++) {
		bool starts = p == boot.cmdline || p[-1] == ' ';

		if (starts && !memcmp(p, word, n) && (!p[n] || p[n] == ' ' || word[n - 1] == '='))
			return true;
	}
	return false;
}
