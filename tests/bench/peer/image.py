#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the peer's initramfs: `image.py CLIENT BENCH OUT` puts Debian's KVM and QEMU and the image BENCH into OUT.

CLIENT is the folder of `make client`. Must not know what the bench measures.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "client"))
import debian_kernel  # noqa: E402
import images  # noqa: E402


def main():
    client, bench, out = map(pathlib.Path, sys.argv[1:])
    archive = images.base_archive(client, HERE / "init.sh")
    images.add_modules(archive, debian_kernel.find(client / "kernel"), ["kvm_intel"])
    images.add_qemu(archive)
    archive.file("bench.elf", bench.read_bytes())
    out.write_bytes(images.compressed(archive.bytes()))


if __name__ == "__main__":
    main()
