/* SPDX-License-Identifier: Apache-2.0 */
/* Which consoles there are, and one lock around writing to them. What a line means is others' business. */
#include "hv/console.h"
#include "boot/boot_info.h"
#include "hv/options.h"
#include "hv/screen.h"
#include "hv/spinlock.h"
#include "hv/uart.h"

static struct spinlock lock;
static bool com1, vga, fb;

void console_early_init(void)
{
	com1 = uart_init(115200);
}

/* The screen the loader left: pixels, or text. No framebuffer data at all means BIOS text. */
static void use_screen(const struct options *opt, const struct framebuffer *screen)
{
	bool pixels = screen && !screen->text;

	if (pixels && !fb && (opt->fb || !opt->screen_given))
		fb = fb_init(screen);
	if (!pixels && !vga && (opt->vga || !opt->screen_given)) {
		vga_init();
		vga = true;
	}
}

void console_init(const struct options *opt, const struct framebuffer *screen)
{
	if (opt->com1 && opt->baud != 115200)
		uart_init(opt->baud);
	com1 = com1 && opt->com1;
	use_screen(opt, screen);
}

void console_write(const char *s, size_t n)
{
	spin_lock(&lock);
	if (com1)
		uart_write(s, n);
	if (vga)
		vga_write(s, n);
	if (fb)
		fb_write(s, n);
	spin_unlock(&lock);
}

int console_getc(void)
{
	return com1 ? uart_getc() : -1;
}

void console_break_lock(void)
{
	lock = (struct spinlock){0};
}
