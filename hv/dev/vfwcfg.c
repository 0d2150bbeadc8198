/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The firmware configuration device of the emulators (selector 0x510, data 0x511, no DMA), with the items
 * that test images and OVMF ask for. Items are built when they are selected; an unknown one reads zeros, as
 * does everything behind an item's end. QEMU's "fw_cfg" specification.
 */
#include "hv/dev/internal.h"
#include "hv/guest.h"
#include "hv/lib.h"

enum item {
	ITEM_SIGNATURE = 0x00,
	ITEM_ID = 0x01,
	ITEM_RAM_SIZE = 0x03,
	ITEM_NO_GRAPHICS = 0x04,
	ITEM_NB_CPUS = 0x05,
	ITEM_MAX_CPUS = 0x0f,
	ITEM_FILES = 0x19,
	ITEM_E820 = 0x20,
};

#define ITEM_MASK   0x3fff /* without the write and architecture bits */
#define INTERFACE   1      /* traditional, no DMA */
#define FILE_NAME   56
#define E820_RECORD 20

static void put(struct vfwcfg *f, const void *data, size_t n)
{
	if (n > sizeof(f->data) - f->size)
		return;
	memcpy(f->data + f->size, data, n);
	f->size += (u32)n;
}

static void put_number(struct vfwcfg *f, u64 value, unsigned bytes)
{
	put(f, &value, bytes); /* little-endian, as we are */
}

static void put_big(struct vfwcfg *f, u32 value, unsigned bytes)
{
	u32 swapped = __builtin_bswap32(value) >> (32 - 8 * bytes);

	put(f, &swapped, bytes);
}

/* The directory: count, then size, selector, reserved, name of each; numbers are big-endian. */
static void put_directory(struct vfwcfg *f)
{
	char name[FILE_NAME] = "etc/e820";

	put_big(f, 1, 4);
	put_big(f, f->e820_size, 4);
	put_big(f, ITEM_E820, 2);
	put_big(f, 0, 2);
	put(f, name, sizeof(name));
}

static void select_item(struct machine *m, u16 key)
{
	const struct guest *g = m->guest;
	struct vfwcfg *f = &m->fwcfg;

	f->size = f->pos = 0;
	switch ((enum item)(key & ITEM_MASK)) {
	case ITEM_SIGNATURE:
		put(f, "QEMU", 4);
		break;
	case ITEM_ID:
		put_number(f, INTERFACE, 4);
		break;
	case ITEM_RAM_SIZE:
		put_number(f, g->mem.ram, 8);
		break;
	case ITEM_NO_GRAPHICS:
		put_number(f, 1, 2);
		break;
	case ITEM_NB_CPUS:
	case ITEM_MAX_CPUS:
		put_number(f, g->nr_vcpus, 2);
		break;
	case ITEM_FILES:
		put_directory(f);
		break;
	case ITEM_E820:
		put(f, f->e820, f->e820_size);
		break;
	}
}

/* Boot CPU only: the map is too big for the stack. */
void vfwcfg_init(struct machine *m)
{
	static struct memmap map;
	struct vfwcfg *f = &m->fwcfg;

	l1mem_memmap(&m->guest->mem, &map);
	f->e820_size = 0;
	for (unsigned i = 0; i < map.count && f->e820_size + E820_RECORD <= sizeof(f->e820); i++) {
		u64 start = map.range[i].start, size = map.range[i].end - start;
		u32 type = map.range[i].type;
		u8 *record = f->e820 + f->e820_size;

		memcpy(record, &start, 8);
		memcpy(record + 8, &size, 8);
		memcpy(record + 16, &type, 4);
		f->e820_size += E820_RECORD;
	}
}

void vfwcfg_reset(struct machine *m)
{
	select_item(m, ITEM_SIGNATURE);
}

void vfwcfg_out(struct machine *m, u16 port, unsigned size, u32 value)
{
	if (port == 0x510 && size == 2)
		select_item(m, (u16)value);
}

u32 vfwcfg_in(struct machine *m, u16 port, unsigned size)
{
	struct vfwcfg *f = &m->fwcfg;

	if (port != 0x511)
		return port_ones(size);
	return f->pos < f->size ? f->data[f->pos++] : 0;
}
