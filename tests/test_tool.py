# SPDX-License-Identifier: Apache-2.0
"""The pure parts of tools/nidus: descriptions, quoting for GRUB, the choice of a machine, reading consoles, exit status."""
import concurrent.futures
import os
import types

import pytest

from conftest import TOP, console, guest_list, iso_image, machine
from nidus_lib import UserError, cli

KERNEL = str(TOP / "tests" / "pytest.ini")  # any file will do


# Guest descriptions


@pytest.mark.parametrize("spec, pairs", [
    ("kernel=a,mem=1G", [("kernel", "a"), ("mem", "1G")]),
    ("kernel=a,cmdline=console=ttyS0,115200 quiet", [("kernel", "a"), ("cmdline", "console=ttyS0,115200 quiet")]),
    ("cmdline=console=ttyS0,115200,vcpus=2", [("cmdline", "console=ttyS0,115200"), ("vcpus", "2")]),
    ("cmdline='a,mem=3',vcpus=2", [("cmdline", "a,mem=3"), ("vcpus", "2")]),
    ('kernel="a,b"', [("kernel", "a,b")]),
    ('cmdline=x="1 2" y', [("cmdline", 'x="1 2" y')]),
    ("cmdline=", [("cmdline", "")]),
])
def test_split_spec(spec, pairs):
    assert guest_list.split_spec(spec) == pairs


def described(guest):
    return [" ".join([*words, *(["--", text] if text else [])]) for _, words, text in guest.modules()]


def test_modules_of_a_guest():
    guest = guest_list.from_spec(f"name=lab,initrd={KERNEL},kernel={KERNEL},memory=512M,vcpus=2,hyperv=on,cmdline=console=ttyS0", 0)
    assert described(guest) == ["guest=lab role=kernel mem=512M vcpus=2 hyperv=on -- console=ttyS0", "guest=lab role=initrd"]
    assert guest.vcpus == 2


def test_toml(tmp_path):
    (tmp_path / "k").write_text("x")
    lab = tmp_path / "lab.toml"
    lab.write_text('[[guest]]\nname = "lab"\nkernel = "k"\nmodule = ["k one", "k two"]\nmemory = "64M"\nhyperv = true\n'
                   'vmx = false\ncmdline = "a"\n[[guest]]\nkernel = "k"\n')
    first, second = guest_list.collect(lab, [], ["b", "c"])
    assert described(first) == ["guest=lab role=kernel mem=64M hyperv=on vmx=off -- a b c", "guest=lab role=module -- one",
                                "guest=lab role=module -- two"]
    assert second.name == "guest1"


@pytest.mark.parametrize("spec, said", [
    ("kernel=/nowhere", "guest guest0: kernel=/nowhere: no such file"),
    (f"kernel={KERNEL},mem=12Q", "guest guest0: mem=12Q: bad size"),
    (f"kernel={KERNEL},vcpus=two", "guest guest0: vcpus=two: bad number"),
    (f"kernel={KERNEL},vcpus=0", "guest guest0: vcpus=0: bad number"),
    (f"kernel={KERNEL},colour=green", "guest guest0: unknown key colour"),
    (f"kernel={KERNEL},name=a b", "guest a b: bad name (letters, digits, '.', '_', '-'; at most 31)"),
    ("mem=64M", "guest guest0: no kernel"),
    ("nonsense", "--guest: cannot read 'nonsense' (wanted: key=value,key=value,...)"),
])
def test_bad_guest(spec, said):
    with pytest.raises(UserError) as error:
        guest_list.collect(None, [spec])
    assert str(error.value) == said


@pytest.mark.parametrize("text, said", [
    ("[[guest]\n", "Expected"), ("[guest]\nkernel='k'", "tables"), ("colour = 1", "unknown key colour"), ("", "no guest"),
])
def test_bad_toml(text, said, tmp_path):
    (tmp_path / "lab.toml").write_text(text)
    with pytest.raises(UserError, match=said):
        guest_list.collect(tmp_path / "lab.toml", [])


