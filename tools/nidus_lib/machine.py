# SPDX-License-Identifier: Apache-2.0
"""Machines that boot an ISO or a kernel and stream COM1: Bochs and QEMU. Must not know what runs on them.

The emulator connects its COM1 to a socket of this process: no file to poll, no port to guess, and keys can be sent.
It runs in its own process group and dies with this process.
"""
import collections
import ctypes
import fcntl
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

from . import UserError

BOCHS_MEMORY_HELD = 2048 << 20  # at a time; what is beyond goes to a file, and Bochs 2.7 then loses what a stack points to
BOCHS_CPUS_MAX = 12
BOCHS_BIOS = pathlib.Path("/usr/share/bochs/BIOS-bochs-latest")
BOCHS_PLUGINS = pathlib.Path("/usr/lib/x86_64-linux-gnu/bochs/plugins")
OVMF = pathlib.Path("/usr/share/ovmf/OVMF.fd")

BOCHS_RC = """\
display_library: {display}
cpu: model={model}, count={cpus}, ips=400000000, reset_on_triple_fault=0{cpu_options}
memory: guest={memory}, host={held}
romimage: file="{bios}", options=fastboot
vgaromimage: file=/usr/share/vgabios/vgabios.bin
ata0-master: type=cdrom, path="{iso}", status=inserted
boot: cdrom
com1: enabled=1, mode=socket-client, dev=127.0.0.1:{port}
port_e9_hack: enabled=1
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
speaker: enabled=0
clock: sync=none
magic_break: enabled={magic}
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
log: "{log}"
"""
# What Bochs calls a panic although the machine was switched off in order.
BOCHS_ORDERLY = re.compile(r"ACPI control: soft power off|Shutdown port: shutdown requested")


class MachineTimeout(Exception):
    """What was waited for did not come; the text names it and shows the last lines of the console."""


