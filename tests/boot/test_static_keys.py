# SPDX-License-Identifier: Apache-2.0
"""Code that is patched at boot (hv/static_key): every key is flipped, the code is looked at in memory, and L1 programs run both ways.

A key's code is on or off by what the machine has, so a machine of each kind is started. All other tests run the way of the newest model.
"""
import dataclasses
import re
import struct
import subprocess

import pytest

from conftest import TOP, console

SITE = struct.Struct("<IHH")  # struct static_site
NOPS = {1: "90", 2: "66 90", 3: "0f 1f 00", 4: "0f 1f 40 00", 5: "0f 1f 44 00 00"}


@dataclasses.dataclass
class Key:
    on: dict  # machine on which the key is on
    off: dict
    code: dict  # mnemonic -> its bytes: stands at the key's sites and nowhere else
    programs: list  # L1 programs that come by its sites; what else they are given


# By the names of enum static_key.
KEYS = {
    "KEY_SMAP": Key(on={}, off={"model": "corei7_haswell_4770"},  # Bochs' newest with all of VMX that L0 needs and no SMAP
                    code={"stac": "0f 01 cb", "clac": "0f 01 ca"},
                    programs=[("ioapic", {}), ("nested_ept", {}), ("nested_msr_lists", {}), ("hyperv_evmcs", {"hyperv": True})]),
}
OFF = [pytest.param(key, program, more, id=f"{name}-{program}") for name, key in KEYS.items() for program, more in key.programs]


def tool(*argv):
    return subprocess.run(argv, check=True, capture_output=True).stdout


@pytest.fixture
def sites(nidus_image):
    """[(address, length, key's number)] of the image."""
    return list(SITE.iter_unpack(tool("objcopy", "-O", "binary", "--only-section=.static_key", nidus_image, "/dev/stdout")))


def test_every_key_is_flipped():
    """Who adds a key says here how it is flipped."""
    found = re.search(r"enum static_key \{(.*?)\};", (TOP / "hv" / "static_key.h").read_text(encoding="utf-8"), re.DOTALL)
    names = re.findall(r"^\t(KEY_\w+)", found[1], re.MULTILINE)
    assert names == list(KEYS)


def test_sites_are_listed(nidus_image, sites):
    """An instruction that is patched stands at listed places only: one elsewhere would stay on a machine without it."""
    listing = tool("objdump", "-d", "--no-show-raw-insn", nidus_image).decode()
    for number, key in enumerate(KEYS.values()):
        found = {int(at, 16) for at, name in re.findall(r"^ *([0-9a-f]+):\s+(\w+)", listing, re.MULTILINE) if name in key.code}
        assert found and found == {at for at, _, of in sites if of == number}


def in_memory(computer, at):
    """The bytes there as the debugger printed them."""
    out = (computer.folder / "bochs.out").read_text(errors="replace")
    found = re.search(rf"^0x0*{at:x} <[^>]*>:((?:\s+0x[0-9a-f]{{2}})+)", out, re.MULTILINE)
    return " ".join(byte[2:] for byte in found[1].split()) if found else None


@pytest.mark.parametrize("way", ["on", "off"])
@pytest.mark.parametrize("name", KEYS)
def test_code_in_memory(bochs, iso, guest, l1_images, nidus_image, sites, name, way):
    """Before the first guest runs the code of a key that is on is there, of one that is off a NOP of its length."""
    start = re.search(rb"^([0-9a-f]+) T guests_start$", tool("nm", nidus_image), re.MULTILINE)[1].decode()
    mine = [(at, length) for at, length, number in sites if number == list(KEYS).index(name)]
    look = "".join(f"xp /{length}bx 0x{at:x}\n" for at, length in mine)
    image = iso([guest("exit_code", kernel=l1_images / "exit_code.elf", mem="64M")])
    computer = bochs(image, commands=f"pb 0x{start}\nc\n{look}c\n", **getattr(KEYS[name], way))
    computer.wait_end(120)
    for at, length in mine:
        assert in_memory(computer, at) in (KEYS[name].code.values() if way == "on" else [NOPS[length]]), hex(at)


@pytest.mark.parametrize("key, program, more", OFF)
def test_off(bochs, iso, guest, l1_images, key, program, more):
    """What is patched out is not missed."""
    computer = bochs(iso([guest(program, kernel=l1_images / f"{program}.elf", mem="64M", **more)]), **key.off)
    computer.wait_end(120)
    assert console.guests(computer.text).endings.get(program) == "exit 0"
    found = console.verdicts(computer.text)
    assert not found.faults
    assert "PASS" in found.named().values()
