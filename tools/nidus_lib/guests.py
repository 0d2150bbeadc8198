# SPDX-License-Identifier: Apache-2.0
"""Guest descriptions: from --guest or TOML to the strings of boot modules. Must not know how they are booted.

The grammar of module strings is the boot contract (docs/lab.md); values that only Nidus can judge are passed on as they are.
"""
import dataclasses
import pathlib
import re
import tomllib

from . import UserError

ROLES = ("kernel", "initrd", "module", "disk", "net")
# Key as the user writes it (both spellings of TOML and of the boot contract) -> key of the boot contract.
KEYS = {
    "mem": "mem", "memory": "mem", "vcpus": "vcpus", "cpus": "cpus", "vmx": "vmx", "hyperv": "hyperv", "pmu": "pmu",
    "apicv": "apicv", "console": "console", "entry-trace": "entry-trace", "restart": "restart",
}
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,30}$")
MEM_DEFAULT = "256M"  # Nidus' own
NEST_OVERHEAD = 48 << 20  # what a Nidus needs beside its guests' memory and files
SIZE = re.compile(r"(0x[0-9a-fA-F]+|[0-9]+)([KMGTkmgt]?)$")


@dataclasses.dataclass
class Guest:
    name: str
    files: list  # of (role, path, own string of the file)
    options: dict = dataclasses.field(default_factory=dict)
    cmdline: str = ""

    @property
    def vcpus(self):
        text = self.options.get("vcpus", "1")
        return int(text) if text.isdigit() else 1

    @property
    def memory(self):
        return parse_size(self.options.get("mem", MEM_DEFAULT), "mem")

    def modules(self):
        """(path, description, words after ` -- ` or "") for each module; the kernel's carries the guest's options."""
        for role, path, text in self.files:
            words = [f"guest={self.name}", f"role={role}"]
            if role == "kernel":
                words += [f"{key}={value}" for key, value in self.options.items()]
            yield path, words, self.cmdline if role == "kernel" else text


def parse_size(text, what):
    """Bytes of "512M", "2G", "0x1000"."""
    match = SIZE.match(str(text))
    if not match:
        raise UserError(f"{what}={text}: bad size")
    return int(match[1], 0) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()]


