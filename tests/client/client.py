# SPDX-License-Identifier: Apache-2.0
"""What the client tests share: a Linux guest under Nidus run to its end, and the assertions on its console.

A client is one image on one machine; its console ends with verdict lines (guest/common.sh). Must not hold a test.
"""
import os
import re

from conftest import console, endings

# A busy machine may be several times slower than an idle one; the tests ask for results, not for speed.
SLOWNESS = float(os.environ.get("CLIENT_SLOWNESS", "3"))
MIB = 1 << 20


def run(machine, seconds):
    """Wait for the end of a machine that takes `seconds` where nothing else runs; returns its verdicts by name."""
    machine.wait_end(seconds * SLOWNESS)
    found = console.verdicts(machine.text)
    assert not found.faults, "\n".join(found.faults)
    return found.named()


def hyperv_counters(machine, name):
    """Numbers by their names from the line at a guest's end (docs/hyperv.md); empty without one."""
    line = re.search(rf"^nidus: guest {name} hyperv: (.*)$", machine.text, re.M)
    pairs = line.group(1).strip().split(", ") if line else []
    return {what: int(number) for number, what in (pair.split(" ", 1) for pair in pairs)}


def assert_exit_0(machine, name):
    """The guest ended well, and nothing but its end switched the machine off."""
    assert endings(machine).get(name) == "exit 0"
    assert not machine.trouble()
