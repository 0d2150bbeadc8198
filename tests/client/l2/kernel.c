/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small kernel to be run as L2, by L1's QEMU (multiboot1) or by L1's Xen (PVH): says what it is on COM1 and
 * on Xen's debug port, works a little, ends the machine through QEMU's isa-debug-exit at port 0xf4 or by a
 * call of Xen's. 32-bit, no paging, no interrupts. Must not need any other device.
 */
typedef unsigned int u32;

#define COM1       0x3f8
#define COM1_LSR   (COM1 + 5)
#define LSR_THRE   0x20
#define DEBUG_PORT 0xe9
#define DEBUG_EXIT 0xf4
#define EXIT_GOOD  0x10 /* isa-debug-exit makes (v << 1) | 1 of it */
#define EXIT_BAD   0x11

#define MULTIBOOT1_MAGIC 0x2badb002u
#define PVH_MAGIC        0x336ec578u

/* Xen's public headers: sched.h. */
#define HYPERCALL_SCHED_OP 29
#define SCHEDOP_SHUTDOWN   2
#define SHUTDOWN_POWEROFF  0
#define SHUTDOWN_CRASH     3

static inline void outb(unsigned short port, unsigned char value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outl(unsigned short port, u32 value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline unsigned char inb(unsigned short port)
{
	unsigned char value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

/* Where there is no COM1 its status reads as all ones. */
static void put_char(char c)
{
	while (!(inb(COM1_LSR) & LSR_THRE))
		;
	outb(COM1, (unsigned char)c);
	outb(DEBUG_PORT, (unsigned char)c);
}

static void put(const char *s)
{
	for (; *s; s++)
		put_char(*s);
}

/* The hypervisor bit of CPUID leaf 1 must be set by L1: each CPUID is an exit that L1 answers. */
static int cpuid_tells_a_hypervisor(void)
{
	u32 a = 1, b, c, d;

	__asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
	return (int)(c >> 31);
}

/* First touch of 4 MiB, one word a page, then the words are read again: walks through EPT12. */
static int memory_keeps_its_words(void)
{
	volatile u32 *const first = (volatile u32 *)0x800000;

	for (u32 page = 0; page < 1024; page++)
		first[page * 1024] = page ^ 0xa5a5a5a5u;
	for (u32 page = 0; page < 1024; page++)
		if (first[page * 1024] != (page ^ 0xa5a5a5a5u))
			return 0;
	return 1;
}

static int report(const char *name, int good)
{
	put(good ? "L2 PASS " : "L2 FAIL ");
	put(name);
	put("\n");
	return good;
}

static void xen_shutdown(u32 reason)
{
	u32 call = HYPERCALL_SCHED_OP;

	__asm__ volatile("vmcall" : "+a"(call) : "b"(SCHEDOP_SHUTDOWN), "c"(&reason) : "memory");
}

void kernel_main(u32 magic);
void kernel_main(u32 magic)
{
	int pvh = magic == PVH_MAGIC, good = 1;

	put("L2 small kernel\n");
	good &= report(pvh ? "pvh" : "multiboot", pvh || magic == MULTIBOOT1_MAGIC);
	good &= report("hypervisor", cpuid_tells_a_hypervisor());
	good &= report("memory", memory_keeps_its_words());
	put("L2 end\n");
	if (pvh)
		xen_shutdown(good ? SHUTDOWN_POWEROFF : SHUTDOWN_CRASH);
	outl(DEBUG_EXIT, good ? EXIT_GOOD : EXIT_BAD);
}
