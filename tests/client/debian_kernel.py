# SPDX-License-Identifier: Apache-2.0
"""Debian's stock kernel: finds the image and its modules. Must not install anything on the machine.

An installed linux-image package is taken as it is; without one the package is downloaded by apt-get and only unpacked,
so no bootloader hook and no initramfs generator runs.
"""
import pathlib
import re
import struct
import subprocess
import sys

import debian_package

META_PACKAGE = "linux-image-amd64"
FLAVOUR = re.compile(r"^\d+\.\d+\.\d+-\d+-amd64$")  # neither cloud-amd64 nor rt-amd64


class Kernel:
    """A kernel image with its module tree below `root`."""

    def __init__(self, root, release):
        self.release = release
        self.image = root / "boot" / f"vmlinuz-{release}"
        self.modules = root / "lib" / "modules" / release

    def complete(self):
        return self.image.is_file() and (self.modules / "kernel").is_dir()


def newest(root):
    """The newest stock kernel below `root`, or None."""
    releases = [p.name[len("vmlinuz-"):] for p in root.glob("boot/vmlinuz-*")]
    releases = [r for r in releases if FLAVOUR.match(r)]
    releases.sort(key=lambda r: [int(n) for n in re.findall(r"\d+", r)], reverse=True)
    for release in releases:
        kernel = Kernel(root, release)
        if kernel.complete():
            return kernel
    return None


def package_name():
    """linux-image-amd64 is empty; the kernel is in the package that it depends on."""
    out = subprocess.run(["apt-cache", "depends", META_PACKAGE], check=False, capture_output=True, text=True).stdout
    names = re.findall(r"Depends: (linux-image-\S+)", out)
    return names[0] if names else META_PACKAGE


def find(folder):
    """The kernel to test with: the installed one, the one unpacked before, or a fresh download."""
    kernel = newest(pathlib.Path("/")) or newest(folder / "root") or newest(debian_package.unpack(folder, [package_name()]))
    if kernel is None:
        sys.exit(f"client: no stock kernel in the package {META_PACKAGE}")
    return kernel


def modules_with_dependencies(kernel, names):
    """Paths of the named modules, relative to the module tree, each after those it needs (as modinfo lists them)."""
    tree = {p.stem.split(".")[0].replace("-", "_"): p for p in kernel.modules.glob("kernel/**/*.ko*")}
    order = []

    def visit(name):
        path = tree[name.replace("-", "_")]
        if path in order:
            return
        out = subprocess.run(["/sbin/modinfo", "-F", "depends", path], check=True, capture_output=True, text=True).stdout
        for needed in filter(None, out.strip().split(",")):
            visit(needed)
        order.append(path)

    for name in names:
        visit(name)
    return [p.relative_to(kernel.modules) for p in order]


def entry_points(image):
    """Physical addresses of the 32-bit and of the 64-bit entry when the image is loaded where it prefers to be.

    Boot protocol fields: init_size and pref_address, xloadflags bit 0 for the 64-bit entry at +0x200.
    """
    header = pathlib.Path(image).read_bytes()[:0x270]
    if header[0x202:0x206] != b"HdrS":
        raise ValueError(f"{image}: no Linux boot header")
    pref_address, = struct.unpack_from("<Q", header, 0x258)
    return pref_address, pref_address + 0x200