def test_nest():
    """One guest whose modules are the inner guests' files, level by level; memory for all of them."""
    spec = f"name=lab,kernel={KERNEL},initrd={KERNEL},mem=64M,cmdline=a b"
    outer, = guest_list.collect(None, [spec], levels=["top", "mem=1G,hyperv=on,cmdline=loglevel=debug"], image=KERNEL)
    assert described(outer) == [
        "guest=top role=kernel mem=1073M vcpus=1 console=prefix",
        "guest=top role=module -- guest=l2 role=kernel mem=1G vcpus=1 console=prefix hyperv=on -- loglevel=debug",
        "guest=top role=module -- guest=l2 role=module -- guest=lab role=kernel mem=64M -- a b",
        "guest=top role=module -- guest=l2 role=module -- guest=lab role=initrd",
    ]


def test_nest_in_toml(tmp_path):
    (tmp_path / "lab.toml").write_text(f'[[nest]]\nhyperv = true\n[[guest]]\nkernel = "{KERNEL}"\nvcpus = 2\n')
    outer, = guest_list.collect(tmp_path / "lab.toml", [], image=KERNEL)
    assert described(outer)[0] == "guest=l1 role=kernel mem=305M vcpus=2 console=prefix hyperv=on"


def test_two_guests_of_one_name():
    with pytest.raises(UserError, match="two guests of one name"):
        guest_list.collect(None, [f"name=a,kernel={KERNEL}"] * 2)


@pytest.mark.parametrize("text, size", [("4096", 4096), ("0x1000", 4096), ("4K", 4096), ("3M", 3 << 20), ("2G", 2 << 30)])
def test_parse_size(text, size):
    assert guest_list.parse_size(text, "x") == size


# GRUB commands


@pytest.mark.parametrize("text, words", [
    ("a b=c,d", ["a", "b=c,d"]), ("  a   b ", ["a", "b"]), ('x="1 2" y', ["x=1 2", "y"]), ('"x=1 2"', ["x=1 2"]), ("", []),
])
def test_words(text, words):
    assert iso_image.words(text, "x") == words


@pytest.mark.parametrize("text", ["it's", "a\\b", "a\nb", 'x="1 2'])
def test_words_that_grub_would_change(text):
    with pytest.raises(UserError):
        iso_image.words(text, "x")


def test_line_is_quoted():
    assert iso_image.line("module2", "/boot/a", "x=1 2", "$y;{}") == "module2 /boot/a 'x=1 2' '$y;{}'"


# Choice of a machine


