/* SPDX-License-Identifier: Apache-2.0 */
/* Text on COM1, polled, safe from several CPUs. */
#pragma once

#include "types.h"

void print_init(void);
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Waits until the last character has left the UART: before anything that ends the machine. */
void print_flush(void);

/* Like snprintf; the library's printf knows %c %s %d %u %x %lx %ld %lu %p %%, width, '-' and '0'. */
size_t format_text(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
