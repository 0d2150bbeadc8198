/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First program of the test initramfs: prints the time stamp counter and hands over to the shell script
 * behind it. Runs without a C library, so that the stamp is that of the first user instructions. Must not do
 * anything else.
 */
typedef unsigned long u64;

static long syscall3(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return ret;
}

static u64 rdtsc(void)
{
	unsigned int lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return (u64)hi << 32 | lo;
}

static char *put_decimal(char *end, u64 value)
{
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

/*
 * `xchg %bx,%bx` is a no-operation that Bochs' debugger can be told to stop at ("magic breakpoint"): the test
 * reads the emulator's own clock there, which no hypervisor in between can shift.
 */
static void stop_for_the_emulator(void)
{
	__asm__ volatile("xchg %%bx, %%bx" ::: "memory");
}

__attribute__((used)) static void start(long *stack)
{
	static char line[] = "INIT tsc=                    \n";
	static const char *const argv[] = {"/init.sh", 0};
	char *const end = line + sizeof(line) - 2;
	char **envp = (char **)(stack + 1 + stack[0] + 1);
	char *digits, *out = line + 9;

	stop_for_the_emulator();
	digits = put_decimal(end, rdtsc());
	while (digits < end)
		*out++ = *digits++;
	*out++ = '\n';
	syscall3(1, 1, (long)line, out - line);
	syscall3(59, (long)argv[0], (long)argv, (long)envp);
	syscall3(60, 127, 0, 0);
}

__asm__(".globl _start\n_start:\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall start\n");
