# SPDX-License-Identifier: Apache-2.0
"""Writer of initramfs archives (cpio "newc"), the same bytes for the same input. Knows nothing of what is packed."""
import stat


class Archive:
    """Entries are kept in the order of their adding; missing parent folders are added by themselves."""

    def __init__(self):
        self.blocks = []
        self.names = set()

    def _entry(self, name, mode, data=b"", rdev=(0, 0)):
        name = name.strip("/")
        if name in self.names:
            return
        self.names.add(name)
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (len(self.names), mode, 0, 0, links, 0, len(data), 0, 0, *rdev, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % f for f in fields) + name.encode() + b"\0"
        self.blocks += [_padded(head), _padded(data)]

    def folder(self, name):
        name = name.strip("/")
        if "/" in name:
            self.folder(name.rsplit("/", 1)[0])
        if name:
            self._entry(name, stat.S_IFDIR | 0o755)

    def _parents(self, name):
        self.folder(name.strip("/").rpartition("/")[0])

    def file(self, name, data, mode=0o644):
        self._parents(name)
        self._entry(name, stat.S_IFREG | mode, data)

    def link(self, name, target):
        self._parents(name)
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def char_device(self, name, major, minor):
        self._parents(name)
        self._entry(name, stat.S_IFCHR | 0o600, rdev=(major, minor))

    def bytes(self):
        self._entry("TRAILER!!!", 0)
        return _padded(b"".join(self.blocks), 512)


def _padded(data, unit=4):
    return data + b"\0" * (-len(data) % unit)
