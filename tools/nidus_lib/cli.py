# SPDX-License-Identifier: Apache-2.0
"""The command line of tools/nidus: run, iso and bench."""
import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import termios
import threading
import time

from . import BUILD, UserError, bench, console, guests as guest_list, iso, machine

END_GRACE = 20  # seconds for the power-off once every guest has ended


def say(text):
    print(f"nidus-run: {text}", file=sys.stderr, flush=True)


def guest_arguments(parser):
    parser.add_argument("lab", nargs="?", help="guests as TOML")
    parser.add_argument("--guest", action="append", default=[], metavar="KEY=VALUE,...",
                        help="one guest: kernel=FILE,initrd=FILE,mem=512M,vcpus=2,hyperv=on,cmdline='...'")
    parser.add_argument("--nest", action="append", default=[], metavar="NAME|KEY=VALUE,...",
                        help="one more Nidus around all guests, itself a guest: name=l1,hyperv=on,cmdline='...' (several allowed, the "
                        "outermost first)")
    parser.add_argument("--hv", default="", metavar="OPTIONS", help="Nidus' own command line, e.g. 'loglevel=debug'")


def parse_arguments(argv):
    parser = argparse.ArgumentParser(prog="nidus", description="Run guests under Nidus, or make a bootable ISO of them.")
    commands = parser.add_subparsers(dest="command", required=True)

    run = commands.add_parser("run", help="boot guests in an emulator and stream their consoles",
                              epilog="Words after -- go to the first guest's command line. "
                              "Ends with 0 when every guest ended with `exit 0`, 1 when not, 124 on time-out.")
    guest_arguments(run)
    run.add_argument("--machine", choices=("auto", "bochs", "qemu"), default="auto",
                     help="auto: QEMU where KVM offers VMX to guests, else Bochs")
    run.add_argument("--cpus", type=int, help="physical CPUs (default: as many as all guests have, at most 8)")
    run.add_argument("--memory", default="2G", help="of the machine (default 2G)")
    run.add_argument("--timeout", type=float, metavar="S", help="seconds of wall time (default: none)")
    run.add_argument("--keep", metavar="DIR", help="keep the ISO, the emulator's configuration and logs there")
    run.add_argument("--log", metavar="FILE", help="write the console to a file too")

    build = commands.add_parser("iso", help="make an ISO that boots on BIOS and on UEFI")
    guest_arguments(build)
    build.add_argument("-o", "--output", required=True, metavar="FILE")
    build.add_argument("--title", default="Nidus", help="of the menu entry")

    cost = commands.add_parser("bench", help="measure what operations cost in Bochs, beside KVM's figures")
    cost.add_argument("--only", action="append", default=[], metavar="NAME", help="this row (several allowed; * and ? stand for letters)")
    cost.add_argument("--json", metavar="FILE", help="write the figures there")
    cost.add_argument("--baseline", default=str(bench.BASELINE), metavar="FILE", help="to compare with (default tests/bench/baseline.json)")
    cost.add_argument("--check", action="store_true", help="end with 1 when a row is more than 1 %% over the baseline")
    cost.add_argument("--commit-baseline", action="store_true", help="write the figures into the baseline")
    cost.add_argument("--counts", action="store_true", help="count Nidus' operations too, through the debugger's trace (slower)")
    cost.add_argument("--markdown", action="store_true", help="print the table as docs/performance.md has it")
    cost.add_argument("--peers", action="store_true", help="boot Debian's Linux with KVM as L0 too, with the same image as its L1: side by side (several minutes)")

    argv, extra = (argv[:argv.index("--")], argv[argv.index("--") + 1:]) if "--" in argv else (argv, [])
    args = parser.parse_args(argv)
    args.extra = extra
    return args


def collect(args):
    return guest_list.collect(args.lab, args.guest, args.extra, args.nest, BUILD / "nidus32.elf")


@contextlib.contextmanager
def work_folder(keep):
    if keep:
        path = pathlib.Path(keep)
        path.mkdir(parents=True, exist_ok=True)
        yield path
    else:
        with tempfile.TemporaryDirectory(prefix="nidus-") as path:
            yield pathlib.Path(path)


@contextlib.contextmanager
def keyboard(computer):
    """Send what is typed to COM1 while stdin is a terminal. Ctrl-C still ends the run."""
    if not sys.stdin or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    now = termios.tcgetattr(terminal)
    now[3] &= ~(termios.ICANON | termios.ECHO)
    now[0] &= ~termios.ICRNL
    termios.tcsetattr(terminal, termios.TCSANOW, now)

    def forward():
        while data := os.read(terminal, 256):
            computer.send(data)

    threading.Thread(target=forward, daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def echo(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def wait(computer, names, timeout):
    """Wait for the end of the machine. False on time-out."""
    deadline = time.monotonic() + timeout if timeout else None
    ended = None
    while computer.running:
        if deadline and time.monotonic() > deadline:
            return False
        if console.guests(computer.text).all_ended(names):
            ended = ended or time.monotonic()
            if time.monotonic() > ended + END_GRACE:
                say(f"every guest has ended, but the machine is still on after {END_GRACE} s; switched off")
                return True
        else:
            ended = None
        with computer.changed:
            computer.changed.wait(0.2)
    return True


def result(computer, names, in_time, timeout):
    """Tell what went wrong; the exit status."""
    seen = console.guests(computer.text)
    trouble = computer.trouble()
    if trouble:
        say(f"the emulator: {trouble}")
    if not in_time:
        missing = [name for name in names if name not in seen.started]
        say(f"time-out after {timeout:g} s; running: {', '.join(seen.running) or 'no guest'}"
            + (f"; not started: {', '.join(missing)}" if missing else ""))
        print(computer.tail() or "  (nothing on the console)", file=sys.stderr)
        return 124
    for name in names:
        how = seen.endings.get(name, "did not end" if name in seen.started else "was not started")
        if how != "exit 0":
            say(f"guest {name}: {how}")
    return 0 if seen.all_good(names) else 1


def run(args):
    guests = collect(args)
    names = [guest.name for guest in guests]
    cpus = args.cpus or min(8, sum(guest.vcpus for guest in guests))
    memory = guest_list.parse_size(args.memory, "--memory")
    kind, why = machine.choose(args.machine)
    say(f"machine: {kind} ({why}), {cpus} CPU{'s' if cpus > 1 else ''}, {memory >> 20} MiB")
    with work_folder(args.keep) as folder:
        image = iso.run_iso(folder / "tree", folder / "nidus.iso", guests, args.hv)
        computer = machine.make(kind, folder, image, cpus=cpus, memory=memory, echo=echo,
                                log=args.log or (folder / "console.log" if args.keep else None))
        with computer:
            computer.start()
            with keyboard(computer):
                in_time = wait(computer, names, args.timeout)
            if not in_time or computer.running:
                computer.kill()
            if computer.data and not computer.data.endswith(b"\n"):
                echo(b"\n")
            return result(computer, names, in_time, args.timeout)


def build(args):
    guests = collect(args)
    with work_folder(None) as folder:
        target = iso.appliance_iso(folder / "tree", pathlib.Path(args.output), guests, args.hv, args.title)
    print(f"{target}: {target.stat().st_size >> 10} KiB, {len(guests)} guest{'s' if len(guests) > 1 else ''}")
    return 0


def measure(args):
    with work_folder(None) as folder:
        return bench.run(args, folder)


def main(argv):
    args = parse_arguments(argv)
    try:
        return {"run": run, "iso": build, "bench": measure}[args.command](args)
    except UserError as error:
        print(f"nidus: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"nidus: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