def fake_host(folder, flags="vmx", nested="Y"):
    (folder / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    if nested:
        (folder / "kvm_intel/parameters").mkdir(parents=True)
        (folder / "kvm_intel/parameters/nested").write_text(nested + "\n")
    return {"device": str(folder / "kvm"), "modules": str(folder), "cpuinfo": str(folder / "cpuinfo")}


@pytest.mark.parametrize("host, said", [
    ({"flags": "svm"}, "no VMX"), ({"nested": None}, "not loaded"), ({"nested": "N"}, "nested=0"), ({}, "no such file"),
])
def test_kvm_trouble(host, said, tmp_path):
    assert said in machine.kvm_trouble(**fake_host(tmp_path, **host))


def test_kvm_trouble_of_a_dead_device(tmp_path):
    """A /dev/kvm that opens and makes no machine offers nothing."""
    host = fake_host(tmp_path)
    os.symlink("/dev/null", host["device"])
    assert "makes no virtual machine" in machine.kvm_trouble(**host)


@pytest.mark.parametrize("wanted, trouble, kind", [
    ("auto", "no VMX", "bochs"), ("auto", None, "qemu"), ("bochs", None, "bochs"), ("qemu", "no VMX", "qemu"),
])
def test_choose(wanted, trouble, kind, monkeypatch):
    monkeypatch.setattr(machine, "kvm_trouble", lambda: trouble)
    chosen, why = machine.choose(wanted)
    assert chosen == kind
    assert wanted != "auto" or not trouble or trouble in why


# What consoles say


def test_guest_lines():
    seen = console.guests("nidus: guest a started\nx nidus: guest b started\nnidus: guest c started\n"
                          "nidus: guest a ended: exit 0\nnidus: guest c ended: triple-fault\n")
    assert (seen.started, seen.endings, seen.running) == (["a", "c"], {"a": "exit 0", "c": "triple-fault"}, [])


def test_restarted_guest_runs():
    seen = console.guests("nidus: guest a started\nnidus: guest a ended: reset\nnidus: guest a started\n")
    assert seen.running == ["a"]


@pytest.mark.parametrize("text, faults", [
    ("PASS a\nSKIP b why\nDONE 1 checks, 0 failed\n", []),
    ("PASS a\n", ["no closing DONE line"]),
    ("FAIL a main.c:3 got 1 want 2\nDONE 1 checks, 1 failed\n", ["FAIL a main.c:3 got 1 want 2"]),
    ("PASS a\nDONE 2 checks, 1 failed\n", ["DONE tells 1 failures, 0 FAIL lines were seen"]),
    ("DONE 0 checks, 0 failed\n", ["DONE tells no check at all"]),
    ("", ["no closing DONE line"]),
])
def test_verdicts(text, faults):
    assert console.verdicts(text).faults == faults


def test_worst_verdict_of_a_name_counts():
    text = "PASS a\nFAIL a f:1 got 0 want 1\nPASS a\nSKIP b x\nPASS b\nPASS c\nDONE 5 checks, 1 failed\n"
    assert console.verdicts(text).named() == {"a": "FAIL", "b": "SKIP", "c": "PASS"}


def test_verdicts_of_one_guest_of_several():
    text = "red: PASS a\nblue: FAIL b f:1 got 0 want 1\nred: DONE 1 checks, 0 failed\n"
    assert console.verdicts(text, "red: ").faults == []


# Exit status of `nidus run`


def ran(text, trouble=""):
    return types.SimpleNamespace(text=text, trouble=lambda: trouble, tail=lambda: "  | last line")


@pytest.mark.parametrize("text, in_time, status, said", [
    ("nidus: guest a started\nnidus: guest a ended: exit 0\n", True, 0, ""),
    ("nidus: guest a started\nnidus: guest a ended: exit 3\n", True, 1, "guest a: exit 3"),
    ("nidus: guest a started\n", True, 1, "guest a: did not end"),
    ("", True, 1, "guest a: was not started"),
    ("nidus: guest a started\n", False, 124, "running: a"),
    ("", False, 124, "not started: a"),
])
def test_status(text, in_time, status, said, capsys):
    assert cli.result(ran(text), ["a"], in_time, 5) == status
    assert said in capsys.readouterr().err


def test_main_in_any_thread(capsys):
    """Test runners call main() from worker threads too, where Python takes no signal handlers."""
    with concurrent.futures.ThreadPoolExecutor() as threads:
        assert threads.submit(cli.main, ["run", "--guest", "nonsense"]).result() == 2
    assert "cannot read 'nonsense'" in capsys.readouterr().err


def test_every_guest_has_to_end_well():
    text = "nidus: guest a started\nnidus: guest b started\nnidus: guest a ended: exit 0\nnidus: guest b ended: reset\n"
    assert cli.result(ran(text), ["a", "b"], True, None) == 1


# Machines


def test_running_machine_is_switched_off(boot_kernels, grub_iso, bochs):
    """A machine that goes on is killed after its time, and says what it did last."""
    computer = bochs(grub_iso(["multiboot /boot/k spin"], {"k": boot_kernels / "ending.elf"}), memory=64 << 20)
    computer.wait_for("^spinning$", 60)
    with pytest.raises(machine.MachineTimeout, match="spinning"):
        computer.wait_end(1)
    assert not computer.running
    assert not os.path.exists(f"/proc/{computer.process.pid}")


def test_waiting_ends_with_the_machine(boot_kernels, grub_iso, bochs):
    computer = bochs(grub_iso(["multiboot /boot/k"], {"k": boot_kernels / "ending.elf"}), memory=64 << 20)
    with pytest.raises(machine.MachineTimeout, match="machine ended"):
        computer.wait_for("^never said$", 60)
    assert computer.lines == ["hello"]
    assert computer.trouble() == ""


def test_triple_fault_is_told(boot_kernels, grub_iso, bochs):
    computer = bochs(grub_iso(["multiboot /boot/k triple"], {"k": boot_kernels / "ending.elf"}), memory=64 << 20)
    computer.wait_end(60)
    assert "PANIC" in computer.trouble()


def test_grub_failure_is_on_the_console(grub_iso, bochs):
    computer = bochs(grub_iso(["multiboot /boot/nothing"], {}), memory=64 << 20)
    computer.wait_end(60)
    assert any("not found" in line for line in computer.lines)