def die_with_parent():
    """In the emulator, before it starts: be killed when the process that started it is gone (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Machine:
    """One run of one emulator. Subclasses give the command line; files go to `folder`.

    start(), then wait_for(pattern), wait_end(), text and lines; kill() in any case (it is a context manager).
    """

    name = "machine"

    def __init__(self, folder, cpus=1, memory=512 << 20, echo=None, log=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.cpus, self.memory, self.echo = cpus, memory, echo
        self.status = None
        self.process = self.connection = self.started = None
        self.data = bytearray()
        self.changed = threading.Condition()
        self.closed = False
        self.mark = 0
        self.log = open(log, "wb", buffering=0) if log else None
        self.listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    @property
    def port(self):
        return self.listener.getsockname()[1]

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def start(self):
        """Start the emulator and the thread that reads its console."""
        with open(self.folder / f"{self.name}.out", "wb") as output:
            try:
                # pylint: disable=subprocess-popen-preexec-fn
                self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=output,
                                                stderr=subprocess.STDOUT, env=self.environment(),
                                                start_new_session=True, preexec_fn=die_with_parent)
            except FileNotFoundError as error:
                raise UserError(f"{self.command()[0]} is missing: run tools/setup") from error
        self.started = time.monotonic()
        threading.Thread(target=self.read, daemon=True).start()
        return self

    def accept(self):
        """The console's socket, or None when the emulator ended before it connected."""
        while self.process.poll() is None:
            if select.select([self.listener], [], [], 0.1)[0]:
                return self.listener.accept()[0]
        return None

    def read(self):
        """The reading thread."""
        self.connection = self.accept()
        while self.connection:
            try:
                data = self.connection.recv(65536)
            except OSError:
                break
            if not data:
                break
            self.take(data)
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def take(self, data):
        if self.log:
            self.log.write(data)
        if self.echo:
            self.echo(data)
        with self.changed:
            self.data += data
            self.changed.notify_all()

    @property
    def text(self):
        """Everything on the console so far, line ends as single newlines."""
        with self.changed:
            return self.data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "")

    @property
    def lines(self):
        return self.text.splitlines()

    @property
    def running(self):
        return not self.closed or self.process.poll() is None

    @property
    def seconds(self):
        return time.monotonic() - self.started

    def tail(self, count=10):
        return "\n".join(f"  | {text}" for text in collections.deque(self.lines, count))

    def wait_for(self, pattern, timeout=60):
        """The match of `pattern` (multi-line) behind the previous one; MachineTimeout when it does not come."""
        deadline = time.monotonic() + timeout
        while True:
            match = re.compile(pattern, re.MULTILINE).search(self.text, self.mark)
            if match:
                self.mark = match.end()
                return match
            with self.changed:
                left = deadline - time.monotonic()
                if self.closed or left <= 0:
                    break
                self.changed.wait(min(left, 1))
        if re.compile(pattern, re.MULTILINE).search(self.text, self.mark):
            return self.wait_for(pattern, 0)
        why = "machine ended" if self.closed else f"not in {timeout} s"
        raise MachineTimeout(f"{pattern!r}: {why}; last lines:\n{self.tail()}")

    def wait_end(self, timeout=60):
        """Wait until the machine is switched off; MachineTimeout (and a dead emulator) when it goes on."""
        deadline = time.monotonic() + timeout
        with self.changed:
            while not self.closed and time.monotonic() < deadline:
                self.changed.wait(min(1, max(0, deadline - time.monotonic())))
        try:
            self.status = self.process.wait(max(0.0, deadline - time.monotonic()) + (5 if self.closed else 0))
        except subprocess.TimeoutExpired:
            self.kill()
            raise MachineTimeout(f"still on after {timeout} s; last lines:\n{self.tail()}") from None
        return self.status

    def send(self, data):
        """Type on COM1."""
        if self.connection:
            try:
                self.connection.sendall(data if isinstance(data, bytes) else data.encode())
            except OSError:
                pass  # switched off meanwhile

    def kill(self):
        """End the emulator, whatever it does, and give back what it held."""
        if self.process and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.status = self.process.wait()
        self.listener.close()
        if self.process:
            with self.changed:
                self.changed.wait_for(lambda: self.closed, 2)
        for held in (self.connection, self.log):
            if held:
                held.close()
        self.log = None

    def trouble(self):
        """What the emulator itself complained about, or ""."""
        return ""


class Bochs(Machine):
    """Debian's Bochs with VMX. `commands` are for its debugger; `cpu_options` e.g. ", ignore_bad_msrs=0"; `sparse`: the
    guests touch less than 2 GiB of a larger memory."""

    name = "bochs"

    def __init__(self, folder, iso, model="corei7_skylake_x", magic=False, commands="c\n", cpu_options="",
                 bios=BOCHS_BIOS, sparse=False, **rest):
        super().__init__(folder, **rest)
        if self.memory > BOCHS_MEMORY_HELD and not sparse:
            raise UserError("--memory: Bochs has at most 2048M")
        if self.cpus > BOCHS_CPUS_MAX:
            raise UserError(f"--cpus: Bochs has at most {BOCHS_CPUS_MAX}")
        self.bochs_log = self.folder.resolve() / "bochs.log"
        # The debugger would eat a doubled quote: the path has none, the folder is ours.
        (self.folder / "bochsrc").write_text(BOCHS_RC.format(
            display=self.display(), model=model, cpus=self.cpus, cpu_options=cpu_options, memory=self.memory >> 20,
            held=min(self.memory, BOCHS_MEMORY_HELD) >> 20,
            bios=bios, iso=pathlib.Path(iso).resolve(), port=self.port, magic=int(magic), log=self.bochs_log))
        (self.folder / "commands").write_text(commands)

    @staticmethod
    def display():
        """SDL's dummy driver opens nothing; the rfb display, which Bochs always has, listens on a TCP port."""
        return "sdl2" if (BOCHS_PLUGINS / "libbx_sdl2_gui.so").exists() else 'rfb, options="timeout=0"'

    def command(self):
        return ["bochs", "-q", "-f", str(self.folder / "bochsrc"), "-rc", str(self.folder / "commands")]

    def environment(self):
        return dict(os.environ, SDL_VIDEODRIVER="dummy", SDL_AUDIODRIVER="dummy")

    def trouble(self):
        text = self.bochs_log.read_text(errors="replace") if self.bochs_log.exists() else ""
        found = [line for line in text.splitlines() if ">>PANIC<<" in line and not BOCHS_ORDERLY.search(line)]
        if not text and not self.data and (self.process.poll() or 0) > 0:
            found = (self.folder / "bochs.out").read_text(errors="replace").splitlines()[-3:]
        return "\n".join(found)


