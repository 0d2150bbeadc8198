# SPDX-License-Identifier: Apache-2.0
"""Rows of the bench image as text: read from a console, set as a table. Pure."""
import re

ROW = re.compile(r"^ROW (\S+) (\d+) (\d+) (\d+)$", re.MULTILINE)


def read_rows(text):
    """name -> (ticks per operation, pairs of marks before the row was printed), in the order of printing."""
    return {name: (round(int(ticks) / int(operations), 2), int(marks)) for name, ticks, operations, marks in ROW.findall(text)}


def number(value):
    if value is None:
        return "-"
    return f"{value:,.1f}" if value < 100 and value != int(value) else f"{value:,.0f}"


def aligned(lines):
    """The table for a terminal."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    left = [column for column, title in enumerate(lines[0]) if title in ("row", "operation", "")]
    return ["  ".join(cell.ljust(width) if column in left else cell.rjust(width)
                      for column, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines]


def markdown(lines):
    """The table for docs/performance.md: without the change against the baseline."""
    kept = [column for column, title in enumerate(lines[0]) if title != "baseline"]
    rows = ["| " + " | ".join(line[column] for column in kept) + " |" for line in lines]
    return [rows[0], "|---|---" + "|---:" * (rows[0].count("|") - 3) + "|", *rows[1:]]
