# SPDX-License-Identifier: Apache-2.0
"""`nidus bench`: boots tests/bench in Bochs, reads its rows, sets them beside the peer's and the baseline's figures.

A row is ticks per operation as the guest measures them, which in Bochs are retired instructions of all levels.
"""
import fnmatch
import json
import pathlib
import re
import struct

from . import BUILD, TOP, UserError, console, guests as guest_list, iso, machine, peers, table

BASELINE = TOP / "tests" / "bench" / "baseline.json"
IMAGE = BUILD / "bench" / "bench.elf"
SETS = {"plain": {}, "hyperv": {"hyperv": "on"}, "noapicv": {"apicv": "off"}}  # each is one boot; the guest's options
GROWTH = 0.01  # of a row over its baseline
TIMEOUT = 300  # seconds of a boot, on a busy host
MARKS = 40  # pairs of marks at which the debugger is ready to stop
# The debugger's trace: CPU, ticks, physical address, cs:rip, mnemonic.
TRACE = re.compile(r"^\(\d+\)\.\[\d+\] \[0x([0-9a-f]+)\] [0-9a-f]{4}:([0-9a-f]+) \([^)]*\): (\S+)")
COUNTED = ("vmread", "vmwrite", "vmptrld", "vmclear", "invept", "invvpid", "rdmsr", "wrmsr", "rdpmc")
ENTRIES = ("vmresume", "vmlaunch")


def known_rows():
    return json.loads((pathlib.Path(__file__).parent / "peers.json").read_text(encoding="utf-8"))["rows"]


def chosen(rows, patterns):
    """The rows that any pattern names: a whole name, or with * and ?."""
    if not patterns:
        return rows
    found = [row for row in rows if any(fnmatch.fnmatchcase(row["name"], pattern) for pattern in patterns)]
    if not found:
        raise UserError(f"--only: no such row: {', '.join(patterns)}; there are: {', '.join(row['name'] for row in rows)}")
    return found


def executable_range(path):
    """(first, last + 1) address of the code of Nidus: its executable segment."""
    data = pathlib.Path(path).read_bytes()
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for number in range(count):
        kind, flags, _, address, _, _, length, _ = struct.unpack_from("<IIQQQQQQ", data, start + number * size)
        if kind == 1 and flags & 1:
            return address, address + length
    raise UserError(f"{path}: no code in it")


def read_trace(lines, code, inner=False):
    """What L0 executed between the marks of each pair: a list of {mnemonic: number}, with all as `instructions`.

    `inner`: what any Nidus in it executed, which believes in the same addresses but is somewhere else in memory.
    """
    blocks, current = [], None
    for text in lines:
        if "Magic breakpoint" in text:
            if current is None:
                current = {"instructions": 0}
            else:
                blocks.append(current)
                current = None
            continue
        match = TRACE.match(text) if current is not None else None
        if match and code[0] <= int(match[2], 16) < code[1] and (int(match[1], 16) != int(match[2], 16)) == inner:
            name = "entries" if match[3] in ENTRIES else match[3]
            current["instructions"] += 1
            if name in COUNTED or name == "entries":
                current[name] = current.get(name, 0) + 1
    return blocks


def counts_of(rows, blocks):
    """row -> its counts: the last pair of marks before the row was printed is the row's own."""
    found, used = {}, 0
    for name, (_, marks) in rows.items():
        if marks > used:
            found[name] = blocks[marks - 1] if marks <= len(blocks) else {}
            used = marks
    return found


def boot(folder, name, counting):
    """(rows, counts) of one set."""
    if not IMAGE.is_file():
        raise UserError(f"{IMAGE} is missing: run make bench-image")
    settings = [("kernel", str(IMAGE)), ("mem", "64M"), ("cmdline", f"set={name}"), *SETS[name].items()]
    image = iso.run_iso(folder / "tree", folder / "bench.iso", [guest_list.make_guest("bench", settings, TOP)], "")
    # Each stop at a mark takes the next command; without marks the first `c` runs to the end.
    extra = {"magic": True, "commands": "c\ntrace on\nc\ntrace off\n" * MARKS + "c\n"} if counting else {}
    with machine.Bochs(folder, image, **extra) as computer:
        try:
            computer.start().wait_end(TIMEOUT)
        except machine.MachineTimeout as error:
            raise UserError(f"bench, set {name}: {error}") from error
        faults = console.verdicts(computer.text).faults
        if console.guests(computer.text).endings.get("bench") != "exit 0" or faults:
            raise UserError(f"bench, set {name}: {'; '.join(faults) or 'the guest did not end well'}\n{computer.tail()}")
        rows = table.read_rows(computer.text)
    if not counting:
        return rows, {}
    with open(folder / "bochs.out", encoding="utf-8", errors="replace") as trace:
        return rows, counts_of(rows, read_trace(trace, executable_range(iso.nidus_image("nidus.elf"))))


