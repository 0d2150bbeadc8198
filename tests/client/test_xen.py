# SPDX-License-Identifier: Apache-2.0
"""Debian's Xen with Debian's kernel as dom0, whose xl runs a small PVH guest: bare, where that guest is an L1, and as L1 of Nidus."""
import re

import pytest

import client

CHECKS = {"cpus", "clock_advances", "xen", "dom0", "daemons", "hvm_hap", "hvm_x86_64", "l2_status", "l2_starts", "l2_pvh",
          "l2_hypervisor", "l2_memory", "l2_ends", "kernel_log"}
# Xen takes the first word for the image's name where the loader is not GRUB.
XEN = "xen loglvl=all guest_loglvl=all console=com1 com1=115200,8n1 dom0_mem=512M"
SAYS = ["HVM: VMX enabled", "HVM: Hardware Assisted Paging (HAP) detected", "HVM: ASIDs enabled.", " - Unrestricted Guest",
        " - Virtual Interrupt Delivery", " - VMCS shadowing", "Entering ACPI S5 state."]


# The bare machine's CPUID tells a wrong size of the compacted layout, and Linux complains of it (docs/clients.md).
BARE_DOM0 = " noxsave"


def dom0(vcpus):
    return f"vmlinuz console=hvc0 quiet expect_cpus={vcpus}"


def runs(machine, seconds):
    verdicts = client.run(machine, seconds)
    assert verdicts == dict.fromkeys(CHECKS, "PASS")
    said = set(re.findall(r"^\(XEN\) (.*?)\s*$", machine.text, re.M))
    assert not set(SAYS) - said


@pytest.fixture
def bare_iso(grub_iso, client_images):
    files = {"xen": client_images / "xen", "vmlinuz": client_images / "vmlinuz", "initrd": client_images / "dom0.cpio"}
    return grub_iso([f"multiboot2 /boot/xen {XEN}", f"module2 /boot/vmlinuz {dom0(1)}{BARE_DOM0}", "module2 /boot/initrd"], files)


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_bare(bare_iso, bochs):
    machine = bochs(bare_iso, memory=1024 * client.MIB)
    runs(machine, 250)
    assert not machine.trouble()


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("vcpus, seconds", [(1, 300), (2, 700)])
def test_as_l1(iso, guest, bochs, client_images, vcpus, seconds):
    modules = [f"{client_images / 'vmlinuz'} {dom0(vcpus)}", str(client_images / "dom0.cpio")]
    xen = guest("xen", kernel=client_images / "xen", module=modules, mem="1G", vcpus=vcpus, cmdline=XEN)
    machine = bochs(iso([xen]), cpus=vcpus, memory=1536 * client.MIB)
    runs(machine, seconds)
    client.assert_exit_0(machine, "xen")
