/* SPDX-License-Identifier: Apache-2.0 */
/* Guests' consoles on L0's: raw or prefixed by "NAME: ", whole lines never torn; input to the guest in front
 * (Ctrl-] digit changes it). */
#ifndef NIDUS_HV_GUEST_CONSOLE_H
#define NIDUS_HV_GUEST_CONSOLE_H

#include "hv/types.h"

struct guest;

void guest_console_putc(struct guest *g, u8 c);
/* Print what is left of an unfinished line (at a guest's end). */
void guest_console_flush(struct guest *g);
/* Drain the host's COM1 and hand the bytes to the guest in front. Called on a console interrupt and from
 * idle. */
void guest_console_input(void);

#endif
