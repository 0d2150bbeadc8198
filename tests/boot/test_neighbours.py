# SPDX-License-Identifier: Apache-2.0
"""Guests side by side: what one does, the other does not notice.

The good guest looks at its memory, registers, devices and interrupts (kernel/selfcheck.c) before, during and after
what its neighbour does: it goes on until a key is typed, and the key is typed when the neighbour is done.
"""
import re

import pytest

from conftest import console, endings, iso_image

ONE_AND_TWO_CPUS = pytest.mark.parametrize("cpus", [1, 2])


@pytest.fixture
def good(guest, boot_kernels):
    """good("red", "rounds=5"): a self-checking guest; without rounds= it goes on until a key is typed."""

    def build(name="good", cmdline=""):
        return guest(name, kernel=boot_kernels / "selfcheck.elf", mem="32M", cmdline=cmdline)

    return build


@pytest.fixture
def bad(guest, boot_kernels):
    """bad("spin"): a guest that ends, or does not, as told (kernel/ending.c)."""

    def build(cmdline, **settings):
        return guest("bad", kernel=boot_kernels / "ending.elf", mem="32M", cmdline=cmdline, **settings)

    return build


def said_by(name, computer):
    """The lines of a guest with a prefixed console."""
    return [line.removeprefix(f"{name}: ") for line in computer.lines if line.startswith(f"{name}: ")]


def assert_all_was_well(name, computer):
    """The self-check ended well, and its console is complete."""
    said = said_by(name, computer)
    rounds = [f"round {number:x} of the self-check found nothing" for number in range(1, len(said) - 1)]
    assert said == ["checking", *rounds, "all is well"]
    assert rounds
    assert endings(computer)[name] == "exit 0"


def stop_checking(computer, timeout=120):
    """One more whole round, then a key for the good guest, which is the first one and so in front."""
    for _ in range(2):
        computer.wait_for(r"^good: round \w+ of", timeout)
    computer.send("q")
    computer.wait_for("^nidus: guest good ended: .+\n", timeout)


@ONE_AND_TWO_CPUS
def test_both_consoles_are_complete(cpus, good, iso, bochs):
    computer = bochs(iso([good("red", "rounds=12"), good("blue", "rounds=9")]), cpus=cpus)
    computer.wait_end(180)

    assert len(said_by("red", computer)) == 14
    assert len(said_by("blue", computer)) == 11
    assert_all_was_well("red", computer)
    assert_all_was_well("blue", computer)


def test_every_line_has_one_speaker(good, iso, bochs):
    """No line holds parts of two: each is one of Nidus', one of a guest's, or empty."""
    computer = bochs(iso([good("red", "rounds=9"), good("blue", "rounds=9")], "loglevel=debug"), cpus=2)
    computer.wait_end(180)
    speaker = re.compile(r"(nidus: .*|(red|blue): (checking|round \w of the self-check found nothing|all is well))?")
    assert [line for line in computer.lines if not speaker.fullmatch(line)] == []


def test_keys_go_to_the_guest_in_front(good, iso, bochs):
    """Ctrl-] and a digit choose it."""
    computer = bochs(iso([good("red"), good("blue")]), cpus=2)
    computer.wait_for("^blue: round 2 ", 120)
    computer.send("\x1d1q")
    computer.wait_for("^nidus: guest blue ended: exit 0$", 120)
    computer.wait_for("^red: round ", 120)
    computer.send("\x1d0q")
    computer.wait_end(120)
    assert_all_was_well("red", computer)
    assert_all_was_well("blue", computer)


@ONE_AND_TWO_CPUS
@pytest.mark.parametrize("cmdline, ending", [("triple", "triple-fault"), ("exit=7", "exit 7"), ("shutdown", "exit 0")])
def test_neighbour_ends(cmdline, ending, cpus, good, bad, iso, bochs):
    computer = bochs(iso([good(), bad(cmdline)]), cpus=cpus)
    computer.wait_for("^nidus: guest bad ended: .+\n", 120)
    stop_checking(computer)
    computer.wait_end(60)

    assert endings(computer)["bad"] == ending
    assert_all_was_well("good", computer)


@ONE_AND_TWO_CPUS
def test_neighbour_spins_with_interrupts_off(cpus, good, bad, iso, bochs):
    """With one CPU both share it: the spinning guest is preempted."""
    computer = bochs(iso([good(), bad("spin")]), cpus=cpus)
    computer.wait_for("^bad: spinning$", 120)
    stop_checking(computer)

    assert_all_was_well("good", computer)
    assert "bad" not in endings(computer)


def test_neighbour_resets_for_ever(good, bad, iso, bochs):
    computer = bochs(iso([good(), bad("reset")]), cpus=2)
    for _ in range(3):
        computer.wait_for("^bad: hello$", 120)
    stop_checking(computer)
    assert_all_was_well("good", computer)


def test_reset_that_ends(bad, iso, bochs):
    computer = bochs(iso([bad("reset", restart="off")]))
    computer.wait_end(120)
    assert endings(computer) == {"bad": "reset"}
    assert computer.lines.count("hello") == 1


MALFORMED = {
    "description": ("ending.elf", ["guest=bad", "mem=12Q"], "mem=12Q"),
    "image": ("text", ["guest=bad", "mem=32M"], "kernel"),
    "header": ("broken.elf", ["guest=bad", "mem=32M"], "kernel"),
    "size": ("ending.elf", ["guest=bad", "mem=1024G"], "memory"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_neighbour_is_malformed(case, nidus_image, boot_kernels, grub_iso, bochs, tmp_path):
    """A guest that cannot be built is named and left out; the others start."""
    kernel, description, named = MALFORMED[case]
    (tmp_path / "text").write_text("This is no kernel of any kind.\n" * 100, encoding="ascii")
    # An ELF file whose program headers lie far outside of it.
    broken = bytearray((boot_kernels / "ending.elf").read_bytes())
    broken[28:32] = b"\xf0\xff\xff\x7f"
    (tmp_path / "broken.elf").write_bytes(broken)
    files = {"nidus.elf": nidus_image, "good": boot_kernels / "selfcheck.elf", "text": tmp_path / "text",
             "broken.elf": tmp_path / "broken.elf", "ending.elf": boot_kernels / "ending.elf"}
    modules = [(f"/boot/{kernel}", description),
               ("/boot/good", ["guest=good", "mem=32M", "console=prefix", "--", "rounds=3"])]
    computer = bochs(grub_iso(iso_image.loader_commands(2, "/boot/nidus.elf", "", modules), files))
    computer.wait_end(120)

    assert len([line for line in computer.lines if re.match(rf"nidus: guest bad: .*{named}", line)]) == 1
    assert "nidus: guest bad started" not in computer.lines
    assert_all_was_well("good", computer)


@ONE_AND_TWO_CPUS
def test_neighbour_is_hostile(cpus, good, guest, l1_images, iso, bochs):
    """It touches every address, port, MSR and interrupt command that it can name (tests/l1/hostile_memory)."""
    hostile = guest("hostile", kernel=l1_images / "hostile_memory.elf", mem="64M")
    computer = bochs(iso([good(), hostile]), cpus=cpus)
    computer.wait_for("^nidus: guest hostile ended: .+\n", 400)
    stop_checking(computer)
    computer.wait_end(60)

    assert endings(computer)["hostile"] == "exit 0"
    assert console.verdicts(computer.text, "hostile: ").faults == []
    assert_all_was_well("good", computer)
