/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hostile kernels: a sound image of each kind, damaged at the places the input names. A loader may refuse in
 * one line or load; it may never touch memory that is not the guest's, and an accepted kernel starts in RAM.
 */
/* SOURCES: hv/load_linux.c hv/load_multiboot1.c hv/load_multiboot2.c */
/* SOURCES: hv/load_elf.c hv/load_map.c hv/load_mb.c */
/* SOURCES: mm/guest_copy.c mm/guest_walk.c mm/guest_walk_fast.c mm/l1mem.c mm/memmap.c mm/ept.c */
#include <assert.h>
#include <stdio.h>
#include "guest_ram.h"
#include "hv/guest.h"

int vformat(char *buf, size_t n, const char *fmt, va_list ap)
{
	return vsnprintf(buf, n, fmt, ap);
}

#define IMAGE_SIZE 4096u
static struct guest guest;
static u8 *image; /* of exactly IMAGE_SIZE bytes, so that ASan sees a read behind it */

static void put32(unsigned at, u32 v)
{
	memcpy(image + at, &v, 4);
}

static void make_linux(void)
{
	put32(0x1f1, 1);
	put32(0x1fe, 0x66ebaa55);
	put32(0x202, 0x53726448);
	put32(0x206, 0x020f);
	put32(0x22c, 0x7fffffff);
	put32(0x230, 0x200000);
	put32(0x234, 0x10001);
	put32(0x238, 255);
	put32(0x258, 0x200000);
	put32(0x260, 0x100000);
}

static void make_elf32(void)
{
	const u32 segment[8] = {1, 0x400, 0x100000, 0x100000, 0x800, 0x3000, 7, 0x1000};

	memcpy(image, "\177ELF\1\1\1", 7);
	put32(16, 2 | 3 << 16);
	put32(24, 0x100010);
	put32(28, 52);
	put32(42, 32 | 2 << 16);
	memcpy(image + 52, segment, sizeof(segment));
}

static void make_elf64(void)
{
	const u64 segment[7] = {1 | 7ull << 32, 0x400, 0x100000, 0x100000, 0x800, 0x3000, 0x1000};

	memcpy(image, "\177ELF\2\1\1", 7);
	put32(16, 2 | 62 << 16);
	put32(24, 0x100010);
	put32(32, 64);
	put32(54, 56 | 1 << 16);
	memcpy(image + 64, segment, sizeof(segment));
}

static void make_mb1(u32 flags)
{
	const u32 header[8] = {0x1badb002, flags,   -(0x1badb002u + flags), 0x200100, 0x200000, 0x200c00,
			       0x201000,   0x200123};

	memcpy(image + 0x200, header, sizeof(header));
}

static void make_mb2(void)
{
	const u32 header[] = {0xe85250d6, 0,        80,       -(0xe85250d6u + 80),
			      1,          16,       4,        6,
			      2,          24,       0x200300, 0x200000,
			      0x200c00,   0x201000, 3,        12,
			      0x200123,   0,        0,        8};

	memcpy(image + 0x300, header, sizeof(header));
}

/* Six bytes each: where, whether one byte or four, and what. */
static void damage(const u8 *data, size_t size)
{
	while (size >= 6) {
		unsigned at = (data[0] | (unsigned)data[1] << 8) % (IMAGE_SIZE - 4);

		memcpy(image + at, data + 2, data[1] & 0x80 ? 4 : 1);
		data += 6;
		size -= 6;
	}
}

static void right_checksum(unsigned at, unsigned words)
{
	u32 sum = 0, v;

	for (unsigned i = 0; i < words; i++) {
		memcpy(&v, image + at + 4 * i, 4);
		sum += v;
	}
	put32(at + 4 * words, -sum);
}

static void make_image(u8 kind)
{
	memset(image, 0, IMAGE_SIZE);
	if (kind & 1)
		make_linux();
	if (kind & 2)
		make_elf32();
	if (kind & 4)
		make_elf64();
	if (kind & 8)
		make_mb1(kind & 16 ? 0x10003 : 3);
	if (kind & 32)
		make_mb2();
}

typedef bool loader(struct guest *g, struct entry_state *out, char *err, size_t err_size);

static void try(loader *load)
{
	struct entry_state entry = {0};
	char err[64] = "";

	if (load(&guest, &entry, err, sizeof(err)))
		assert(entry.rip < guest.mem.low && entry.gdt_base + entry.gdt_limit < guest.mem.low);
	else
		assert(memchr(err, 0, sizeof(err)) && !strchr(err, '\n'));
	assert(!pages_live);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static u8 module[5000];

	if (size < 2)
		return 0;
	if (!image) {
		image = malloc(IMAGE_SIZE);
		guest_ram_create(&guest.mem, 4 * MIB);
		guest.cmdline = "a b";
		strcpy(guest.name, "fuzz");
		guest.nr_modules = 1;
		guest.module[0] = (struct guest_module){ptr_hpa(module), sizeof(module), "m", ROLE_INITRD};
	}
	make_image(data[0]);
	damage(data + 2, size - 2);
	if (data[1] & 1)
		right_checksum(0x200, 2);
	if (data[1] & 2)
		right_checksum(0x300, 3);
	guest.kernel = (struct guest_module){.start = ptr_hpa(image), .size = IMAGE_SIZE};
	try(load_linux);
	try(load_multiboot1);
	try(load_multiboot2);
	return 0;
}
