/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of the platform: port dispatch, ends and resets, ACPI blocks and tables, fw_cfg, PCI. */
/* SOURCES: hv/dev/acpi_tables.c hv/dev/apic_deliver.c hv/dev/calendar.c hv/dev/clock.c hv/dev/machine.c */
/* SOURCES: hv/dev/ports.c hv/dev/vfwcfg.c hv/dev/vioapic.c hv/dev/vlapic.c hv/dev/vlapic_regs.c */
/* SOURCES: hv/dev/vlapic_timer.c hv/dev/vpci.c hv/dev/vpic.c hv/dev/vpit.c hv/dev/vpm.c hv/dev/vreset.c */
/* SOURCES: hv/dev/vrtc.c hv/dev/vtestdev.c hv/dev/vuart.c */
#include "fake_platform.h"

static u32 in(u16 port, unsigned size)
{
	return machine_in(&vcpus[0], port, size);
}

static void out(u16 port, unsigned size, u32 value)
{
	machine_out(&vcpus[0], port, size, value);
}

/* Every port in every width: absent ones read ones; nothing falls over. */
static void test_all_ports(void **state)
{
	unsigned present = 0;

	(void)state;
	for (u32 port = 0; port < 0x10000; port++) {
		u8 byte = inb((u16)port);

		present += byte != 0xff;
		in((u16)port, 2);
		in((u16)port, 4);
		out((u16)port, 1, 0);
		out((u16)port, 2, 0x0101);
		out((u16)port, 4, 0x5a5a5a5a);
		assert_null(strchr(guest.reason, '%'));
	}
	assert_in_range(present, 20, 72);
	assert_int_equal(in(0x1234, 4), 0xffffffff);
	assert_int_equal(in(0xffff, 4), 0xffffffff);
}

/* A word access to two byte-wide registers reaches both. */
static void test_split(void **state)
{
	(void)state;
	out(0x70, 2, 0x5540); /* index 0x40, value 0x55 */
	outb(0x70, 0x40);
	assert_int_equal(in(0x70, 2), 0x5540);
	out(0x20, 2, 0xfb0a); /* OCW3, then the mask */
	assert_int_equal(inb(0x21), 0xfb);
}

static void expect_end(const char *reason)
{
	assert_string_equal(guest.reason, reason);
	guest.reason[0] = 0;
}

static void test_endings(void **state)
{
	const char *word = "ShShutdown";

	(void)state;
	out(0xf4, 4, 70000);
	expect_end("exit 70000");
	out(0xf4, 1, 0x1ff);
	expect_end("exit 255");
	out(0xf4, 2, 0);
	expect_end("exit 0");
	for (const char *p = word; *p; p++) {
		expect_end("");
		outb(0x8900, (u8)*p);
	}
	expect_end("exit 0");
	out(0x604, 2, 0x2000);
	expect_end("exit 0");
	out(0x604, 2, 0x2400); /* another sleep type */
	expect_end("");
	assert_int_equal(in(0x604, 2), 0x0401);
}

static void test_resets(void **state)
{
	(void)state;
	outb(0xcf9, 0x02);
	expect_end("");
	outb(0xcf9, 0x06);
	expect_end("reset");
	outb(0x64, 0xfe);
	expect_end("reset");
	outb(0x64, 0xff);
	expect_end("");
	assert_int_equal(inb(0x92), 0x02);
	outb(0x92, 0x03);
	expect_end("reset");
	outb(0x92, 0x02);
	expect_end("");
	assert_int_equal(inb(0x64), 0);
	machine_reset(guest.machine);
	assert_int_equal(inb(0xcf9), 0);
}

static void test_debug_port(void **state)
{
	(void)state;
	assert_int_equal(inb(0xe9), 0xe9);
	outb(0xe9, '!');
	assert_string_equal(printed, "!");
}

/* The test device: a register and the guest's own interrupt lines. */
static void test_testdev(void **state)
{
	(void)state;
	out(0xe0, 4, 0x12345678);
	assert_int_equal(in(0xe0, 4), 0x12345678);
	assert_int_equal(in(0xe2, 2), 0x1234);
	outb(0xe1, 0xff);
	assert_int_equal(in(0xe0, 4), 0x1234ff78);
	outb(0xa1, 0xbf);
	outb(0x21, 0xfb);
	out(0x200e, 4, 1);
	outb(0x200e, 0);
	assert_true(guest.pic_output);
	assert_int_equal(machine_pic_ack(guest.machine), 0x76);
	assert_false(guest.pic_output);
}

