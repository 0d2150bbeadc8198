/* SPDX-License-Identifier: Apache-2.0 */
/* VGA text, 80x25 at 0xb8000: bytes in, scrolling, cursor. */
#include "hv/lib.h"
#include "hv/screen.h"
#include "hv/x86.h"

#define COLUMNS 80
#define ROWS    25
#define BLANK   0x0720 /* space, light grey on black */

static unsigned at; /* cell index of the cursor */

static u16 *cells(void)
{
	return hpa_ptr(HPA(0xb8000));
}

void vga_init(void)
{
	for (unsigned i = 0; i < COLUMNS * ROWS; i++)
		cells()[i] = BLANK;
	at = 0;
}

static void scroll(void)
{
	memmove(cells(), cells() + COLUMNS, (ROWS - 1) * COLUMNS * 2);
	for (unsigned i = 0; i < COLUMNS; i++)
		cells()[(ROWS - 1) * COLUMNS + i] = BLANK;
	at -= COLUMNS;
}

static void put(char c)
{
	if (c == '\n')
		at += COLUMNS - at % COLUMNS;
	else if (c == '\r')
		at -= at % COLUMNS;
	else if (c == '\b')
		at -= at % COLUMNS ? 1 : 0;
	else if (c == '\t')
		at = ALIGN_UP(at + 1, 8u);
	else if ((u8)c >= ' ')
		cells()[at++] = (u16)(0x0700 | (u8)c);
	if (at >= COLUMNS * ROWS)
		scroll();
}

/* VGA "CRT Controller Registers" 0x0e and 0x0f: cursor location. */
static void move_cursor(void)
{
	out8(0x3d4, 0x0e);
	out8(0x3d5, (u8)(at >> 8));
	out8(0x3d4, 0x0f);
	out8(0x3d5, (u8)at);
}

void vga_write(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put(s[i]);
	move_cursor();
}
