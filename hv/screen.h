/* SPDX-License-Identifier: Apache-2.0 */
/* The two screens a loader can leave: VGA text and a framebuffer. Private to hv/console. */
#ifndef NIDUS_HV_SCREEN_H
#define NIDUS_HV_SCREEN_H

#include "hv/types.h"

struct framebuffer;

#define FONT_WIDTH  8
#define FONT_HEIGHT 16
#define FONT_FIRST  0x20
#define FONT_LAST   0x7e

/* Rows of a character, top first; bit 7 is the leftmost pixel. Characters without a glyph get a box. */
void font_glyph(u8 c, u8 rows[FONT_HEIGHT]);

void vga_init(void);
void vga_write(const char *s, size_t n);

/* False: this pixel format is not known. The framebuffer must be mapped at its machine address. */
bool fb_init(const struct framebuffer *fb);
void fb_write(const char *s, size_t n);

#endif