def on_off(value):
    return {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def make_guest(name, settings, folder):
    """A guest from key and value pairs; `folder` is where relative paths start."""
    if not NAME.match(name):
        raise UserError(f"guest {name}: bad name (letters, digits, '.', '_', '-'; at most 31)")
    guest = Guest(name, [])
    for key, value in settings:
        key = key.replace("_", "-")
        if key in ROLES:
            for entry in value if isinstance(value, list) else [value]:
                guest.files.append(guest_file(name, key, str(entry), folder))
        elif key == "cmdline":
            guest.cmdline = str(value)
        elif key in KEYS:
            guest.options[KEYS[key]] = checked(name, key, on_off(value))
        else:
            raise UserError(f"guest {name}: unknown key {key}")
    if not any(role == "kernel" for role, _, _ in guest.files):
        raise UserError(f"guest {name}: no kernel")
    guest.files.sort(key=lambda entry: ROLES.index(entry[0]))
    return guest


def guest_file(name, role, text, folder):
    """`FILE` or `FILE ARGUMENTS`: what follows the first space is the module's own string."""
    file, _, arguments = (text, "", "") if (folder / text).is_file() else text.partition(" ")
    path = folder / file
    if not path.is_file():
        raise UserError(f"guest {name}: {role}={file}: no such file")
    return role, path, arguments


def checked(name, key, value):
    if KEYS[key] == "mem":
        parse_size(value, f"guest {name}: {key}")
    elif key == "vcpus" and not (value.isdigit() and int(value) > 0):
        raise UserError(f"guest {name}: {key}={value}: bad number")
    if not value or re.search(r"\s", value):
        raise UserError(f"guest {name}: {key}={value}: bad value")
    return value


def split_spec(spec):
    """Pairs of `kernel=FILE,mem=512M,cmdline=console=ttyS0,115200 quiet,vcpus=2`.

    A value ends at a comma; the command line ends only at a comma before a key that is known. Quotes around a whole
    value keep everything together.
    """
    known = "|".join(["cmdline", "name", "guest", *ROLES, *KEYS])
    value = rf"""(?:'[^']*'|"[^"]*")(?=,|$)|(?<=cmdline=).*?(?=,(?:{known})=|$)|[^,]*"""
    pairs, position = [], 0
    while position < len(spec):
        match = re.compile(rf"\s*([A-Za-z_-]+)=({value}),?").match(spec, position)
        if not match:
            raise UserError(f"--guest: cannot read {spec[position:]!r} (wanted: key=value,key=value,...)")
        text = match[2]
        pairs.append((match[1], text[1:-1] if re.fullmatch(r"'[^']*'|\"[^\"]*\"", text) else text))
        position = match.end()
    return pairs


def from_spec(spec, number):
    pairs = split_spec(spec)
    names = [value for key, value in pairs if key in ("name", "guest")]
    rest = [(key, value) for key, value in pairs if key not in ("name", "guest")]
    return make_guest(names[0] if names else f"guest{number}", rest, pathlib.Path())


def from_toml(path):
    """(guests, levels as of --nest) of a lab file; paths in it are relative to the file."""
    path = pathlib.Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror.lower()}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}") from error
    tables, levels = data.pop("guest", []), data.pop("nest", [])
    for key, value in (("guest", tables), ("nest", levels)):
        if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
            raise UserError(f"{path}: {key}s are tables: [[{key}]]")
    if data:
        raise UserError(f"{path}: unknown key {next(iter(data))}")
    guests = [make_guest(str(table.pop("name", f"guest{number}")), table.items(), path.parent)
              for number, table in enumerate(tables)]
    return guests, [list(table.items()) for table in levels]


def nest(guests, levels, image):
    """The guests inside of as many Nidus as there are levels (key and value pairs; the outermost first), one in the other."""
    for number, level in reversed(list(enumerate(levels, 1))):
        guests = [nidus_around(guests, level, f"l{number}", image)]
    return guests


def nidus_around(guests, level, name, image):
    """Nidus as a guest: its modules are these guests' files. Each level's lines start with its name."""
    files = sum(path.stat().st_size for guest in guests for _, path, _ in guest.files)
    # Files stand in its memory twice: where its loader puts them, and where its guests' kernels go.
    need = sum(guest.memory for guest in guests) + 2 * files + NEST_OVERHEAD
    defaults = [("kernel", image), ("mem", f"{need + (1 << 20) - 1 >> 20}M"), ("vcpus", str(sum(guest.vcpus for guest in guests))),
                ("console", "prefix")]
    names = [str(value) for key, value in level if key == "name"]
    outer = make_guest(names[0] if names else name, [*defaults, *(pair for pair in level if pair[0] != "name")], pathlib.Path())
    for guest in guests:
        for path, words, text in guest.modules():
            outer.files.append(("module", path, " ".join([*words, *(["--", text] if text else [])])))
    return outer


def collect(lab, specs, extra=(), levels=(), image=None):
    """All guests of a command line. `extra` words go to the first guest's command line; `levels`: --nest, with this Nidus."""
    guests, nested = from_toml(lab) if lab else ([], [])
    guests += [from_spec(spec, len(guests) + number) for number, spec in enumerate(specs)]
    if not guests:
        raise UserError("no guest: give a lab.toml or --guest kernel=FILE")
    names = [guest.name for guest in guests]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"guest {name}: two guests of one name")
    if extra:
        guests[0].cmdline = " ".join(filter(None, [guests[0].cmdline, *extra]))
    nested += [split_spec(spec) if "=" in spec else [("name", spec)] for spec in levels]
    return nest(guests, nested, image)