class Qemu(Machine):
    """QEMU with KVM or with its own translator (which has no VMX). Boots `iso` or `kernel` (with `modules`)."""

    name = "qemu"

    def __init__(self, folder, iso=None, kernel=None, modules=(), append="", kvm=False, uefi=False, extra=(), **rest):
        super().__init__(folder, **rest)
        self.iso, self.kernel, self.modules, self.append = iso, kernel, modules, append
        self.kvm, self.uefi, self.extra = kvm, uefi, extra

    def command(self):
        argv = ["qemu-system-x86_64", "-machine", "q35", "-smp", str(self.cpus), "-m", f"{self.memory >> 20}M",
                "-display", "none", "-monitor", "none", "-nic", "none", "-no-reboot",
                "-serial", f"tcp:127.0.0.1:{self.port}"]
        argv += ["-enable-kvm", "-cpu", "host"] if self.kvm else ["-accel", "tcg", "-cpu", "max"]
        if self.uefi:
            argv += ["-bios", str(OVMF)]
        if self.iso:
            argv += ["-cdrom", str(self.iso), "-boot", "d"]
        if self.kernel:
            argv += ["-kernel", str(self.kernel), "-append", self.append]
        if self.modules:
            argv += ["-initrd", ",".join(self.modules)]
        return argv + list(self.extra)

    def trouble(self):
        text = (self.folder / "qemu.out").read_text(errors="replace")
        return "\n".join(text.splitlines()[-3:]) if (self.process.poll() or 0) > 0 else ""


def kvm_trouble(device="/dev/kvm", modules="/sys/module", cpuinfo="/proc/cpuinfo"):
    """Why QEMU with KVM cannot offer VMX to guests here, or None when it can."""
    try:
        flags = re.search(r"^flags\s*:(.*)$", pathlib.Path(cpuinfo).read_text(encoding="ascii", errors="replace"), re.MULTILINE)
    except OSError:
        flags = None
    if not flags or "vmx" not in flags[1].split():
        return "this machine's CPU shows no VMX"
    try:
        nested = (pathlib.Path(modules) / "kvm_intel/parameters/nested").read_text(encoding="ascii").strip()
    except OSError:
        return "kvm_intel is not loaded"
    if nested not in ("Y", "1"):
        return "kvm_intel has nested=0"
    try:
        handle = os.open(device, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        return f"{device}: {error.strerror.lower()}"
    try:
        os.close(fcntl.ioctl(handle, 0xAE01, 0))  # KVM_CREATE_VM
    except OSError as error:
        return f"{device} makes no virtual machine: {error.strerror.lower()}"
    finally:
        os.close(handle)
    return None if shutil.which("qemu-system-x86_64") else "qemu-system-x86_64 is missing"


def choose(wanted):
    """("bochs" or "qemu", why) for --machine auto|bochs|qemu."""
    if wanted == "bochs":
        return "bochs", "as told"
    trouble = kvm_trouble()
    if wanted == "qemu":
        return "qemu", "as told" if not trouble else f"as told, but without VMX: {trouble}"
    return ("bochs", trouble) if trouble else ("qemu", "KVM offers VMX to guests")


def make(kind, folder, iso, **rest):
    """A machine of `kind` that boots `iso`; QEMU takes KVM where it is of use."""
    return Bochs(folder, iso, **rest) if kind == "bochs" else Qemu(folder, iso, kvm=kvm_trouble() is None, **rest)
