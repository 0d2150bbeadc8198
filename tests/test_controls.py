# SPDX-License-Identifier: Apache-2.0
"""Every VMX control that Nidus offers an L1 has a test that sets it and sees its effect, and one that sees it refused."""
import re
import tomllib

import pytest

from conftest import TOP

L1 = TOP / "tests" / "l1"
ROWS = {name: test for group in tomllib.loads((L1 / "controls.toml").read_text(encoding="utf-8")).values()
        for name, test in group.items()}
CAPS = (TOP / "nested" / "caps.c").read_text(encoding="utf-8")
OFFERED = re.findall(r"^\t\{ (\w+),\s+OFFERED \}", CAPS, re.MULTILINE)
# Where the L1 library has another name for a control.
LIBRARY = {"PIN_EXT_INTR": "PIN_EXT_INT", "PROC_UNCOND_IO": "PROC_IO", "PROC_MSR_BITMAPS": "PROC_MSR_BITMAP",
           "SEC_APIC_ACCESSES": "PROC2_APIC_ACCESS", "SEC_APIC_REGS": "PROC2_APIC_REG", "SEC_SHADOW_VMCS": "PROC2_SHADOW", "EXIT_HOST_64": "EXIT_HOST64",
           "EXIT_ACK_INTR": "EXIT_ACK_INT"}


def library_name(control):
    return LIBRARY.get(control, control.replace("SEC_", "PROC2_"))


def words(path):
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def test_no_control_is_forgotten():
    """The list and the table of offered controls are the same."""
    assert len(OFFERED) > 50
    assert sorted(set(OFFERED) - set(ROWS)) == [], "offered, but tests/l1/controls.toml names no test"
    assert sorted(set(ROWS) - set(OFFERED)) == [], "listed, but not offered"


@pytest.mark.parametrize("control", ROWS)
def test_has_a_test(control):
    """The named test is there, and sets the control."""
    test = ROWS[control]
    if test.startswith("unit:"):
        assert control in words(TOP / "tests" / "unit" / f"{test[5:]}.c")
        return
    program, check = test.split("/")
    source = L1 / program / "main.c"
    assert f'"{check}"' in source.read_text(encoding="utf-8"), f"{source}: no check {check}"
    assert library_name(control) in words(source) | words(L1 / "lib" / "l2.c")


def test_refusal_is_tested():
    """Both tests that take every bit of every control word are there."""
    assert "each_control_alone" in words(TOP / "tests" / "unit" / "test_check_ctl.c")
    assert "every-control-not-offered" in (L1 / "nested_checks" / "main.c").read_text(encoding="utf-8")
