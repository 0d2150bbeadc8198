# SPDX-License-Identifier: Apache-2.0
"""Debian's Xen: the hypervisor, and of its tools what one `xl create` in dom0 needs. Must not install anything.

Everything is unpacked into one tree, also where a package is installed: installing Xen changes what a machine boots.
"""
import gzip

import debian_package

VERSION = "4.17"
PACKAGES = [f"xen-hypervisor-{VERSION}-amd64", f"xen-utils-{VERSION}", f"libxenmisc{VERSION}", "libxencall1", "libxendevicemodel1",
            "libxenevtchn1", "libxenforeignmemory1", "libxengnttab1", "libxenhypfs1", "libxenstore4", "libxentoolcore1",
            "libxentoollog1", "libyajl2"]
TOOLS = ["xenstored", "xen-init-dom0", "xenconsoled", "xl"]


class Xen:
    """The tree below `root`."""

    def __init__(self, root):
        self.root = root
        self.image = root / "boot" / f"xen-{VERSION}-amd64.gz"
        self.libraries = root / "usr" / "lib" / "x86_64-linux-gnu"
        self.tools = [root / "usr" / "lib" / f"xen-{VERSION}" / "bin" / name for name in TOOLS]

    def complete(self):
        return self.image.is_file() and self.libraries.is_dir() and all(tool.is_file() for tool in self.tools)

    def kernel(self):
        """The multiboot image: loaders other than GRUB do not unpack it."""
        return gzip.decompress(self.image.read_bytes())

    def inside(self, path):
        """Where a file of the tree belongs."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def find(folder):
    """What was unpacked before, or a fresh download."""
    xen = Xen(folder.resolve() / "root")
    if not xen.complete():
        debian_package.unpack(folder, PACKAGES)
    return xen
