/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text on a framebuffer. Reading video memory is slow, so two arrays in RAM say what stands on the screen and
 * what should; only cells that differ are drawn, and nothing is ever read back.
 */
#include "hv/screen.h"
#include "boot/boot_info.h"
#include "hv/lib.h"

#define CELLS_MAX   65536
#define GREY_BYTE   0xc0   /* 24 and 32 bits: every component, so their order does not matter */
#define GREY_16     0xc618 /* 5-6-5 */
#define TAB_COLUMNS 8

static struct framebuffer fb;
static unsigned columns, rows, at;
static unsigned dirty_from, dirty_to; /* cells [from, to) may differ */
static u8 want[CELLS_MAX], shown[CELLS_MAX];

static u8 *pixel_row(unsigned cell, unsigned y)
{
	u64 line = (u64)(cell / columns) * FONT_HEIGHT + y;

	return (u8 *)hpa_ptr(fb.base) + line * fb.pitch + (u64)(cell % columns) * FONT_WIDTH * (fb.bpp / 8u);
}

static void draw_row(u8 *p, u8 bits)
{
	unsigned bytes = fb.bpp / 8u;

	for (unsigned x = 0; x < FONT_WIDTH; x++, p += bytes) {
		bool on = bits & (0x80 >> x);

		if (bytes == 4)
			*(volatile u32 *)(void *)p = on ? GREY_BYTE * 0x010101u : 0;
		else if (bytes == 2)
			*(volatile u16 *)(void *)p = on ? GREY_16 : 0;
		else
			for (unsigned i = 0; i < 3; i++)
				((volatile u8 *)p)[i] = on ? GREY_BYTE : 0;
	}
}

static void draw_cell(unsigned cell)
{
	u8 glyph[FONT_HEIGHT];

	font_glyph(want[cell], glyph);
	for (unsigned y = 0; y < FONT_HEIGHT; y++)
		draw_row(pixel_row(cell, y), glyph[y]);
	shown[cell] = want[cell];
}

static void flush(void)
{
	for (unsigned i = dirty_from; i < dirty_to; i++)
		if (want[i] != shown[i])
			draw_cell(i);
	dirty_from = CELLS_MAX;
	dirty_to = 0;
}

static void mark(unsigned from, unsigned to)
{
	dirty_from = MIN(dirty_from, from);
	dirty_to = MAX(dirty_to, to);
}

bool fb_init(const struct framebuffer *f)
{
	fb = *f;
	columns = fb.width / FONT_WIDTH;
	rows = fb.height / FONT_HEIGHT;
	if ((fb.bpp != 16 && fb.bpp != 24 && fb.bpp != 32) || !columns || !rows ||
	    fb.pitch < columns * FONT_WIDTH * (fb.bpp / 8u))
		return false;
	columns = MIN(columns, (unsigned)CELLS_MAX);
	rows = MIN(rows, CELLS_MAX / columns);
	at = 0;
	memset(want, ' ', sizeof(want));
	memset(shown, 0, sizeof(shown)); /* unlike any cell: everything is drawn once */
	mark(0, columns * rows);
	flush();
	return true;
}

static void scroll(void)
{
	memmove(want, want + columns, (size_t)columns * (rows - 1));
	memset(want + columns * (rows - 1), ' ', columns);
	at -= columns;
	mark(0, columns * rows);
}

static void put(char c)
{
	if (c == '\n') {
		at += columns - at % columns;
	} else if (c == '\r') {
		at -= at % columns;
	} else if (c == '\b') {
		at -= at % columns ? 1 : 0;
	} else if (c == '\t') {
		at += TAB_COLUMNS - at % columns % TAB_COLUMNS;
	} else if ((u8)c >= ' ') {
		want[at] = (u8)c;
		mark(at, at + 1);
		at++;
	}
	while (at >= columns * rows)
		scroll();
}

void fb_write(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(s[i]);
	flush();
}
