#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the client images: `images.py OUT` fills OUT with vmlinuz, xen, linux.cpio, kvm.cpio, host.cpio, dom0.cpio and what they are made of.

Everything comes from Debian packages on this machine and from tests/client; nothing is configured here but the list of
contents. Must not run an emulator.
"""
import gzip
import os
import pathlib
import re
import subprocess
import sys

import debian_kernel
import debian_xen
from cpio import Archive

HERE = pathlib.Path(__file__).resolve().parent
BUSYBOX = "/bin/busybox"
QEMU = pathlib.Path("/usr/bin/qemu-system-x86_64")
ROMS = ["/usr/share/seabios/bios-256k.bin", *(f"/usr/share/qemu/{name}.bin" for name in
        ("kvmvapic", "linuxboot", "linuxboot_dma", "multiboot", "multiboot_dma", "pvh"))]
PTHREAD_CANCEL = "/lib/x86_64-linux-gnu/libgcc_s.so.1"  # asked for at run time only
APPLETS = "sh mount umount cat cut echo grep sed sleep dmesg poweroff usleep tr wc modprobe ls timeout nproc head tail mkdir".split()


def base_archive(out, init_script):
    """Busybox, the time stamp program as /init, and one of guest/'s scripts behind it."""
    archive = Archive()
    for name in ("dev", "proc", "sys", "tmp", "bin"):
        archive.folder(name)
    archive.char_device("dev/console", 5, 1)
    archive.char_device("dev/null", 1, 3)
    archive.file("bin/busybox", pathlib.Path(BUSYBOX).read_bytes(), 0o755)
    for applet in APPLETS:
        archive.link(f"bin/{applet}", "busybox")
    archive.file("init", (out / "stamp").read_bytes(), 0o755)
    archive.file("init.sh", (HERE / "guest" / init_script).read_bytes(), 0o755)
    archive.file("common.sh", (HERE / "guest" / "common.sh").read_bytes())
    return archive


def shared_objects(program, folder=None):
    """The dynamic loader and every library of `program`, by the names they are asked for; those in `folder` first."""
    environment = os.environ | ({"LD_LIBRARY_PATH": str(folder)} if folder else {})
    text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True, env=environment).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", text)))


def add_qemu(archive):
    archive.file(str(QEMU), QEMU.read_bytes(), 0o755)
    for library in shared_objects(QEMU):
        archive.file(library, pathlib.Path(library).read_bytes(), 0o755)
    for rom in ROMS:
        archive.file(rom, pathlib.Path(rom).read_bytes())


def add_modules(archive, kernel, names):
    """The modules with all they need, and the modules.dep that modprobe reads."""
    paths = debian_kernel.modules_with_dependencies(kernel, names)
    tree = f"lib/modules/{kernel.release}"
    for path in paths:
        archive.file(f"{tree}/{path}", (kernel.modules / path).read_bytes())
    # Each line names all modules before it: more than needed, never less, and in an order that loads.
    lines = [f"{path}: {' '.join(str(p) for p in reversed(paths[:i]))}\n" for i, path in enumerate(paths)]
    archive.file(f"{tree}/modules.dep", "".join(lines).encode())


def hypervisor_archive(out, kernel, init_script):
    archive = base_archive(out, init_script)
    add_modules(archive, kernel, ["kvm_intel"])
    add_qemu(archive)
    return archive


def kvm_archive(out, kernel):
    archive = hypervisor_archive(out, kernel, "init-kvm.sh")
    archive.file("l2/small.elf", (out / "l2.elf").read_bytes())
    archive.file("l2/vmlinuz", kernel.image.read_bytes())
    archive.file("l2/initrd", base_archive(out, "init-l2.sh").bytes())
    return archive


def dom0_archive(out, kernel, xen):
    """Xen's first domain, with the small kernel as its guest."""
    archive = base_archive(out, "init-dom0.sh")
    add_modules(archive, kernel, ["xenfs", "xen_evtchn", "xen_gntdev"])
    libraries = {path for tool in xen.tools for path in shared_objects(tool, xen.libraries)}
    for library in sorted(libraries | {PTHREAD_CANCEL}):
        archive.file(xen.inside(pathlib.Path(library)), pathlib.Path(library).read_bytes(), 0o755)
    for tool in xen.tools:
        archive.file(f"bin/{tool.name}", tool.read_bytes(), 0o755)
    for name in ("run/xenstored", "run/xen", "var/lib/xen", "var/lib/xenstored", "var/lock", "var/log/xen/console"):
        archive.folder(name)
    archive.link("var/run", "../run")
    archive.file("l2/small.elf", (out / "l2.elf").read_bytes())
    archive.file("etc/xen/xl.conf", b"")
    archive.file("l2/small.cfg", (HERE / "guest" / "domu.cfg").read_bytes())
    return archive


def compressed(data):
    """Loaders pay far more for a byte read than the kernel for a byte unpacked. No time stamp: same input, same bytes."""
    return gzip.compress(data, 9, mtime=0)


def write_if_changed(path, data):
    """Leave the time of an unchanged file alone."""
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


def main():
    out = pathlib.Path(sys.argv[1])
    kernel = debian_kernel.find(out / "kernel")
    write_if_changed(out / "vmlinuz", kernel.image.read_bytes())
    write_if_changed(out / "linux.cpio", compressed(base_archive(out, "init-linux.sh").bytes()))
    write_if_changed(out / "kvm.cpio", compressed(kvm_archive(out, kernel).bytes()))
    write_if_changed(out / "host.cpio", compressed(hypervisor_archive(out, kernel, "init-host.sh").bytes()))
    xen = debian_xen.find(out / "xen-packages")
    write_if_changed(out / "xen", xen.kernel())
    write_if_changed(out / "dom0.cpio", compressed(dom0_archive(out, kernel, xen).bytes()))
    print(f"client: {kernel.release} and its images are in {out}")


if __name__ == "__main__":
    main()
