# SPDX-License-Identifier: Apache-2.0
"""Nidus on a CPU without SMAP: what hv/static_key patches out must not be missed. All other tests run with SMAP."""
import pytest

from conftest import console

MODEL = "corei7_haswell_4770"  # Bochs' newest with all of VMX that L0 needs and no SMAP


@pytest.mark.parametrize("program", ["ioapic", "nested_ept"])
def test_without_smap(bochs, iso, guest, l1_images, program):
    computer = bochs(iso([guest(program, kernel=l1_images / f"{program}.elf", mem="64M")]), model=MODEL)
    computer.wait_end(120)
    assert console.guests(computer.text).endings.get(program) == "exit 0"
    found = console.verdicts(computer.text)
    assert not found.faults
    assert "PASS" in found.named().values()
