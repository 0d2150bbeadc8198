# SPDX-License-Identifier: Apache-2.0
"""Fixtures of everything that boots: built images, ISOs and machines that are switched off whatever happens."""
import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tools"))
from nidus_lib import BUILD, console, guests as guest_list, iso as iso_image, machine  # noqa: E402

MACHINES = pytest.StashKey[list]()


def pytest_addoption(parser):
    parser.addoption("--words", default="", help="more words for the command line of the L1 programs, such as 'seed=7 case=12'")


def make(target):
    """`make TARGET`, one at a time over all workers."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / ".tests.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", f"BUILD={os.path.relpath(BUILD, TOP)}", target], cwd=TOP, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"make {target} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}", pytrace=False)


@pytest.fixture(scope="session")
def nidus_image():
    """build/nidus.elf and build/nidus32.elf are up to date."""
    make("all")
    return BUILD / "nidus.elf"


@pytest.fixture(scope="session")
def l1_images():
    """The folder of the L1 programs, up to date."""
    make("l1")
    return BUILD / "l1"


@pytest.fixture(scope="session")
def boot_kernels():
    """The folder of the small kernels of tests/boot, up to date."""
    make("boot-kernels")
    return BUILD / "boot"


@pytest.fixture(scope="session")
def client_images():
    """Whatever tests/client builds with make."""
    make("client")
    return BUILD / "client"


@pytest.fixture
def guest():
    """guest("lab", kernel=FILE, initrd=FILE, mem="512M", vcpus=2, cmdline="..."): a guest for `iso`.

    A role takes a list too; paths are absolute or relative to the top of the repository.
    """

    def build(name, **settings):
        pairs = [(key, value if isinstance(value, (bool, list)) else str(value)) for key, value in settings.items()]
        return guest_list.make_guest(name, pairs, TOP)

    return build


@pytest.fixture
def iso(tmp_path, nidus_image):
    """iso(GUESTS, hv=""): the ISO that `nidus run` would boot."""

    def build(guests, hv=""):
        return iso_image.run_iso(tmp_path / "tree", tmp_path / "nidus.iso", guests, hv)

    return build


@pytest.fixture
def grub_iso(tmp_path):
    """grub_iso(COMMANDS, {NAME: FILE}): an ISO that runs these GRUB commands and boots; files are at /boot/NAME."""

    def build(commands, files, head=iso_image.QUIET_HEAD):
        tree = iso_image.Tree(tmp_path / "tree")
        for name, path in files.items():
            tree.add(path, name)
        tree.config(head + "\n".join([*commands, "boot", "halt", ""]))
        return tree.build(tmp_path / "grub.iso")

    return build


def starter(request, folder, build):
    """A function that starts a machine made by `build`; all of them are switched off when the test is over."""
    machines = request.node.stash.setdefault(MACHINES, [])

    def start(*args, **rest):
        computer = build(folder / f"machine{len(machines)}", *args, **rest)
        machines.append(computer)
        return computer.start()

    yield start
    for computer in machines:
        computer.kill()


@pytest.fixture
def bochs(request, tmp_path):
    """bochs(ISO, cpus=1, memory=512 << 20, ...): a running machine.Bochs."""
    yield from starter(request, tmp_path, machine.Bochs)


@pytest.fixture
def qemu(request, tmp_path):
    """qemu(iso=..., kernel=..., uefi=False, ...): a running machine.Qemu without VMX."""
    yield from starter(request, tmp_path, machine.Qemu)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the consoles of its machines."""
    report = (yield).get_result()
    if report.failed and call.when == "call":
        for computer in item.stash.get(MACHINES, []):
            report.sections.append((f"console of {computer.folder.name}", computer.tail(60)))
            if computer.trouble():
                report.sections.append((f"{computer.name} said", computer.trouble()))


def endings(computer):
    """name -> ending of all guests."""
    return console.guests(computer.text).endings
