/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts. One line a check: `PASS name`, `FAIL name file:line got want`, `SKIP name why`; the last line is
 * `DONE n checks, m failed`. A name is one word, the same on every machine, and holds no measured value.
 */
#pragma once

#include "types.h"

#define expect_eq(name, got, want) report_eq(name, __FILE__, __LINE__, (u64)(got), (u64)(want))
#define expect_ne(name, got, other)                                                                          \
	report_range(name, __FILE__, __LINE__, (u64)(got) != (u64)(other), (u64)(got), (u64)(other), "not")
#define expect_true(name, ok) report_eq(name, __FILE__, __LINE__, !!(ok), 1)
#define expect_near(name, got, low, high)                                                                    \
	report_between(name, __FILE__, __LINE__, (u64)(got), (u64)(low), (u64)(high))

/* For checks made in a loop: only a failure is printed; close the loop with expect_true. */
#define count_eq(bad, name, got, want)                                                                       \
	((bad) += report_quiet(name, __FILE__, __LINE__, (u64)(got), (u64)(want)))

bool report_eq(const char *name, const char *file, int line, u64 got, u64 want);
bool report_range(const char *name, const char *file, int line, bool ok, u64 got, u64 want, const char *word);
bool report_between(const char *name, const char *file, int line, u64 got, u64 low, u64 high);
u32 report_quiet(const char *name, const char *file, int line, u64 got, u64 want);
void skip(const char *name, const char *why);

/* Prints the closing line and ends the guest: exit 0 when nothing failed, else 1. */
void report_done(void) __attribute__((noreturn));

/* Ends the guest or the machine with this code, in every way the machine may know. */
void machine_exit(u32 code) __attribute__((noreturn));

/* Each program gives these two. */
extern const char test_title[];
void test_main(void);
