/* SPDX-License-Identifier: Apache-2.0 */
/* Text on a framebuffer in ordinary memory: each pixel format, line ends, scrolling, and no pixel outside. */
/* SOURCES: hv/fb.c hv/font.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "boot/boot_info.h"
#include "hv/screen.h"

#define COLUMNS 10
#define ROWS    4
#define SPARE   24 /* bytes of a line behind the last pixel: must stay untouched */

static u8 *memory;
static struct framebuffer fb;

static void open_screen(u8 bpp)
{
	fb = (struct framebuffer){
		.width = COLUMNS * FONT_WIDTH + 3, .height = ROWS * FONT_HEIGHT + 5, .bpp = bpp};
	fb.pitch = fb.width * (bpp / 8) + SPARE;
	free(memory);
	memory = malloc((size_t)fb.pitch * fb.height);
	memset(memory, 0xee, (size_t)fb.pitch * fb.height);
	fb.base = HPA((u64)(uintptr_t)memory);
	assert_true(fb_init(&fb));
}

static bool pixel(unsigned x, unsigned y)
{
	const u8 *p = memory + (size_t)y * fb.pitch + (size_t)x * (fb.bpp / 8);

	return p[0] || p[1];
}

static bool cell_shows(unsigned column, unsigned row, char c)
{
	u8 glyph[FONT_HEIGHT];

	font_glyph((u8)c, glyph);
	for (unsigned y = 0; y < FONT_HEIGHT; y++)
		for (unsigned x = 0; x < FONT_WIDTH; x++)
			if (pixel(column * FONT_WIDTH + x, row * FONT_HEIGHT + y) !=
			    !!(glyph[y] & (0x80 >> x)))
				return false;
	return true;
}

static void expect_row(unsigned row, const char *text)
{
	for (unsigned i = 0; i < COLUMNS; i++)
		if (!cell_shows(i, row, text[i]))
			fail_msg("row %u column %u is not '%c'", row, i, text[i]);
}

static void expect_margin_untouched(void)
{
	for (unsigned y = 0; y < fb.height; y++)
		for (unsigned x = fb.pitch - SPARE - 3 * (fb.bpp / 8u); x < fb.pitch; x++)
			assert_int_equal(memory[(size_t)y * fb.pitch + x], 0xee);
	for (size_t i = (size_t)ROWS * FONT_HEIGHT * fb.pitch; i < (size_t)fb.pitch * fb.height; i++)
		assert_int_equal(memory[i], 0xee);
}

static void write_text(const char *s)
{
	fb_write(s, strlen(s));
}

static void each_format(void **state)
{
	static const u8 depths[] = {16, 24, 32};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(depths); i++) {
		open_screen(depths[i]);
		expect_row(0, "          ");
		write_text("Nidus 0{~}");
		expect_row(0, "Nidus 0{~}");
		expect_row(1, "          ");
		expect_margin_untouched();
	}
}

static void line_ends(void **state)
{
	(void)state;
	open_screen(32);
	write_text("ab\r\ncd\rX\ne\tf\bg\x01");
	expect_row(0, "ab        ");
	expect_row(1, "Xd        ");
	expect_row(2, "e       g ");
}

static void scrolling(void **state)
{
	(void)state;
	open_screen(32);
	write_text("one\ntwo\nthree\nfour\nfive\nsix");
	expect_row(0, "three     ");
	expect_row(1, "four      ");
	expect_row(2, "five      ");
	expect_row(3, "six       ");
	write_text("\n0123456789abc");
	expect_row(0, "five      ");
	expect_row(1, "six       ");
	expect_row(2, "0123456789");
	expect_row(3, "abc       ");
	expect_margin_untouched();
}

static void tab_at_the_end_of_the_screen(void **state)
{
	(void)state;
	open_screen(24);
	write_text("\n\n\n12345678\t!");
	expect_margin_untouched();
	expect_row(3, "      !   ");
}

static void unusable_formats(void **state)
{
	struct framebuffer bad;

	(void)state;
	open_screen(32);
	bad = fb;
	bad.bpp = 8;
	assert_false(fb_init(&bad));
	bad = fb;
	bad.width = 7;
	assert_false(fb_init(&bad));
	bad = fb;
	bad.pitch = 10;
	assert_false(fb_init(&bad));
}

/* Every printable character has a shape of its own. */
static void glyphs_differ(void **state)
{
	u8 a[FONT_HEIGHT], b[FONT_HEIGHT];

	(void)state;
	for (unsigned i = FONT_FIRST; i <= FONT_LAST + 1; i++) {
		font_glyph((u8)i, a);
		for (unsigned k = FONT_FIRST; k < i; k++) {
			font_glyph((u8)k, b);
			assert_memory_not_equal(a, b, FONT_HEIGHT);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format),      cmocka_unit_test(line_ends),
		cmocka_unit_test(scrolling),        cmocka_unit_test(tab_at_the_end_of_the_screen),
		cmocka_unit_test(unusable_formats), cmocka_unit_test(glyphs_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
