# SPDX-License-Identifier: Apache-2.0
"""What a console says: Nidus' lines about guests, verdict lines of test programs. Pure."""
import dataclasses
import re

EVENT = re.compile(r"^nidus: guest (\S+) (started|ended: (.*?))\s*$", re.MULTILINE)
VERDICT = re.compile(r"^(PASS|FAIL|SKIP) (\S+)(?: (.*))?$")
DONE = re.compile(r"^DONE (\d+) checks, (\d+) failed$")


@dataclasses.dataclass
class Guests:
    """Who started and how each guest ended last (a restarted guest runs again: no ending)."""

    started: list
    endings: dict

    @property
    def running(self):
        return [name for name in self.started if name not in self.endings]

    def all_ended(self, names):
        return all(name in self.endings for name in names)

    def all_good(self, names):
        return all(self.endings.get(name) == "exit 0" for name in names)


def guests(text):
    found = Guests([], {})
    for name, event, ending in EVENT.findall(text):
        if event == "started":
            found.endings.pop(name, None)
            if name not in found.started:
                found.started.append(name)
        else:
            found.endings[name] = ending
    return found


@dataclasses.dataclass
class Verdicts:
    """The verdict lines of one program: `rows` of (verdict, name, rest); `faults` is what makes the whole a failure."""

    rows: list
    faults: list

    def named(self):
        """name -> verdict; a name that was reported several times keeps the worst."""
        order = ("PASS", "SKIP", "FAIL")
        result = {}
        for verdict, name, _ in self.rows:
            result[name] = max(verdict, result.get(name, "PASS"), key=order.index)
        return result


def verdicts(text, prefix=""):
    """Read verdict lines; with `prefix`, only lines that start with it (a console that tells guests apart)."""
    rows, faults, done = [], [], None
    for line in text.splitlines():
        if not line.startswith(prefix):
            continue
        line = line[len(prefix):].rstrip()
        match = VERDICT.match(line)
        if match:
            rows.append((match[1], match[2], match[3] or ""))
            if match[1] == "FAIL":
                faults.append(line)
        match = DONE.match(line)
        if match:
            done = int(match[1]), int(match[2])
    failed = sum(1 for row in rows if row[0] == "FAIL")
    if done is None:
        faults.append("no closing DONE line")
    elif done[1] != failed:
        faults.append(f"DONE tells {done[1]} failures, {failed} FAIL lines were seen")
    elif done[0] == 0:
        faults.append("DONE tells no check at all")
    return Verdicts(rows, faults)
