# SPDX-License-Identifier: Apache-2.0
"""The peer of `nidus bench --peers`: Debian's Linux with KVM as L0 in Bochs, with the bench image as L1 of its QEMU.

Same emulator, same image, so its rows are comparable to the instruction. Must not boot Nidus.
"""
import re

from . import BUILD, UserError, iso, machine, table

KERNEL = BUILD / "client" / "vmlinuz"
ARCHIVE = BUILD / "bench" / "peer.cpio"
# Nothing in Bochs drifts, so nothing need be calibrated; a watchdog would only disturb.
COMMAND_LINE = ("console=ttyS0 quiet tsc=reliable tsc_early_khz=400000 no_timer_check nokaslr panic=-1 nowatchdog "
                "nmi_watchdog=0")
VARIANTS = {"off": "mitigations=off", "auto": "mitigations=auto"}  # Linux' own default is auto
MEMORY = 1 << 30
TIMEOUT = 1500  # seconds of a boot with all sets, on a busy host
FAULT = re.compile(r"^(FAIL .*|.*(?:Kernel panic|failed to initialize kvm).*)$", re.MULTILINE)


def build_iso(folder, sets, mitigations):
    for path in (KERNEL, ARCHIVE):
        if not path.is_file():
            raise UserError(f"{path} is missing: run make bench-peer")
    tree = iso.Tree(folder / "tree")
    options = f"{COMMAND_LINE} {VARIANTS[mitigations]} sets={','.join(sets)}"
    tree.config(iso.QUIET_HEAD + "\n".join([f"linux {tree.add(KERNEL, 'kernel')} {options}",
                                            f"initrd {tree.add(ARCHIVE, 'initrd')}", "boot", "halt", ""]))
    return tree.build(folder / "peer.iso")


def boot(folder, sets, mitigations):
    """name -> ticks of every row that the bench image printed as L1 of KVM."""
    with machine.Bochs(folder, build_iso(folder, sets, mitigations), memory=MEMORY) as computer:
        try:
            computer.start().wait_end(TIMEOUT)
        except machine.MachineTimeout as error:
            raise UserError(f"bench, KVM: {error}") from error
        faults = FAULT.findall(computer.text) + [computer.trouble()] * bool(computer.trouble())
        missing = [name for name in sets if f"SET {name}" not in computer.lines]
        if faults or missing:
            raise UserError(f"bench, KVM: {'; '.join(faults) or 'not run: ' + ', '.join(missing)}\n{computer.tail()}")
        return {name: ticks for name, (ticks, _) in table.read_rows(computer.text).items()}


def measure(folder, rows):
    """{"off": {name: ticks}, "auto": {name: ticks}}: without and with Linux' default mitigations."""
    sets = list(dict.fromkeys(row["set"] for row in rows))
    return {name: boot(folder / f"kvm-{name}", sets, name) for name in VARIANTS}


def cells(rows, measured, peers):
    """Head and body of the table side by side: a row that KVM's L1 did not print has `-`."""
    lines = [["row", "operation", "Nidus", "KVM", "KVM/Nidus", "KVM, mitigations", "KVM/Nidus"]]
    for row in rows:
        ticks = measured[row["name"]]["ticks"]
        line = [row["name"], row["what"], table.number(ticks)]
        for variant in VARIANTS:
            kvm = peers[variant].get(row["name"])
            line += [table.number(kvm), f"{kvm / ticks:.2g}" if kvm else "-"]
        lines.append(line)
    return lines
