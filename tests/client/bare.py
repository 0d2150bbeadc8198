#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An image in Bochs without Nidus, and ticks from kernel entry to /init: the measure that Nidus is held against.

`bare.py --kernel F [--initrd F] [--cmdline S] [--cpus N] [--measure] --out DIR` shows the console as it comes.
Must not know what the image does.
"""
import argparse
import pathlib
import re
import sys

import debian_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from nidus_lib import iso as iso_image, machine  # noqa: E402


def linux_commands(cmdline, initrd=True):
    """GRUB commands that boot /boot/kernel with /boot/initrd."""
    return [f"linux /boot/kernel {cmdline}", *(["initrd /boot/initrd"] if initrd else [])]


def stop_commands(image):
    """Bochs debugger commands: stop at the first instruction of the kernel and at /init's `xchg %bx,%bx`, tell the time.

    The kernel's entry is a linear address, which is the same under a hypervisor; which of the two entries is used is
    the loader's choice. The clock is the emulator's: no hypervisor can shift or scale it.
    """
    entries = debian_kernel.entry_points(image)
    stops = [f"lb {entry:#x}" for entry in entries]
    drops = [f"d {number}" for number in range(1, len(entries) + 1)]
    return "\n".join([*stops, "c", "ptime", *drops, "c", "ptime", "c", ""])


def ticks_between_stops(computer):
    """Ticks from the first to the second stop of stop_commands."""
    text = (computer.folder / f"{computer.name}.out").read_text(errors="replace")
    times = [int(time) for time in re.findall(r"ptime: (\d+)", text)]
    if len(times) != 2:
        raise ValueError(f"{len(times)} stops instead of 2")
    return times[1] - times[0]


def show(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kernel", type=pathlib.Path, required=True)
    parser.add_argument("--initrd", type=pathlib.Path)
    parser.add_argument("--cmdline", default="console=ttyS0 quiet")
    parser.add_argument("--multiboot", action="store_true", help="the kernel is a multiboot1 image")
    parser.add_argument("--iso", type=pathlib.Path, help="boot this instead, e.g. one of `tools/nidus iso`")
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--memory", type=int, default=1024, help="MiB")
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--measure", action="store_true", help="ticks from kernel entry to /init")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    tree = iso_image.Tree(args.out / "tree")
    tree.add(args.kernel, "kernel")
    if args.initrd:
        tree.add(args.initrd, "initrd")
    commands = [f"multiboot /boot/kernel {args.cmdline}"] if args.multiboot else linux_commands(args.cmdline, args.initrd)
    tree.config(iso_image.QUIET_HEAD + "\n".join([*commands, "boot", "halt", ""]))
    iso = args.iso or tree.build(args.out / "bare.iso")
    debugger = stop_commands(args.kernel) if args.measure else "c\n"
    with machine.Bochs(args.out, iso, magic=args.measure, commands=debugger, cpus=args.cpus, memory=args.memory << 20,
                       echo=show) as computer:
        computer.start().wait_end(args.timeout)
        print(f"bare: {computer.seconds:.1f} s, {computer.trouble() or 'switched off'}")
        if args.measure:
            print(f"bare: {ticks_between_stops(computer)} ticks from kernel entry to /init")


if __name__ == "__main__":
    main()
