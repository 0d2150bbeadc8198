# SPDX-License-Identifier: Apache-2.0
"""Every way to load Nidus, and every module set, brings the same bytes to the guest."""
import re

import pytest

from conftest import endings, iso_image
from modules import SIZES, expected, report, write_files

# Protocol of GRUB's command, and the image.
LOADERS = {
    "multiboot2": (2, "nidus.elf"),
    "multiboot1": (1, "nidus.elf"),
    "multiboot1-elf32": (1, "nidus32.elf"),
}


def module_set(paths, strings, mem="64M"):
    """GRUB modules of guest lab: modcheck at /boot/k, then the files at /boot/m0 ... with their strings."""
    modules = [("/boot/k", ["guest=lab", "role=kernel", f"mem={mem}", "--", "one", "two"])]
    return modules + [(f"/boot/m{number}", ["guest=lab", "role=module", *(["--", *string.split()] if string else [])])
                      for number, (_, string) in enumerate(zip(paths, strings))]


@pytest.fixture
def boot_modules(nidus_image, boot_kernels, grub_iso, bochs):
    """Boot modcheck with these files as its modules; returns the machine after its end."""

    def boot(loader, paths, strings, mem="64M", **rest):
        protocol, image = LOADERS[loader]
        commands = iso_image.loader_commands(protocol, f"/boot/{image}", "", module_set(paths, strings, mem))
        files = {image: nidus_image.with_name(image), "k": boot_kernels / "modcheck.elf"}
        files |= {f"m{number}": path for number, path in enumerate(paths)}
        computer = bochs(grub_iso(commands, files), **rest)
        computer.wait_end(120)
        return computer

    return boot


@pytest.mark.parametrize("loader", LOADERS)
def test_odd_sizes(loader, tmp_path, boot_modules):
    """Modules of a byte, around a page and of several pages."""
    paths = write_files(tmp_path, SIZES)
    strings = ["first", "", "a b c", "console=ttyS0,115200", "last"]
    computer = boot_modules(loader, paths, strings)

    assert endings(computer) == {"lab": "exit 0"}
    assert "cmdline [lab one two]" in computer.lines  # a loader's first word is the program: the guest's name
    assert report(computer.text) == expected(paths, strings)


@pytest.mark.parametrize("loader", ["multiboot2", "multiboot1"])
def test_thirty_modules(loader, tmp_path, boot_modules):
    paths = write_files(tmp_path, [1000 * number + 1 for number in range(29)])
    strings = [f"number {number}" for number in range(29)]
    computer = boot_modules(loader, paths, strings)

    assert endings(computer) == {"lab": "exit 0"}
    assert report(computer.text) == expected(paths, strings)


def test_big_module(tmp_path, boot_modules):
    paths = write_files(tmp_path, [(24 << 20) + 3])
    computer = boot_modules("multiboot2", paths, ["big"], mem="128M")

    assert endings(computer) == {"lab": "exit 0"}
    assert report(computer.text) == expected(paths, ["big"])


@pytest.mark.parametrize("megabytes", [128, 1024, 2048])
def test_memory_sizes(megabytes, tmp_path, boot_modules):
    paths = write_files(tmp_path, [5000])
    computer = boot_modules("multiboot2", paths, ["x"], mem="32M", memory=megabytes << 20)

    assert endings(computer) == {"lab": "exit 0"}
    assert report(computer.text) == expected(paths, ["x"])


def test_ram_above_4g(tmp_path, boot_modules):
    """RAM behind the hole below 4 GiB is used: guests get theirs from the top. Bochs holds 2 GiB of it, so not all is touched."""
    paths = write_files(tmp_path, [5000])
    computer = boot_modules("multiboot2", paths, ["x"], mem="1G", memory=6 << 30, sparse=True)

    assert int(re.search(r"(\d+) MiB free", computer.text)[1]) > 4096
    assert endings(computer) == {"lab": "exit 0"}
    assert report(computer.text) == expected(paths, ["x"])


def test_many_cpus(tmp_path, boot_modules):
    paths = write_files(tmp_path, [1])
    computer = boot_modules("multiboot2", paths, ["x"], cpus=4)
    assert endings(computer) == {"lab": "exit 0"}


def test_two_guests(guest, boot_kernels, iso, bochs, tmp_path):
    """Each guest gets its own modules and a prefixed console."""
    paths = write_files(tmp_path, [100, 200])
    guests = [guest(name, kernel=boot_kernels / "modcheck.elf", module=f"{path} {name}-module", mem="64M", cmdline=f"for-{name}")
              for name, path in zip(("red", "blue"), paths)]
    computer = bochs(iso(guests), cpus=2)
    computer.wait_end(120)

    assert endings(computer) == {"red": "exit 0", "blue": "exit 0"}
    for name, path in zip(("red", "blue"), paths):
        own = "\n".join(line[len(name) + 2:] for line in computer.lines if line.startswith(f"{name}: "))
        assert f"cmdline [{name} for-{name}]" in own
        assert report(own) == expected([path], [f"{name}-module"])
