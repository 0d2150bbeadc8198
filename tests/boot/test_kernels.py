# SPDX-License-Identifier: Apache-2.0
"""The kernels of this folder and the parser of their output are right: they run bare, loaded by GRUB."""
from modules import SIZES, expected, report, write_files


def test_modcheck_bare(boot_kernels, tmp_path, grub_iso, bochs):
    files = write_files(tmp_path, SIZES)
    commands = ["multiboot /boot/k first 'second=a b'"]
    commands += [f"module /boot/m{number} string {number}" for number in range(len(files))]
    image = grub_iso(commands, {"k": boot_kernels / "modcheck.elf"} | {f"m{n}": path for n, path in enumerate(files)})
    computer = bochs(image, memory=128 << 20)
    computer.wait_for("^end of modules$", 60)
    computer.wait_end(10)

    assert 'cmdline [first "second=a b"]' in computer.lines
    assert report(computer.text) == expected(files, [f"string {number}" for number in range(len(files))])


def test_selfcheck_bare(boot_kernels, grub_iso, bochs):
    computer = bochs(grub_iso(["multiboot /boot/k rounds=3"], {"k": boot_kernels / "selfcheck.elf"}), memory=128 << 20)
    computer.wait_for("^round 3 of the self-check found nothing$", 60)
    computer.wait_for("^all is well$", 10)
    computer.wait_end(10)
