/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that tries to disturb the others: reads and writes every guest-physical address it can name, sends
 * every form of interrupt command, and programs every device it can find. It runs beside a second guest,
 * which must not notice.
 */
#include "l1.h"

const char test_title[] = "hostile guest";

#define WINDOW 0x4000000000ul

static bool own(u64 page)
{
	return (page >= 0x400000 && page < addr_of(image_end)) || page < 0x100000 ||
	       (page & ~0xffffful) == 0xfee00000;
}

static void on_any(struct regs *r)
{
	(void)r;
	lapic_eoi();
}

static void touch(u64 page, bool write)
{
	page_map_2m(WINDOW, page & ~(PAGE_2M - 1), PTE_RAM);
	if (!write)
		try_read64(WINDOW + (page & (PAGE_2M - 1)), NULL);
	else if (!own(page))
		try_write64(WINDOW + (page & (PAGE_2M - 1)), 0xdeaddeaddeaddead);
}

static void all_addresses(void)
{
	for (u32 write = 0; write < 2; write++) {
		for (u64 page = 0; page < 0x100000000; page += PAGE_2M / 4)
			touch(page, write);
		for (u32 bit = 32; bit < phys_bits(); bit++)
			for (u64 page = BIT(bit); page < BIT(bit) + 4 * PAGE_2M; page += PAGE_2M / 2)
				touch(page, write);
		touch(BIT(phys_bits()) - PAGE_SIZE, write);
	}
}

/* Delivery modes, destination modes and shorthands to ids that are not ours. INIT and NMI to itself are left
 * out. */
static void all_commands(void)
{
	static const u8 dests[] = {1, 2, 3, 7, 15, 0x40, 0xfe, 0xff};

	for (u32 mode = 0; mode < 8; mode++)
		for (u32 form = 0; form < 16; form++)
			for (u32 d = 0; d < ARRAY_SIZE(dests); d++) {
				u32 low = mode << 8 | (form & 1) << 11 | (form & 2) << 13 | (form & 4) << 13 |
					  0x90;
				bool self = dests[d] == 0xff || (form & 1);

				if (self && mode >= 2)
					continue;
				lapic_ipi(dests[d], low | (form & 8 ? ICR_OTHERS : 0));
			}
	sti_nop_cli();
}

static void all_ports(void)
{
	for (u32 port = 0; port < 0x10000; port++) {
		if (port >= 0x3f8 && port < 0x400)
			continue; /* its own console */
		inb((u16)port);
	}
	for (u32 port = 0xcf8; port <= 0xcff; port++)
		if (port != 0xcf9)
			outb((u16)port, 0x80);
}

static void all_msrs(void)
{
	for (u32 msr = 0; msr < 0x2000; msr++)
		try_rdmsr(msr, NULL);
	for (u32 msr = 0xc0000000; msr < 0xc0002000; msr++)
		try_rdmsr(msr, NULL);
	for (u32 msr = 0x800; msr < 0x840; msr++)
		if (msr != 0x830)
			try_wrmsr(msr, 0xffff);
	try_wrmsr(0x79, 0x100000);
	try_wrmsr(MSR_DEBUGCTL, 0x1);
}

void test_main(void)
{
	for (u32 v = 0x20; v < 0x100; v++)
		if (v != 0x81 && v != VEC_SPURIOUS)
			trap_handle(v, on_any);
	lapic_enable();
	all_addresses();
	expect_true("addresses-done", true);
	all_commands();
	expect_true("commands-done", true);
	all_ports();
	expect_true("ports-done", true);
	all_msrs();
	expect_true("msrs-done", true);
}
