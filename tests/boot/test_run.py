# SPDX-License-Identifier: Apache-2.0
"""tools/nidus as its users call it: exit status, streaming, ISOs that boot everywhere."""
import os
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, TOP, endings

TOOL = [sys.executable, str(TOP / "tools" / "nidus")]


@pytest.fixture
def nidus_run(nidus_image, boot_kernels):
    """nidus_run(CMDLINE, ...): one guest `ending` for each command line; options of the tool as keywords."""

    def run(*cmdlines, timeout="120", words=()):
        kernel = boot_kernels / "ending.elf"
        guests = [f"--guest=name=g{n},kernel={kernel},mem=32M,cmdline={text}" for n, text in enumerate(cmdlines)]
        return subprocess.run([*TOOL, "run", "--machine", "bochs", "--memory", "512M", "--timeout", timeout, *guests, *words],
                              capture_output=True, text=True, check=False, timeout=200, stdin=subprocess.DEVNULL)

    return run


@pytest.mark.parametrize("cmdline, status, ending", [
    ("exit=0", 0, "exit 0"), ("shutdown", 0, "exit 0"), ("exit=3", 1, "exit 3"), ("triple", 1, "triple-fault"),
])
def test_status(cmdline, status, ending, nidus_run):
    done = nidus_run(cmdline)
    assert "nidus: guest g0 started" in done.stdout.splitlines()
    assert f"nidus: guest g0 ended: {ending}" in done.stdout.splitlines()
    assert done.returncode == status, done.stderr


def test_one_bad_ending_of_two(nidus_run):
    assert nidus_run("exit=0", "exit=1").returncode == 1


def test_time_out(nidus_run):
    done = nidus_run("exit=0", "spin", timeout="30")
    assert done.returncode == 124
    assert "running: g1" in done.stderr


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_ended_from_outside(number, status, nidus_image, boot_kernels):
    """Ended by a signal, the tool takes its emulator with it and says so by the shell's status."""
    kernel = boot_kernels / "ending.elf"
    # A job in a shell's background ignores SIGINT, and so would its children.
    with subprocess.Popen(["env", "--default-signal=INT", *TOOL, "run", "--machine", "bochs", "--memory", "512M", "--timeout", "120",
                           f"--guest=name=g0,kernel={kernel},mem=32M,cmdline=spin"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
        assert any("guest g0 started" in line for line in tool.stdout)
        mine = subprocess.run(["pgrep", "-P", str(tool.pid)], capture_output=True, text=True, check=True).stdout.split()
        tool.send_signal(number)
        tool.communicate(timeout=30)
        assert tool.returncode == status
        assert not [pid for pid in mine if os.path.exists(f"/proc/{pid}")]


def test_words_after_dashes(nidus_run):
    assert nidus_run("", words=["--", "exit=0"]).returncode == 0


def test_wrong_use(nidus_run):
    done = subprocess.run([*TOOL, "run", "--guest", "kernel=/nowhere"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "nidus: guest guest0: kernel=/nowhere: no such file\n"


@pytest.mark.parametrize("uefi", [False, True], ids=["seabios", "ovmf"])
def test_iso_shows_a_menu(uefi, nidus_image, boot_kernels, tmp_path, qemu):
    """Both firmwares reach the menu and start its first entry, which QEMU without VMX refuses."""
    image = tmp_path / "lab.iso"
    subprocess.run([*TOOL, "iso", "--title", "My lab", "-o", image, "--guest", f"name=lab,kernel={boot_kernels / 'ending.elf'}"],
                   check=True)
    computer = qemu(iso=image, uefi=uefi)
    computer.wait_for("My lab", 60)
    computer.wait_for("Nidus \\(multiboot1\\)", 10)
    computer.wait_for("^nidus: .*VMX", 60)
    computer.wait_end(30)


def test_iso_boots_in_bochs(nidus_image, boot_kernels, tmp_path, bochs):
    image = tmp_path / "lab.iso"
    subprocess.run([*TOOL, "iso", "-o", image, "--guest", f"name=lab,kernel={boot_kernels / 'ending.elf'},mem=32M"], check=True)
    computer = bochs(image)
    computer.wait_for("Nidus \\(multiboot1\\)", 60)
    computer.send("\r")  # the menu takes keys from COM1; its countdown is slow in Bochs
    computer.wait_end(120)
    assert endings(computer) == {"lab": "exit 0"}


def test_demo(nidus_image, l1_images, tmp_path):
    """`make run`: an L1 starts an L2, shows what exits cost, and all is over within a minute."""
    done = subprocess.run(["make", "-s", "run", f"BUILD={os.path.relpath(BUILD, TOP)}"], cwd=TOP, capture_output=True, text=True, check=False,
                          timeout=180, stdin=subprocess.DEVNULL)
    assert "nidus: guest demo ended: exit 0" in done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
