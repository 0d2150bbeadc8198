/* SPDX-License-Identifier: Apache-2.0 */
/* fw_cfg as unmodified firmware and test kernels use it: signature, CPU count, RAM size. QEMU's
 * docs/specs/fw_cfg. */
#include "l1.h"

const char test_title[] = "fw_cfg";

static u64 item(u16 key, u32 bytes)
{
	u64 v = 0;

	outw(0x510, key);
	for (u32 i = 0; i < bytes; i++)
		v |= (u64)inb(0x511) << 8 * i;
	return v;
}

void test_main(void)
{
	if (item(0, 4) != 0x554d4551) {
		skip("fwcfg", "no fw_cfg device here");
		return;
	}
	expect_eq("signature", item(0, 4), 0x554d4551);
	expect_eq("signature-again", item(0, 4), 0x554d4551);
	expect_eq("past-the-end-reads-zero", item(0, 8) >> 32, 0);
	expect_eq("interface", item(1, 4) & 1, 1);
	expect_eq("cpu-count", item(5, 2), cpu_count);
	expect_near("ram-size", item(3, 8), boot_ram_bytes(), boot_ram_bytes() + 0x200000);
	expect_eq("unknown-item-reads-zero", item(0x3fff, 4), 0);
}
