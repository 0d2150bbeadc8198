/* SPDX-License-Identifier: Apache-2.0 */
/* Verdict lines and the end of the machine. */
#include "report.h"
#include "print.h"
#include "x86.h"

static volatile u32 checks, failures;

static const char *base_name(const char *file)
{
	const char *base = file;

	for (; *file; file++)
		if (*file == '/' && strcmp(file, "/main.c"))
			base = file + 1;
	return base;
}

static void fail(const char *name, const char *file, int line, u64 got, const char *word, u64 want)
{
	__atomic_add_fetch(&failures, 1, __ATOMIC_SEQ_CST);
	print("FAIL %s %s:%d got %lx want %s%lx\n", name, base_name(file), line, got, word, want);
}

bool report_eq(const char *name, const char *file, int line, u64 got, u64 want)
{
	return report_range(name, file, line, got == want, got, want, "");
}

bool report_range(const char *name, const char *file, int line, bool ok, u64 got, u64 want, const char *word)
{
	__atomic_add_fetch(&checks, 1, __ATOMIC_SEQ_CST);
	if (ok)
		print("PASS %s\n", name);
	else
		fail(name, file, line, got, word, want);
	return ok;
}

bool report_between(const char *name, const char *file, int line, u64 got, u64 low, u64 high)
{
	if (got < low)
		return report_range(name, file, line, false, got, low, ">=");
	return report_range(name, file, line, got <= high, got, high, "<=");
}

u32 report_quiet(const char *name, const char *file, int line, u64 got, u64 want)
{
	if (got == want)
		return 0;
	__atomic_add_fetch(&checks, 1, __ATOMIC_SEQ_CST);
	fail(name, file, line, got, "", want);
	return 1;
}

void skip(const char *name, const char *why)
{
	checks++; /* a skipped check is one of the n */
	print("SKIP %s %s\n", name, why);
}

void report_done(void)
{
	print("DONE %u checks, %u failed\n", checks, failures);
	machine_exit(failures || !checks ? 1 : 0);
}

void machine_exit(u32 code)
{
	cli();
	print_flush();
	outl(0xf4, code);
	for (const char *p = "Shutdown"; *p; p++)
		outb(0x8900, (u8)*p);
	outw(0x604, 0x2000);
	outw(0xb004, 0x2000);
	for (;;)
		asm volatile("cli; hlt");
}
