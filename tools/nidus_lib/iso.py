# SPDX-License-Identifier: Apache-2.0
"""Bootable ISO images (BIOS and UEFI) through grub-mkrescue. Must not know what the modules mean."""
import pathlib
import re
import shutil
import subprocess

from . import BUILD, UserError

# Nobody sees the screen of an emulator that `run` starts: whatever GRUB has to say goes to the serial console.
QUIET_HEAD = """\
set timeout=0
serial --unit=0 --speed=115200
terminfo serial dumb
terminal_output serial
"""
# A machine may have no serial port: then GRUB stays on the screen.
MENU_HEAD = """\
set timeout=3
set default=0
if serial --unit=0 --speed=115200; then
  terminal_input --append serial
  terminal_output --append serial
fi
if [ "$grub_platform" = efi ]; then
  insmod all_video
fi
"""


def quote(word):
    """One word of a GRUB command. GRUB puts double quotes around words with spaces when it joins a module's string."""
    return word if re.fullmatch(r"[A-Za-z0-9_./=,:@%+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def words(text, what):
    """Words of a command line as GRUB must get them so that the loaded program sees `text` again.

    GRUB itself quotes a word that has a space in it and puts a backslash before quotes and backslashes, so these two
    cannot be passed unchanged.
    """
    if re.search(r"['\\\n]", text):
        raise UserError(f"{what}: GRUB cannot pass a quote ('), backslash or line end unchanged: {text}")
    found = []
    for match in re.finditer(r'((?:[^\s"]|"[^"]*")+)|(\S+)', text):
        if match[2] is not None:
            raise UserError(f"{what}: no closing quote: {text}")
        found.append(match[1].replace('"', ""))
    return found


def line(*parts):
    return " ".join(quote(str(part)) for part in parts)


class Tree:
    """The files of an ISO, and the loader commands that name them."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder)
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "boot" / "grub").mkdir(parents=True)

    def add(self, path, name):
        """Copy a file in; returns its path on the ISO."""
        target = self.root / "boot" / name
        target.parent.mkdir(exist_ok=True)
        try:
            shutil.copyfile(path, target)
        except OSError as error:
            raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from error
        return f"/boot/{name}"

    def config(self, text):
        (self.root / "boot" / "grub" / "grub.cfg").write_text(text, encoding="utf-8")

    def build(self, target):
        if not shutil.which("grub-mkrescue"):
            raise UserError("grub-mkrescue is missing: run tools/setup")
        done = subprocess.run(["grub-mkrescue", "-o", target, self.root, "--", "-volid", "NIDUS"], capture_output=True,
                              text=True, check=False)
        if done.returncode:
            raise UserError(f"grub-mkrescue failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        return pathlib.Path(target)


def nidus_image(name):
    image = BUILD / name
    if not image.is_file():
        raise UserError(f"{image} is missing: run make")
    return image


def guest_modules(tree, guests):
    """(path on the ISO, words of the module's string) of all guests, in order."""
    modules = []
    for guest in guests:
        for number, (path, description, text) in enumerate(guest.modules()):
            own = words(text, f"guest {guest.name}: cmdline")
            modules.append((tree.add(path, f"{guest.name}/{number}"), description + (["--", *own] if own else [])))
    return modules


def loader_commands(protocol, image, options, modules):
    """GRUB commands of one boot: `protocol` is 2 or 1."""
    load, module = {2: ("multiboot2", "module2"), 1: ("multiboot", "module")}[protocol]
    return [line(load, image, *words(options, "--hv")), *(line(module, path, *text) for path, text in modules)]


def entry(title, commands):
    return "\n".join([f"menuentry {quote(title)} {{", *("  " + command for command in commands), "}", ""])


def run_iso(folder, target, guests, options):
    """The ISO of `nidus run`: boots at once; GRUB is silent unless it fails, and then halts the machine."""
    tree = Tree(folder)
    commands = loader_commands(2, tree.add(nidus_image("nidus.elf"), "nidus.elf"), options, guest_modules(tree, guests))
    tree.config(QUIET_HEAD + "\n".join(commands) + "\nboot\nhalt\n")
    return tree.build(target)


def appliance_iso(folder, target, guests, options, title):
    """The ISO of `nidus iso`: a menu with a fall-back for machines on which multiboot2 fails."""
    tree = Tree(folder)
    modules = guest_modules(tree, guests)
    elf, elf32 = (tree.add(nidus_image(name), name) for name in ("nidus.elf", "nidus32.elf"))
    tree.config(MENU_HEAD + entry(title, loader_commands(2, elf, options, modules))
                + entry("Nidus (multiboot1)", loader_commands(1, elf32, options, modules)))
    return tree.build(target)