def measure(folder, rows, counting=False):
    """name -> {"ticks": N, "counts": {...}} of these rows."""
    ticks, counts = {}, {}
    for name in dict.fromkeys(row["set"] for row in rows):
        found, counted = boot(folder / name, name, counting)
        ticks.update(found)
        counts.update(counted)
    missing = [row["name"] for row in rows if row["name"] not in ticks]
    if missing:
        raise UserError(f"bench: the image did not print {', '.join(missing)}")
    return {row["name"]: {"ticks": ticks[row["name"]][0], **({"counts": counts[row["name"]]} if counts.get(row["name"]) else {})}
            for row in rows}


def cells(rows, measured, baseline):
    """Head and body of the table: what it is, ticks, KVM's, how many times less, the target (`!` where it is missed), change."""
    head = ["row", "operation", "ticks", "KVM", "KVM/Nidus", "target", "", "baseline"]
    counting = any("counts" in entry for entry in measured.values())
    lines = [head + (["VMREAD", "VMWRITE", "VMPTRLD", "entries", "L0 instructions"] if counting else [])]
    for row in rows:
        entry = measured[row["name"]]
        ticks, kvm, target, before = entry["ticks"], row["kvm"], row["target"], baseline.get(row["name"])
        line = [row["name"], row["what"], table.number(ticks), table.number(kvm), f"{kvm / ticks:.2g}" if kvm else "-", table.number(target),
                "!" if target is not None and round(ticks) > target else "", f"{(ticks / before - 1) * 100:+.1f} %" if before else "-"]
        if counting:
            counts = entry.get("counts")
            line += [str(counts.get(name, 0)) if counts else "-" for name in ("vmread", "vmwrite", "vmptrld", "entries", "instructions")]
        lines.append(line)
    return lines


def grown(measured, baseline):
    """Complaints about rows that cost more than the baseline allows, or that it does not know."""
    lines = []
    for name, entry in measured.items():
        if name not in baseline:
            lines.append(f"{name}: {table.number(entry['ticks'])} ticks, not in the baseline")
        elif entry["ticks"] > baseline[name] * (1 + GROWTH):
            lines.append(f"{name}: {baseline[name]:g} -> {entry['ticks']:g} ticks ({(entry['ticks'] / baseline[name] - 1) * 100:+.1f} %)")
    return lines


def read_baseline(path):
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error


ADVICE = """\
Ticks are exact, so a change did this. Make it cheaper; or, where it is worth its cost, say why in the commit and take the new figures:
  tools/nidus bench --commit-baseline"""


def write_baseline(path, measured, old):
    """The new figures; rows that were not measured keep theirs."""
    order = [row["name"] for row in known_rows()]
    figures = old | {name: entry["ticks"] for name, entry in measured.items()}
    lines = [f"  {json.dumps(name)}: {figures[name]:g}" for name in order if name in figures]
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def run(args, folder):
    """The command. 0, or 1 when --check found a row that grew."""
    rows = chosen(known_rows(), args.only)
    baseline = read_baseline(args.baseline)
    measured = measure(folder, rows, args.counts)
    layout = table.markdown if args.markdown else table.aligned
    print("\n".join(layout(cells(rows, measured, baseline))), flush=True)
    if args.peers:
        beside = peers.measure(folder, rows)
        print("\n" + "\n".join(layout(peers.cells(rows, measured, beside))))
        for variant, found in beside.items():
            for name in found.keys() & measured.keys():
                measured[name].setdefault("kvm", {})[variant] = found[name]
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if args.commit_baseline:
        write_baseline(args.baseline, measured, baseline)
        return 0
    complaints = grown(measured, baseline) if args.check else []
    if complaints:
        print("\nmore than 1 % over the baseline:\n  " + "\n  ".join(complaints) + "\n" + ADVICE)
    return 1 if complaints else 0
