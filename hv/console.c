/* SPDX-License-Identifier: Apache-2.0 */
/* Which consoles there are, one lock around writing to them, and whose unfinished line stands on them. What a
 * line means is others' business. */
#include "hv/console.h"
#include "boot/boot_info.h"
#include "hv/lib.h"
#include "hv/options.h"
#include "hv/screen.h"
#include "hv/spinlock.h"
#include "hv/uart.h"

static struct spinlock lock;
static bool com1, vga, fb;
static const void *open_by; /* whose unfinished line it is; NULL: the cursor is in column 0 */

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

static void write_all(const char *s, size_t n)
{
	if (com1)
		uart_write(s, n);
	if (vga)
		vga_write(s, n);
	if (fb)
		fb_write(s, n);
}

static void end_line(void)
{
	if (open_by)
		write_all("\r\n", 2);
	open_by = NULL;
}

void console_write_as(const void *who, const char *prefix, const char *s, size_t n)
{
	if (!n)
		return;
	spin_lock(&lock);
	if (open_by != who)
		end_line();
	if (!open_by)
		write_all(prefix, strlen(prefix));
	write_all(s, n);
	open_by = s[n - 1] == '\n' ? NULL : who;
	spin_unlock(&lock);
}

void console_write(const char *s, size_t n)
{
	console_write_as(NULL, "", s, n);
}

void console_end_line(const void *who)
{
	spin_lock(&lock);
	if (open_by == who)
		end_line();
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
