/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests' consoles on L0's. A raw guest's bytes go straight through. A prefixed guest's bytes are gathered to
 * lines, so that lines of two guests never tear; an unfinished line (a prompt) is shown after a while, and
 * hv/console ends it before anything else is printed. Knows nothing of UARTs.
 */
#include "hv/guest_console.h"
#include "hv/console.h"
#include "hv/dev/machine.h"
#include "hv/guest.h"
#include "hv/lib.h"
#include "hv/print.h"
#include "hv/spinlock.h"
#include "hv/timer.h"
#include "hv/x86.h"

#define LINE_MAX     1024
#define LINE_END     2            /* "\r\n" */
#define QUIET_TIME   (tsc_hz / 5) /* an unfinished line is shown when nothing came for so long */
#define CTRL_BRACKET 0x1d
#define INPUT_BURST  64 /* bytes taken in one go */

struct line {
	char text[LINE_MAX + LINE_END];
	size_t used;
	u64 last; /* host TSC of the last byte */
	struct timer timer;
};

static struct spinlock lock; /* all below; never held while a device's lock is taken */
static struct line lines[GUESTS_MAX];
static unsigned front; /* index in guests[] */
static bool escape;    /* Ctrl-] was typed */

/* Raw guests share the cursor: byte by byte they cannot be told apart. */
static const void *writer(const struct guest *g)
{
	return g->console_prefix ? (const void *)g : lines;
}

/* Show what was gathered. `whole`: its newline came. */
static void show(struct guest *g, struct line *l, bool whole)
{
	char prefix[sizeof(g->name) + 2];

	if (whole) {
		l->text[l->used++] = '\r';
		l->text[l->used++] = '\n';
	}
	format(prefix, sizeof(prefix), "%s: ", g->name);
	console_write_as(g, prefix, l->text, l->used);
	l->used = 0;
}

static void on_timer(void *arg)
{
	struct guest *g = arg;
	struct line *l = &lines[g->id];

	spin_lock(&lock);
	if (l->used && rdtsc() - l->last < QUIET_TIME)
		timer_arm(&l->timer, l->last + QUIET_TIME);
	else
		show(g, l, false);
	spin_unlock(&lock);
}

static void put_prefixed(struct guest *g, struct line *l, u8 c)
{
	if (c == '\r')
		return;
	if (c == '\n') {
		show(g, l, true);
		return;
	}
	if (l->used == LINE_MAX)
		show(g, l, false);
	l->text[l->used++] = (char)c;
	l->last = rdtsc();
	if (l->timer.cpu)
		return;
	l->timer.fn = on_timer;
	l->timer.arg = g;
	timer_arm(&l->timer, l->last + QUIET_TIME);
}

void guest_console_putc(struct guest *g, u8 c)
{
	struct line *l = &lines[g->id];
	char raw = (char)c;

	spin_lock(&lock);
	if (g->console_prefix)
		put_prefixed(g, l, c);
	else
		console_write_as(writer(g), "", &raw, 1);
	spin_unlock(&lock);
}

void guest_console_flush(struct guest *g)
{
	struct line *l = &lines[g->id];

	timer_cancel(&l->timer);
	spin_lock(&lock);
	show(g, l, false);
	console_end_line(writer(g));
	spin_unlock(&lock);
}

static void choose_front(u8 digit)
{
	unsigned n = (unsigned)(digit - '0');

	if (digit < '0' || digit > '9' || n >= nr_guests || !guests[n])
		return;
	front = n;
	log_info("input goes to guest %s", guests[n]->name);
}

/* Ctrl-] digit: that guest comes to the front. Ctrl-] Ctrl-]: one Ctrl-] for the guest. */
static bool taken(u8 c)
{
	if (escape) {
		escape = false;
		if (c == CTRL_BRACKET)
			return false;
		choose_front(c);
		return true;
	}
	escape = c == CTRL_BRACKET;
	return escape;
}

void guest_console_input(void)
{
	for (unsigned i = 0; i < INPUT_BURST; i++) {
		struct guest *g = NULL;
		int c = console_getc();
		bool mine;

		if (c < 0)
			return;
		spin_lock(&lock);
		mine = taken((u8)c);
		if (front < nr_guests)
			g = guests[front];
		spin_unlock(&lock);
		if (!mine && g && g->machine)
			machine_console_input(g->machine, (u8)c);
	}
}
