# SPDX-License-Identifier: Apache-2.0
"""What Nidus cannot run on, or cannot run: one clear line, and an orderly end. Boot contract: "Hypervisor command
line", "A guest is one or more boot modules", "Endings of a guest"."""
import re

import pytest

from conftest import iso_image, machine

NO_VMX = r"^nidus: .*\bVMX\b.*$"


def own_lines(computer, pattern):
    return [line for line in computer.lines if re.search(pattern, line)]


def assert_refused(computer, pattern, timeout=120):
    """Exactly one line matches, no guest starts, and the machine switches itself off."""
    computer.wait_end(timeout)
    assert len(own_lines(computer, pattern)) == 1
    assert not own_lines(computer, r"^nidus: guest \S+ started")
    assert computer.trouble() == ""


@pytest.fixture
def checking_guest(guest, boot_kernels):
    return guest("lab", kernel=boot_kernels / "modcheck.elf", mem="64M")


# No VMX at all.


@pytest.mark.parametrize("uefi", [False, True], ids=["seabios", "ovmf"])
def test_no_vmx_in_qemu(uefi, iso, checking_guest, qemu):
    computer = qemu(iso=iso([checking_guest]), uefi=uefi)
    assert_refused(computer, NO_VMX)


def test_no_vmx_loaded_by_qemu(nidus_image, boot_kernels, qemu):
    computer = qemu(kernel=nidus_image.with_name("nidus32.elf"), append="loglevel=info",
                    modules=[f"{boot_kernels / 'modcheck.elf'} guest=lab"])
    assert_refused(computer, NO_VMX)


def test_no_vmx_in_bochs(iso, checking_guest, bochs):
    """An AMD processor: the power-off takes another path than in QEMU."""
    assert_refused(bochs(iso([checking_guest]), model="ryzen"), NO_VMX)


# VMX, but not as needed.


def test_vmx_locked_off(iso, checking_guest, bochs, tmp_path):
    """The BIOS, changed so that it locks IA32_FEATURE_CONTROL with VMX off: `or eax, 5` becomes `or eax, 1`."""
    enable, lock_only = bytes.fromhex("83c8050f30"), bytes.fromhex("83c8010f30")
    bios = machine.BOCHS_BIOS.read_bytes()
    assert bios.count(enable) == 2
    (tmp_path / "bios").write_bytes(bios.replace(enable, lock_only))
    computer = bochs(iso([checking_guest]), bios=tmp_path / "bios")
    assert_refused(computer, r"^nidus: .*VMX.*(locked|disabled|off)")


def test_no_ept(iso, checking_guest, bochs):
    """Bochs' Penryn has VMX without EPT."""
    assert_refused(bochs(iso([checking_guest]), model="core2_penryn_t9600"), r"^nidus: .*(EPT|unrestricted guest)")


def test_no_unrestricted_guest(iso, checking_guest, bochs):
    """Bochs' Arrandale and later have it; Lynnfield has EPT without it."""
    assert_refused(bochs(iso([checking_guest]), model="corei5_lynnfield_750"), r"^nidus: .*(EPT|unrestricted guest)")


@pytest.mark.parametrize("option", ["loglevel=loud", "when-done=never", "console=com9"])
def test_bad_option_value(option, iso, checking_guest, bochs):
    name, _, value = option.partition("=")
    assert_refused(bochs(iso([checking_guest], hv=option)), rf"^nidus: .*{name}.*{value}")


def test_unknown_option_is_a_warning(iso, checking_guest, bochs):
    computer = bochs(iso([checking_guest], hv="colour=green"))
    computer.wait_end(120)
    assert own_lines(computer, r"^nidus: .*colour")
    assert "nidus: guest lab ended: exit 0" in computer.lines


# Guests that cannot be started. One boot holds one of each; the tests look for their lines. The descriptions are
# written by hand because tools/nidus refuses most of them itself.

