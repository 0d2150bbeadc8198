/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks again and again at everything of its own that a neighbour could have changed: memory, registers that
 * a switch between guests must keep, devices, interrupts it never asked for. Ends well after `rounds=N` (two
 * digits at most) of its command line, or when a key is typed.
 * What it stores depends on its command line, so that two of them differ.
 */
#include "small.h"

#define AREA       0x1000000u /* 16 MiB */
#define AREA_WORDS 0x80000u   /* 2 MiB of them */
#define APIC       0xfee00000u
#define APIC_TPR   0x80
#define APIC_LDR   0xd0
#define APIC_SVR   0xf0
#define APIC_TIMER 0x320
#define CR4_OSFXSR (1u << 9)
#define CODE       8

struct table {
	uint16_t limit;
	uint32_t base;
} __attribute__((packed));

static const uint64_t gdt[] = {0, 0x00cf9a000000ffff, 0x00cf92000000ffff};
static uint64_t idt[256];
static struct table idt_at = {sizeof(idt) - 1, 0};
static uint64_t last_tsc;
static uint32_t round_number, seed;

static void end(const char *what, uint32_t code)
{
	puts(what);
	puts("\r\n");
	port_f4(code);
	power_off();
	for (;;)
		;
}

static void want(const char *what, uint32_t got, uint32_t wanted)
{
	if (got == wanted)
		return;
	puts("got ");
	put_hex(got);
	puts(" want ");
	put_hex(wanted);
	puts(" round ");
	put_hex(round_number);
	puts("\r\n");
	end(what, 1);
}

/* Nothing here asks for an interrupt, and no instruction may fault. */
static void stray(void)
{
	end("FAIL interrupt", 2);
}

static void own_tables(void)
{
	static const struct table gdt_at = {sizeof(gdt) - 1, 0};
	struct table copy = gdt_at;
	uint32_t entry = (uint32_t)(uintptr_t)stray;

	copy.base = (uint32_t)(uintptr_t)gdt;
	asm volatile("lgdt %0; ljmp %1, $1f; 1: mov %2, %%ds; mov %2, %%es; mov %2, %%ss"
		     :
		     : "m"(copy), "i"(CODE), "r"((uint32_t)CODE + 8)
		     : "memory");
	for (uint32_t i = 0; i < 256; i++)
		idt[i] = (entry & 0xffff) | CODE << 16 | 0x8e00ull << 32 | (uint64_t)(entry >> 16) << 48;
	idt_at.base = (uint32_t)(uintptr_t)idt;
	asm volatile("lidt %0; sti" : : "m"(idt_at) : "memory");
}

/* --- registers --- */

static void set_registers(void)
{
	uint32_t cr4;

	asm volatile("mov %%cr4, %0" : "=r"(cr4));
	asm volatile("mov %0, %%cr4" : : "r"(cr4 | CR4_OSFXSR));
	asm volatile("mov %0, %%dr0" : : "r"(seed ^ 0x11223344));
	asm volatile("mov %0, %%cr2" : : "r"(seed ^ 0x55667788));
	asm volatile("movd %0, %%xmm0; fninit; fildl %1" : : "r"(seed ^ 0x99aabbcc), "m"(seed));
}

static void check_registers(void)
{
	uint32_t value, top;
	struct table now;

	asm volatile("mov %%dr0, %0" : "=r"(value));
	want("FAIL dr0", value, seed ^ 0x11223344);
	asm volatile("mov %%cr2, %0" : "=r"(value));
	want("FAIL cr2", value, seed ^ 0x55667788);
	asm volatile("movd %%xmm0, %0" : "=r"(value));
	want("FAIL xmm0", value, seed ^ 0x99aabbcc);
	asm volatile("fistl %0" : "=m"(top));
	want("FAIL st0", top, seed);
	asm volatile("sidt %0" : "=m"(now));
	want("FAIL idtr", now.base, idt_at.base);
}

/* --- devices --- */

static const struct {
	uint32_t at, value;
} apic_values[] = {{APIC_SVR, 0x1ff}, {APIC_TPR, 0}, {APIC_LDR, 0xa5000000}, {APIC_TIMER, 0x100d1}};

static volatile uint32_t *apic(uint32_t offset)
{
	return at(APIC + offset);
}

static void outl(uint16_t port, uint32_t value)
{
	asm volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static uint32_t inl(uint16_t port)
{
	uint32_t value;

	asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static void set_devices(void)
{
	for (uint32_t i = 0; i < sizeof(apic_values) / sizeof(apic_values[0]); i++)
		*apic(apic_values[i].at) = apic_values[i].value;
	outb(0x21, 0xfb);
	outb(0xa1, 0x7f);
	outl(0xcf8, 0x80001234);
}

static void check_devices(void)
{
	for (uint32_t i = 0; i < sizeof(apic_values) / sizeof(apic_values[0]); i++)
		want("FAIL apic", *apic(apic_values[i].at), apic_values[i].value);
	want("FAIL pic", inb(0x21) | inb(0xa1) << 8, 0x7ffb);
	want("FAIL pci", inl(0xcf8), 0x80001234);
}

/* --- memory and time --- */

static uint32_t pattern(uint32_t i, uint32_t round)
{
	return (i + seed) * 2654435761u ^ round * 0x01010101u;
}

static void fill(uint32_t round)
{
	volatile uint32_t *area = at(AREA);

	for (uint32_t i = 0; i < AREA_WORDS; i++)
		area[i] = pattern(i, round);
}

static void check_memory(uint32_t round)
{
	volatile uint32_t *area = at(AREA);

	for (uint32_t i = 0; i < AREA_WORDS; i++)
		want("FAIL memory", area[i], pattern(i, round));
}

static void check_time(void)
{
	uint32_t low, high;
	uint64_t now;

	asm volatile("rdtsc" : "=a"(low), "=d"(high));
	now = (uint64_t)high << 32 | low;
	want("FAIL tsc", now > last_tsc, 1);
	last_tsc = now;
}

static uint32_t hash(const char *text)
{
	uint32_t value = 5381;

	while (*text)
		value = value * 33 + (uint8_t)*text++;
	return value;
}

static int key_typed(void)
{
	return inb(0x3fd) & 1;
}

static uint32_t rounds_wanted(const char *cmdline)
{
	uint32_t rounds = 0;

	while (*cmdline && *cmdline != '=')
		cmdline++;
	while (*cmdline && *++cmdline >= '0' && *cmdline <= '9')
		rounds = rounds * 10 + (uint32_t)(*cmdline - '0');
	return rounds ? rounds : ~0u;
}

void kernel_main(uint32_t magic, uint32_t info_address)
{
	const struct info *info = at(info_address);
	const char *cmdline = magic == 0x2badb002 ? at(info->cmdline) : "";
	uint32_t rounds = rounds_wanted(cmdline);

	seed = hash(cmdline);
	serial_init();
	set_devices();
	set_registers();
	own_tables();
	puts("checking\r\n");
	while (round_number < rounds && !key_typed()) {
		fill(++round_number);
		check_devices();
		check_registers();
		check_time();
		check_memory(round_number);
		puts("round ");
		put_hex(round_number);
		puts(" of the self-check found nothing\r\n");
	}
	end("all is well", 0);
}
