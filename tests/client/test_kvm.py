# SPDX-License-Identifier: Apache-2.0
"""Debian's kvm_intel and QEMU in an L1, plain and on Hyper-V: a small multiboot L2 and a Linux L2 run to their ends."""
import sys

import pytest

import client

CHECKS = {"cpus", "vmx", "hyperv_detected", "clocksource", "modprobe_kvm_intel", "evmcs", "kernel_log",
          "l2_small_status", "l2_small_starts", "l2_small_multiboot", "l2_small_hypervisor", "l2_small_memory",
          "l2_small_ends", "l2_linux_status", "l2_linux_init", "l2_linux_userland"}


@pytest.fixture
def kvm_iso(iso, guest, client_images):
    """kvm_iso(vcpus): Nidus with the KVM image as its guest `kvm`, whose L2s have `l2_cpus`."""

    def build(vcpus, hyperv="off", l2_cpus=None):
        cmdline = f"console=ttyS0 quiet expect_cpus={vcpus} l2_cpus={l2_cpus or vcpus} hyperv={hyperv}"
        return iso([guest("kvm", kernel=client_images / "vmlinuz", initrd=client_images / "kvm.cpio", mem="1G",
                          vcpus=vcpus, hyperv=hyperv, cmdline=cmdline)])

    return build


def runs(kvm, seconds):
    verdicts = client.run(kvm, seconds)
    assert verdicts == dict.fromkeys(CHECKS, "PASS")
    client.assert_exit_0(kvm, "kvm")


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("vcpus, seconds", [(1, 400), (2, 900)])
def test_l2s(kvm_iso, bochs, vcpus, seconds):
    kvm = bochs(kvm_iso(vcpus), cpus=vcpus, memory=1536 * client.MIB)
    runs(kvm, seconds)
    assert not client.hyperv_counters(kvm, "kvm")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("vcpus, l2_cpus, seconds", [(1, 1, 400), (2, 2, 900), (4, 1, 900)])
def test_l2s_on_hyperv(kvm_iso, bochs, capsys, vcpus, l2_cpus, seconds):
    """kvm_intel's entries come by enlightened VMCSs, most groups are clean, and L0 serves its calls."""
    kvm = bochs(kvm_iso(vcpus, "on", l2_cpus), cpus=vcpus, memory=1536 * client.MIB)
    runs(kvm, seconds)
    n = client.hyperv_counters(kvm, "kvm")
    with capsys.disabled():  # of a worker process only stderr reaches the terminal
        print(f"\n{vcpus} vCPUs on Hyper-V: {n}", file=sys.stderr)
    assert n["evmcs entries"] > 10000
    assert n["clean groups"] > 10 * n["evmcs entries"]
    assert n["msr bitmaps kept"] > 100 * n["merged"]
    assert n["mapping flushes"]
    if vcpus > 1:
        assert n["space flushes"] + n["list flushes"] and n["ipis"]
