# SPDX-License-Identifier: Apache-2.0
"""Nidus as a guest of itself: every level finds its machine on the platform of the one below, and tells how it ended."""
import re

import pytest

import client
from conftest import BUILD, console, guest_list, make
from nidus_lib import bench, iso as iso_image

LONG = pytest.mark.long


@pytest.fixture
def nested(iso, guest, l1_images, bochs):
    """nested(["l1", "l2"], "pit", ...): the machine after L1 program `pit` has run in Nidus l2 in Nidus l1 in Nidus.

    `level` are further settings of each Nidus as a guest, others those of the programs.
    """

    def run(levels, *programs, cpus=1, seconds=60, level=(), **settings):
        inner = [guest(name, kernel=l1_images / f"{name}.elf", mem="64M", vcpus=cpus, **settings) for name in programs]
        outer = guest_list.nest(inner, [[("name", name), *level] for name in levels], BUILD / "nidus32.elf")
        memory = outer[0].memory + 256 * client.MIB
        computer = bochs(iso(outer), cpus=cpus, memory=memory)
        computer.wait_end(seconds * client.SLOWNESS)
        return computer

    return run


def said_by(computer, levels):
    """What Nidus' guest at this place said, without the names of the levels."""
    prefix = "".join(f"{name}: " for name in levels)
    return "\n".join(line.removeprefix(prefix) for line in computer.lines if line.startswith(prefix))


def assert_all_passed(text):
    found = console.verdicts(text)
    assert not found.faults, "\n".join(found.faults)
    assert found.rows


def assert_endings(computer, levels, name, ending):
    """The guest and every Nidus around it ended so, each told by its host; nothing else switched the machine off."""
    for depth, ended in enumerate([*levels, name]):
        assert console.guests(said_by(computer, levels[:depth])).endings == {ended: ending}
    assert not computer.trouble()


@pytest.mark.parametrize("levels, seconds", [
    pytest.param(["l1"], 40, id="depth3"),
    pytest.param(["l1", "l2"], 100, id="depth4", marks=LONG),
    pytest.param(["l1", "l2", "l3"], 900, id="depth5", marks=[LONG, pytest.mark.timeout(3000)]),
])
def test_innermost_program(levels, seconds, nested):
    computer = nested(levels, "cpuid_rules", seconds=seconds)
    assert_all_passed(said_by(computer, levels))
    assert_endings(computer, levels, "cpuid_rules", "exit 0")


@pytest.mark.parametrize("levels, seconds", [
    pytest.param(["l1"], 40, id="depth4"), pytest.param(["l1", "l2"], 200, id="depth5", marks=LONG),
])
def test_innermost_hypervisor(levels, seconds, nested):
    """The demo starts a guest of its own in the innermost Nidus."""
    computer = nested(levels, "demo", seconds=seconds)
    assert_all_passed(said_by(computer, levels))
    assert_endings(computer, levels, "demo", "exit 0")


@pytest.mark.parametrize("program, cpus", [("lapic_timer", 1), ("pit", 1), ("ipi", 4), pytest.param("nested_smp", 4, marks=LONG)])
def test_platform_of_the_platform(program, cpus, nested):
    """The inner Nidus drives its own timers, interrupts and CPUs by the virtual ones it was given."""
    computer = nested(["l1"], program, cpus=cpus, seconds=100)
    assert_all_passed(said_by(computer, ["l1"]))
    assert_endings(computer, ["l1"], program, "exit 0")


def counted(text, what):
    """What a Nidus tells of Hyper-V's interface at its guest's end: how many "evmcs entries", for instance."""
    return int(re.search(rf"^nidus: guest \w+ hyperv: .*?(\d+) {what}", text, re.MULTILINE)[1])


@pytest.mark.parametrize("program, cpus, levels", [
    pytest.param("demo", 1, ["l1"], id="demo"),
    pytest.param("ipi", 4, ["l1"], id="four-cpus"),
    pytest.param("nested_msr_lists", 1, ["l1"], id="nested"),
    pytest.param("demo", 1, ["l1", "l2"], id="two-consumers", marks=LONG),
])
def test_enlightened(program, cpus, levels, nested):
    """On Hyper-V's interface a Nidus keeps its VMCSs as enlightened ones, and everything goes on as before."""
    computer = nested(levels, program, cpus=cpus, level=[("hyperv", "on")], seconds=100)
    assert_all_passed(said_by(computer, levels))
    assert_endings(computer, levels, program, "exit 0")
    for depth in range(len(levels)):
        assert "nidus: Hyper-V's interface below: VMCSs are enlightened" in said_by(computer, levels[:depth + 1]).splitlines()
        host = said_by(computer, levels[:depth])
        assert counted(host, "evmcs entries") > counted(host, "msr bitmaps kept") > 0
        assert program != "demo" or counted(host, "mapping flushes") > 0


def test_flush_calls(nested):
    """A Nidus leaves the TLB flush calls of its guest to its host."""
    computer = nested(["l1"], "hyperv_calls", cpus=2, level=[("hyperv", "on")], hyperv="on")
    assert_all_passed(said_by(computer, ["l1"]))
    assert_endings(computer, ["l1"], "hyperv_calls", "exit 0")
    assert counted(computer.text, "direct flushes") > 0
    assert counted(said_by(computer, ["l1"]), "direct flushes") == counted(said_by(computer, ["l1"]), "space flushes") == 0


@pytest.mark.parametrize("level", [pytest.param([], id="consumer"), pytest.param([("cmdline", "hv-guest=off")], id="off")])
def test_trace(level, iso, guest, bochs):
    """Between two operations of its guest an inner Nidus executes no VMREAD, VMWRITE or VMPTRLD as a consumer; else many."""
    make("bench-image")
    inner = [guest("bench", kernel=bench.IMAGE, mem="64M", cmdline="set=hyperv", hyperv="on")]
    outer = guest_list.nest(inner, [[("name", "l1"), ("hyperv", "on"), *level]], BUILD / "nidus32.elf")
    computer = bochs(iso(outer), memory=outer[0].memory + 256 * client.MIB, magic=True,
                     commands="c\ntrace on\nc\ntrace off\n" * bench.MARKS + "c\n")
    computer.wait_end(60 * client.SLOWNESS)
    assert_endings(computer, ["l1"], "bench", "exit 0")
    with open(computer.folder / "bochs.out", encoding="utf-8", errors="replace") as trace:
        blocks = bench.read_trace(trace, bench.executable_range(iso_image.nidus_image("nidus.elf")), inner=True)
    assert len(blocks) > 3
    assert all(block["entries"] >= 1 for block in blocks)
    accesses = [sum(block.get(name, 0) for name in ("vmread", "vmwrite", "vmptrld")) for block in blocks]
    assert min(accesses) > 0 if level else max(accesses) == 0, blocks
    assert ("enlightened" in said_by(computer, ["l1"])) != bool(level)
    assert (counted(computer.text, "evmcs entries") == 0) == bool(level)


def test_exit_status_comes_through(nested):
    computer = nested(["l1"], "exit_code")
    assert_endings(computer, ["l1"], "exit_code", "exit 42")


def test_first_bad_status_of_two(nested):
    """A triple fault has no number of its own: 1."""
    computer = nested(["l1"], "triple_fault", "cpuid_rules")
    assert console.guests(said_by(computer, ["l1"])).endings == {"triple_fault": "triple-fault", "cpuid_rules": "exit 0"}
    assert console.guests(computer.text).endings == {"l1": "exit 1"}
    assert_all_passed(said_by(computer, ["l1", "cpuid_rules"]))
