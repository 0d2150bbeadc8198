# SPDX-License-Identifier: Apache-2.0
"""pmu=on where the CPU has no PMU, as in Bochs: said once, and the guest is as one with pmu=off."""
from conftest import console


def test_no_pmu_to_give(bochs, iso, guest, l1_images):
    computer = bochs(iso([guest("cpuid_rules", kernel=l1_images / "cpuid_rules.elf", mem="64M", pmu=True)]))
    computer.wait_end(120)
    assert [line for line in computer.lines if "no PMU that a guest could use" in line]
    assert console.guests(computer.text).endings.get("cpuid_rules") == "exit 0"
    assert not console.verdicts(computer.text).faults
