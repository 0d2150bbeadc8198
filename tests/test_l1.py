# SPDX-License-Identifier: Apache-2.0
"""Runs each L1 program bare in Bochs and as L1 under Nidus; what it reports must be the same.

tests/l1/programs.toml says how a program wants to be run, tests/l1/differences.toml which verdicts may differ and why.
"""
import functools
import re
import tomllib

import pytest

from conftest import TOP, console, guest_list, iso_image, machine

L1 = TOP / "tests" / "l1"
NAMES = sorted(path.parent.name for path in L1.glob("*/main.c"))
EACH = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in NAMES]
WITHOUT_APICV = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in ("ioapic", "ipi", "lapic_timer", "pic")]

OUT = re.compile(r"^OUT (\d+) (.*)$", re.MULTILINE)


def load(name):
    path = L1 / name
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


PROGRAMS = load("programs.toml")
DIFFERENCES = load("differences.toml").get("difference", [])


def options(name):
    defaults = {"vcpus": 1, "memory": "64M", "timeout": 60, "bare": True, "ending": "exit 0", "done": True, "cmdline": ""}
    return defaults | PROGRAMS.get("defaults", {}) | PROGRAMS.get(name, {})


def listed(name):
    """check -> (bare, nidus): the verdicts that may differ."""
    return {row["check"]: (row["bare"], row["nidus"]) for row in DIFFERENCES if row["program"] == name}


def read_verdicts(computer, wanted):
    found = console.verdicts(computer.text)
    if not wanted["done"]:
        found.faults = [fault for fault in found.faults if fault != "no closing DONE line"]
    return found


def unlisted_faults(found, name, side):
    """The faults that differences.toml does not announce for `side` (0 bare, 1 nidus)."""
    announced = [f"FAIL {check} " for check, pair in listed(name).items() if pair[side] == "FAIL"]
    return [fault for fault in found.faults if not fault.startswith(tuple(announced))]


def outcomes(text):
    """The lines `OUT key value` of a program that leaves the judgement to the comparison: key -> value."""
    return dict(OUT.findall(text))


@functools.cache
def bare_run(name, image, folder, words):
    """The program on the bare machine, once per worker: its verdicts, its outcomes, the end of its console."""
    wanted = options(name)
    tree = iso_image.Tree(folder / "tree")
    loaded = tree.add(image, "program.elf")
    line = iso_image.words(f"{wanted['cmdline']} {words}", name)
    tree.config(iso_image.QUIET_HEAD + iso_image.line("multiboot", loaded, *line) + "\nboot\nhalt\n")
    with machine.Bochs(folder, tree.build(folder / "bare.iso"), cpus=wanted["vcpus"],
                       memory=guest_list.parse_size(wanted["memory"], name)) as computer:
        computer.start().wait_end(wanted["timeout"])
        return read_verdicts(computer, wanted), outcomes(computer.text), computer.tail(60)


@pytest.fixture
def words(request):
    """--words: more for the program's command line."""
    return request.config.getoption("--words")


@pytest.fixture
def bare(words, l1_images, tmp_path_factory):
    def run(name):
        return bare_run(name, l1_images / f"{name}.elf", tmp_path_factory.getbasetemp() / f"bare-{name}", words)

    return run


@pytest.mark.parametrize("name", EACH)
def test_bare(name, bare):
    """The program is right: the bare machine passes it, known deviations of the emulator aside."""
    if not options(name)["bare"]:
        pytest.skip("runs only under Nidus")
    found, _, tail = bare(name)
    assert not unlisted_faults(found, name, 0), tail


@pytest.fixture
def under_nidus(bare, words, l1_images, guest, iso, bochs):
    """Runs a program as L1, with further options of the guest, and compares what it says with the bare machine."""
    def run(name, **more):
        wanted = options(name)
        program = guest(name, kernel=l1_images / f"{name}.elf", mem=wanted["memory"], vcpus=wanted["vcpus"],
                        cmdline=f"{wanted['cmdline']} {words}".strip(), **wanted.get("guest", {}), **more)
        memory = max(512 << 20, guest_list.parse_size(wanted["memory"], name) + (256 << 20))
        computer = bochs(iso([program], wanted.get("hv", "")), cpus=wanted["vcpus"], memory=memory)
        computer.wait_end(wanted["timeout"])

        assert f"nidus: guest {name} started" in computer.lines
        assert console.guests(computer.text).endings == {name: wanted["ending"]}
        found = read_verdicts(computer, wanted)
        assert not unlisted_faults(found, name, 1)
        if wanted["bare"]:
            verdicts, bare_outcomes, _ = bare(name)
            assert differing(verdicts.named(), found.named(), listed(name)) == []
            apart = cases_apart(bare_outcomes, outcomes(computer.text))
            assert not apart, f"outcomes differ; --words '{' '.join(apart)}' shows them in full"

    return run


@pytest.mark.parametrize("name", EACH)
def test_under_nidus(name, under_nidus):
    under_nidus(name)


@pytest.mark.parametrize("name", WITHOUT_APICV)
def test_without_apicv(name, under_nidus):
    """L0 delivers interrupts itself, as on a processor that cannot."""
    under_nidus(name, apicv="off")


def cases_apart(bare_found, nidus_found):
    """What differs between two sets of outcomes; a key with three hex digits a case names the cases."""
    apart = []
    for key in sorted(bare_found.keys() | nidus_found.keys(), key=int):
        pair = [found.get(key, "-").strip() for found in (bare_found, nidus_found)]
        if pair[0] == pair[1]:
            continue
        digits = [re.findall("...", text) for text in pair]
        if len(digits[0]) == len(digits[1]) and not pair[0].count(" "):
            apart += [f"case={int(key) + i}" for i, two in enumerate(zip(*digits)) if two[0] != two[1]]
        else:
            apart.append(f"case {key}: bare {pair[0]}, under Nidus {pair[1]}")
    return apart


def differing(bare_named, nidus_named, allowed):
    """Lines that tell where the two runs differ and should not, or should and do not."""
    lines = []
    for check in sorted(bare_named.keys() | nidus_named.keys() | allowed.keys()):
        got = bare_named.get(check, "-"), nidus_named.get(check, "-")
        want = allowed.get(check)
        if (want and got != want) or (not want and got[0] != got[1]):
            lines.append(f"{check}: bare {got[0]}, under Nidus {got[1]}"
                         + (f"; differences.toml says {want[0]}, {want[1]}" if want else ""))
    return lines