static void test_pm_timer(void **state)
{
	u32 first = in(PM_TIMER, 4);

	(void)state;
	pass(HZ);
	assert_in_range(in(PM_TIMER, 4) - first, PM_HZ - 1, PM_HZ);
	pass(1000 * HZ);
	assert_in_range(in(PM_TIMER, 4) - first, PM_HZ * 1001u - 2, PM_HZ * 1001u);
	assert_int_equal(inb(PM_TIMER + 1), in(PM_TIMER, 4) >> 8 & 0xff);
}

/* TMR_STS with each change of the top bit; the SCI while enabled. */
static void test_pm_event(void **state)
{
	bool raised;

	(void)state;
	assert_int_equal(in(PM_BASE, 4), 0);
	out(PM_BASE + 2, 2, 0xffff);
	assert_int_equal(in(PM_BASE + 2, 2), 0x0721);
	out(PM_BASE + 2, 2, 0x0001);
	pass(599 * HZ);
	assert_false(guest.machine->pic.chip[1].lines & 2);
	pass(2 * HZ);
	raised = guest.machine->pic.chip[1].lines & 2;
	assert_true(raised);
	assert_int_equal(in(PM_BASE, 2), 1);
	outb(PM_BASE, 0);
	assert_int_equal(in(PM_BASE, 2), 1);
	outb(PM_BASE, 1);
	assert_int_equal(in(PM_BASE, 2), 0);
	raised = guest.machine->pic.chip[1].lines & 2;
	assert_false(raised);
}

static u64 item(u16 key, unsigned bytes)
{
	u64 value = 0;

	out(0x510, 2, key);
	for (unsigned i = 0; i < bytes; i++)
		value |= (u64)inb(0x511) << 8 * i;
	return value;
}

static void test_fw_cfg(void **state)
{
	char name[57] = "";

	(void)state;
	assert_int_equal(item(0, 4), 0x554d4551); /* "QEMU" */
	assert_int_equal(inb(0x511), 0);
	assert_int_equal(item(1, 4), 1);
	assert_int_equal(item(3, 8), 512 * MIB);
	assert_int_equal(item(5, 2), 4);
	assert_int_equal(item(0x0f, 2), 4);
	assert_int_equal(item(0x77, 8), 0);
	assert_int_equal(item(0x19, 4), 0x01000000);
	assert_int_equal(inb(0x511) << 24 | inb(0x511) << 16 | inb(0x511) << 8 | inb(0x511), 40);
	assert_int_equal(inb(0x511) << 8 | inb(0x511), 0x20);
	inb(0x511);
	inb(0x511);
	for (unsigned i = 0; i < 56; i++)
		name[i] = (char)inb(0x511);
	assert_string_equal(name, "etc/e820");
	assert_int_equal(item(0x20, 8), 0);
	for (unsigned i = 0; i < 12; i++)
		inb(0x511);
	for (u64 i = 0, start = MIB; i < 8; i++)
		assert_int_equal(inb(0x511), (u8)(start >> 8 * i));
}

static u32 config(u32 address)
{
	out(0xcf8, 4, address);
	return in(0xcfc, 4);
}

static void test_pci(void **state)
{
	(void)state;
	out(0xcf8, 4, 0x80000008);
	assert_int_equal(in(0xcf8, 4), 0x80000008);
	assert_int_equal(config(0x80000000), 0x12378086);
	assert_int_equal(config(0x80000008), 0x06000002);
	assert_int_equal(in(0xcff, 1), 0x06);
	assert_int_equal(in(0xcfe, 2), 0x0600);
	assert_int_equal(config(0x00000000), 0xffffffff); /* not enabled */
	for (u32 bdf = 1; bdf < 0x10000; bdf++)
		assert_int_equal(config(0x80000000 | bdf << 8), 0xffffffff);
	out(0xcf8, 4, 0x80000000);
	out(0xcfc, 4, 0);
	assert_int_equal(config(0x80000000), 0x12378086);
	out(0xcf8, 4, 0x80000058);
	out(0xcfd, 1, 0x33);
	assert_int_equal(in(0xcfc, 4), 0x3300);
	out(0xcf8, 4, 0x800000fc);
	out(0xcff, 2, 0xaaaa);
	assert_int_equal(in(0xcff, 2), 0xaa); /* does not run over the end */
}

static u8 sum(u64 at, u32 size)
{
	u8 s = 0;

	while (size--)
		s += low_memory[at++];
	return s;
}

static u64 word(u64 at, unsigned size)
{
	u64 value = 0;

	memcpy(&value, low_memory + at, size);
	return value;
}