BAD_GUESTS = {
    "unknown-key": ["guest=a colour=green"],
    "bad-size": ["guest=b mem=12Q"],
    "bad-number": ["guest=c vcpus=two"],
    "bad-switch": ["guest=d vmx=maybe"],
    "bad-role": ["guest=e role=king"],
    "too-much-memory": ["guest=f mem=512G"],
    "no-kernel": ["guest=g"],
    "initrd-alone": ["guest=h role=initrd"],
}
SAID = {
    "unknown-key": r"^nidus: guest a: .*colour",
    "bad-size": r"^nidus: guest b: mem=12Q",
    "bad-number": r"^nidus: guest c: vcpus=two",
    "bad-switch": r"^nidus: guest d: vmx=maybe",
    "bad-role": r"^nidus: guest e: role=king",
    "too-much-memory": r"^nidus: guest f: mem=\S+ .*memory",
    "no-kernel": r"^nidus: guest g: .",
    "initrd-alone": r"^nidus: guest h: .*kernel",
}


@pytest.fixture(scope="module")
def bad_guests_console(tmp_path_factory, nidus_image, boot_kernels):
    """The console of a boot with all bad guests and a good one, and whether the machine went off by itself."""
    folder = tmp_path_factory.mktemp("bad-guests")
    (folder / "text").write_text("This is no kernel of any kind.\n" * 100, encoding="ascii")
    tree = iso_image.Tree(folder / "tree")
    image, kernel, text = (tree.add(path, path.name) for path in (nidus_image, boot_kernels / "modcheck.elf", folder / "text"))
    modules = [(text if case in ("no-kernel", "initrd-alone") else kernel, description.split())
               for case, descriptions in BAD_GUESTS.items() for description in descriptions]
    modules.append((kernel, ["guest=good", "mem=64M", "console=raw"]))
    tree.config(iso_image.QUIET_HEAD + "\n".join(iso_image.loader_commands(2, image, "", modules)) + "\nboot\nhalt\n")
    with machine.Bochs(folder, tree.build(folder / "bad.iso")) as computer:
        computer.start().wait_end(120)
        return computer.text


@pytest.mark.xdist_group("bad-guests")
@pytest.mark.parametrize("case", SAID)
def test_bad_guest_is_named(case, bad_guests_console):
    assert len(re.findall(SAID[case], bad_guests_console, re.MULTILINE)) == 1
    name = re.search(r"guest (\w):", SAID[case])[1]
    assert f"nidus: guest {name} started" not in bad_guests_console


@pytest.mark.xdist_group("bad-guests")
def test_bad_guests_do_not_stop_the_good_one(bad_guests_console):
    assert re.search("^nidus: guest good ended: exit 0$", bad_guests_console, re.MULTILINE)


def test_two_guests_of_one_name(tmp_path, nidus_image, boot_kernels, grub_iso, bochs):
    kernel = boot_kernels / "modcheck.elf"
    modules = [("/boot/k", ["guest=lab", "mem=64M"]), ("/boot/k", ["guest=lab", "mem=64M"])]
    computer = bochs(grub_iso(iso_image.loader_commands(2, "/boot/nidus.elf", "", modules),
                              {"nidus.elf": nidus_image, "k": kernel}))
    computer.wait_end(120)
    assert len(own_lines(computer, r"^nidus: guest lab: ")) == 1


def test_only_bad_guests(nidus_image, boot_kernels, grub_iso, bochs):
    """Nothing to run: the machine goes off all the same."""
    commands = iso_image.loader_commands(2, "/boot/nidus.elf", "", [("/boot/k", ["guest=lab", "mem=12Q"])])
    assert_refused(bochs(grub_iso(commands, {"nidus.elf": nidus_image, "k": boot_kernels / "modcheck.elf"})),
                   r"^nidus: guest lab: mem=12Q")


def test_no_guest_at_all(nidus_image, grub_iso, bochs):
    commands = iso_image.loader_commands(2, "/boot/nidus.elf", "", [])
    assert_refused(bochs(grub_iso(commands, {"nidus.elf": nidus_image})), r"^nidus: .*guest")
