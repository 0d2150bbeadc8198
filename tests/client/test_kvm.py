# SPDX-License-Identifier: Apache-2.0
"""Debian's kvm_intel and QEMU in an L1: a small multiboot L2 and a Linux L2 run to their ends."""
import pytest

import client

CHECKS = {"cpus", "vmx", "modprobe_kvm_intel", "kernel_log",
          "l2_small_status", "l2_small_starts", "l2_small_multiboot", "l2_small_hypervisor", "l2_small_memory",
          "l2_small_ends", "l2_linux_status", "l2_linux_init", "l2_linux_userland"}


@pytest.fixture
def kvm_iso(iso, guest, client_images):
    """kvm_iso(vcpus): Nidus with the KVM image as its guest `kvm`."""

    def build(vcpus):
        return iso([guest("kvm", kernel=client_images / "vmlinuz", initrd=client_images / "kvm.cpio", mem="1G",
                          vcpus=vcpus, cmdline=f"console=ttyS0 quiet expect_cpus={vcpus} l2_cpus={vcpus}")])

    return build


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("vcpus, seconds", [(1, 400), (2, 900)])
def test_l2s(kvm_iso, bochs, vcpus, seconds):
    kvm = bochs(kvm_iso(vcpus), cpus=vcpus, memory=1536 * client.MIB)
    verdicts = client.run(kvm, seconds)
    assert verdicts == dict.fromkeys(CHECKS, "PASS")
    client.assert_exit_0(kvm, "kvm")