/* Find a table through the XSDT and check its form. */
static u64 table(const char *signature)
{
	u64 xsdt = word(L1_ACPI_RSDP + 24, 8);

	for (u64 e = xsdt + 36; e < xsdt + word(xsdt + 4, 4); e += 8) {
		u64 at = word(e, 8);

		if (memcmp(low_memory + at, signature, 4) == 0) {
			assert_int_equal(sum(at, (u32)word(at + 4, 4)), 0);
			return at;
		}
	}
	fail_msg("no table %s", signature);
	return 0;
}

static void test_acpi(void **state)
{
	u64 fadt, madt, facs;

	(void)state;
	memset(low_memory, 0, sizeof(low_memory));
	assert_true(machine_write_tables(&guest));
	assert_memory_equal(low_memory + L1_ACPI_RSDP, "RSD PTR ", 8);
	assert_int_equal(sum(L1_ACPI_RSDP, 20), 0);
	assert_int_equal(sum(L1_ACPI_RSDP, 36), 0);
	assert_int_equal(low_memory[L1_ACPI_RSDP + 15], 2);
	fadt = table("FACP");
	assert_int_equal(word(fadt + 4, 4), 268);
	facs = word(fadt + 36, 4);
	assert_memory_equal(low_memory + facs, "FACS", 4);
	assert_int_equal(facs % 64, 0);
	assert_memory_equal(low_memory + word(fadt + 40, 4), "DSDT", 4);
	assert_int_equal(word(fadt + 46, 2), 9);
	assert_int_equal(word(fadt + 56, 4), PM_BASE);
	assert_int_equal(word(fadt + 64, 4), PM_CONTROL);
	assert_int_equal(word(fadt + 76, 4), PM_TIMER);
	assert_int_equal(low_memory[fadt + 88], 4);
	assert_int_equal(low_memory[fadt + 89], 2);
	assert_int_equal(low_memory[fadt + 91], 4);
	assert_int_equal(low_memory[fadt + 108], 0x32);
	assert_int_equal(word(fadt + 109, 2), 0x5);
	assert_int_equal(word(fadt + 120, 8), 0xcf9); /* reset register's address */
	assert_int_equal(low_memory[fadt + 128], 6);
	assert_int_equal(word(fadt + 132, 8), 0); /* one pointer to the FACS is enough */
	assert_int_equal(word(fadt + 140, 8), word(fadt + 40, 4));
	assert_int_equal(word(fadt + 152, 8), PM_BASE);
	assert_int_equal(word(fadt + 176, 8), PM_CONTROL);
	assert_int_equal(word(fadt + 212, 8), PM_TIMER);
	madt = table("APIC");
	assert_int_equal(word(madt + 4, 4), 44 + 4 * 8 + 12 + 2 * 10 + 6);
	assert_int_equal(word(madt + 36, 4), L1_LAPIC);
	assert_int_equal(word(madt + 44 + 3 * 8, 4), 0x03030800);
	assert_int_equal(word(madt + 44 + 32 + 4, 4), L1_IOAPIC);
	assert_int_equal(word(L1_ACPI_RSDP + 16, 4) % 64, 0);
	assert_int_equal(word(0x400, 2), 0x3f8);
	assert_int_equal(word(0x40e, 2), 0x9fc0);
	assert_int_equal(word(0x413, 2), 639);
}

/* A restart leaves no timer and no interrupt of the first life behind. */
static void test_restart(void **state)
{
	(void)state;
	outb(0x43, 0x34);
	outb(0x40, 0);
	outb(0x40, 0x10);
	outb(0x70, 0x0b);
	outb(0x71, 0x72);
	out(PM_BASE + 2, 2, 1);
	outb(0x3f9, 0x0f);
	machine_console_input(guest.machine, 'x');
	outb(0x21, 0);
	vlapic_mmio_write(&vcpus[2], APIC_SVR, 0x1ff);
	vlapic_mmio_write(&vcpus[2], APIC_LVT_TIMER, 0x20040);
	vlapic_mmio_write(&vcpus[2], APIC_TIMER_INITIAL, 100000000);
	pass(HZ);
	assert_non_null(timers);
	assert_true(guest.pic_output);
	machine_reset(guest.machine);
	assert_false(guest.pic_output);
	assert_null(timers);
	assert_int_equal(inb(0x3fd), 0x60);
	outb(0x21, 0);
	outb(0xa1, 0);
	assert_false(guest.pic_output);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_FOUR(test_all_ports), TEST_FOUR(test_split),      TEST_FOUR(test_endings),
		TEST_FOUR(test_resets),    TEST_FOUR(test_debug_port), TEST_FOUR(test_testdev),
		TEST_FOUR(test_pm_timer),  TEST_FOUR(test_pm_event),   TEST_FOUR(test_fw_cfg),
		TEST_FOUR(test_pci),       TEST_FOUR(test_acpi),       TEST_FOUR(test_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
