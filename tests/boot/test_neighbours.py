# SPDX-License-Identifier: Apache-2.0
"""Guests side by side: what one does, the other does not notice."""
import pytest

from conftest import endings
from modules import expected, report, write_files


@pytest.fixture
def good(guest, boot_kernels, tmp_path):
    """A guest with a module that keeps it busy for a while, and what it must report."""
    paths = write_files(tmp_path, [2 << 20])
    built = guest("good", kernel=boot_kernels / "modcheck.elf", module=f"{paths[0]} big", mem="64M")
    return built, expected(paths, ["big"])


def said_by(name, computer):
    return "\n".join(line[len(name) + 2:] for line in computer.lines if line.startswith(f"{name}: "))


@pytest.mark.parametrize("cpus", [1, 2])
@pytest.mark.parametrize("cmdline, ending", [("triple", "triple-fault"), ("exit=7", "exit 7"), ("shutdown", "exit 0")])
def test_neighbour_ends(cmdline, ending, cpus, good, guest, boot_kernels, iso, bochs):
    bad = guest("bad", kernel=boot_kernels / "ending.elf", mem="32M", cmdline=cmdline)
    computer = bochs(iso([bad, good[0]]), cpus=cpus)
    computer.wait_end(120)

    assert endings(computer) == {"bad": ending, "good": "exit 0"}
    assert report(said_by("good", computer)) == good[1]


@pytest.mark.parametrize("cpus", [1, 2])
def test_neighbour_spins_with_interrupts_off(cpus, good, guest, boot_kernels, iso, bochs):
    """With one CPU both share it: the spinning guest is preempted."""
    bad = guest("bad", kernel=boot_kernels / "ending.elf", mem="32M", cmdline="spin")
    computer = bochs(iso([bad, good[0]]), cpus=cpus)
    computer.wait_for("^bad: spinning$", 60)
    computer.wait_for("^nidus: guest good ended: exit 0$", 120)

    assert report(said_by("good", computer)) == good[1]
    assert "bad" not in endings(computer)


def test_reset_restarts_the_guest(good, guest, boot_kernels, iso, bochs):
    bad = guest("bad", kernel=boot_kernels / "ending.elf", mem="32M", cmdline="reset")
    computer = bochs(iso([bad, good[0]]), cpus=2)
    for _ in range(3):
        computer.wait_for("^bad: hello$", 60)
    computer.wait_for("^nidus: guest good ended: exit 0$", 120)
    assert report(said_by("good", computer)) == good[1]


def test_reset_that_ends(guest, boot_kernels, iso, bochs):
    once = guest("once", kernel=boot_kernels / "ending.elf", mem="32M", cmdline="reset", restart="off")
    computer = bochs(iso([once]))
    computer.wait_end(120)
    assert endings(computer) == {"once": "reset"}
    assert computer.lines.count("hello") == 1
