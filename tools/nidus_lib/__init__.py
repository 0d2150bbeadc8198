# SPDX-License-Identifier: Apache-2.0
"""What tools/nidus and the tests share: guest descriptions, ISO images, machines and what their consoles say."""
import os
import pathlib


class UserError(Exception):
    """A mistake of the caller, told in one line; exit status 2."""


TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")  # as in the Makefile
