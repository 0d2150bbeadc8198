/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formatted output. `format` is pure; the log_ functions write one line, "nidus: " in front and a newline
 * behind, to all consoles when the log level allows it. Known conversions: %d %u %x %lx %lu %llx %llu %zu %s
 * %c %p %%, with 0-padding, width and '-' and '#'.
 */
#ifndef NIDUS_HV_PRINT_H
#define NIDUS_HV_PRINT_H

#include <stdarg.h>
#include "hv/types.h"

/* LOG_ALWAYS: lines that other programs read, shown whatever loglevel= says. */
enum log_level { LOG_ALWAYS = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern enum log_level log_level; /* what is shown; LOG_INFO until the command line says otherwise */

/* Like snprintf: returns the length that was wanted, ends with NUL when n > 0. */
int format(char *buf, size_t n, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int vformat(char *buf, size_t n, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_always(...) log_line(LOG_ALWAYS, __VA_ARGS__)
#define log_error(...)  log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)   log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)   log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...)  log_line(LOG_DEBUG, __VA_ARGS__)

#endif
