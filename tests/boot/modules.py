# SPDX-License-Identifier: Apache-2.0
"""Module files with known content, and what modcheck prints about them."""
import random
import re
import zlib

# Around a page, and several pages.
SIZES = (1, 4095, 4096, 4097, 12288)
LINE = re.compile(r"^module (\w+) size (\w+) crc (\w+) (aligned|unaligned) \[(.*)\]$", re.MULTILINE)


def write_files(folder, sizes):
    """One file for each size; each has content of its own."""
    paths = []
    for number, size in enumerate(sizes):
        path = folder / f"module{number}"
        path.write_bytes(random.Random(number).randbytes(size))
        paths.append(path)
    return paths


def expected(paths, strings):
    """What report() must give for these files, in this order."""
    contents = [path.read_bytes() for path in paths]
    return [(number, len(data), zlib.crc32(data), "aligned", string)
            for number, (data, string) in enumerate(zip(contents, strings))]


def report(text):
    return [(int(number, 16), int(size, 16), int(crc, 16), aligned, string.strip())
            for number, size, crc, aligned, string in LINE.findall(text)]
