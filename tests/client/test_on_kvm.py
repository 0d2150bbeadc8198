# SPDX-License-Identifier: Apache-2.0
"""Nidus as a guest of Debian's KVM and QEMU, which run as L0 in the emulator: started by -kernel and from its ISO, plain and with
enlightened VMCSs; what its own guest said and how it ended reaches this test.
"""
import re

import pytest

import client
from conftest import endings
from cpio import Archive
from nidus_lib import machine, peers

CHECKS = {"vmx", "modprobe_kvm_intel", "nidus_status", "l2-said-hello"}


@pytest.fixture
def kvm_host(grub_iso, iso, guest, nidus_image, l1_images, client_images, bochs, tmp_path):
    """kvm_host(boot=..., ...): Linux with KVM, in whose QEMU Nidus runs the demo."""

    def run(seconds, boot="kernel", qemu_machine="pc", cpus=1, evmcs="off", hv=""):
        demo = guest("demo", kernel=l1_images / "demo.elf", mem="64M")
        added = Archive()
        if boot == "kernel":
            added.file("nidus/nidus32.elf", nidus_image.with_name("nidus32.elf").read_bytes())
            (kernel, words, _), = demo.modules()
            added.file("nidus/kernel", kernel.read_bytes())
            added.file("nidus/module", " ".join(["/nidus/kernel", *words]).encode())
        else:
            added.file("nidus/lab.iso", iso([demo], hv).read_bytes())
        if boot == "ovmf":
            added.file("nidus/ovmf.fd", machine.OVMF.read_bytes())
        options = f"{peers.COMMAND_LINE} {peers.VARIANTS['off']} boot={boot} qemu_machine={qemu_machine} qemu_cpus={cpus} evmcs={evmcs} hv={hv}"
        nidus = tmp_path / "nidus.cpio"
        nidus.write_bytes(added.bytes())
        host = bochs(grub_iso([f"linux /boot/kernel {options}", "initrd /boot/initrd /boot/nidus"],
                              {"kernel": client_images / "vmlinuz", "initrd": client_images / "host.cpio", "nidus": nidus}),
                     cpus=cpus, memory=1536 * client.MIB)
        assert client.run(host, seconds) == dict.fromkeys(CHECKS, "PASS")
        assert endings(host) == {"demo": "exit 0"}
        return host.text

    return run


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("boot, qemu_machine, cpus, seconds", [
    ("kernel", "pc", 1, 200), ("kernel", "q35", 2, 300), ("cdrom", "pc", 1, 400), ("ovmf", "q35", 1, 900)])
def test_plain(boot, qemu_machine, cpus, seconds, kvm_host):
    text = kvm_host(seconds, boot, qemu_machine, cpus)
    assert "VMCSs are enlightened" not in text


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("boot, seconds", [("kernel", 200), ("cdrom", 400)])
def test_enlightened(boot, seconds, kvm_host):
    """KVM offers Hyper-V's enlightened VMCS, and Nidus takes it."""
    assert "VMCSs are enlightened" in kvm_host(seconds, boot, evmcs="on")


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_enlightened_refused(kvm_host):
    text = kvm_host(200, evmcs="on", hv="hv-guest=off")
    assert "VMCSs are enlightened" not in text
    assert re.search(r"L2 +\| cpuid round trip", text)
