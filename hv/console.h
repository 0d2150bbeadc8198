/* SPDX-License-Identifier: Apache-2.0 */
/* L0's consoles: COM1, VGA text, framebuffer. What guests print comes through here too (hv/dev/vuart,
 * hv/guest_console). */
#ifndef NIDUS_HV_CONSOLE_H
#define NIDUS_HV_CONSOLE_H

#include "hv/types.h"

struct options;
struct framebuffer;

/* Usable from the first instruction of C on: COM1 at 115200, and VGA text when `fb` names no graphic mode. */
void console_early_init(void);
/* Choose consoles by console=; `fb` may be NULL. */
void console_init(const struct options *opt, const struct framebuffer *fb);
/* L0's own text, whole lines, to every console. Like console_write_as with nobody as `who`. */
void console_write(const char *s, size_t n);
/*
 * Text of `who` to every console, under one lock: nothing comes between its bytes. Another's unfinished line
 * is ended first; `prefix` stands in front when the text does not go on with `who`'s own unfinished line.
 * Only one line end is looked at, the one at the end of the text.
 */
void console_write_as(const void *who, const char *prefix, const char *s, size_t n);
/* End the unfinished line, if it is `who`'s. */
void console_end_line(const void *who);
/* One byte typed at COM1, or -1. Never waits. */
int console_getc(void);
/* For panic and NMI: drop the lock whoever holds it. */
void console_break_lock(void);

#endif
