# SPDX-License-Identifier: Apache-2.0
"""Debian packages downloaded by apt-get and only unpacked. Must not install anything on the machine."""
import subprocess


def _download(folder, names):
    subprocess.run(["apt-get", "-q", "download", *names], check=True, cwd=folder, capture_output=True)


def unpack(folder, names):
    """Download the packages into `folder` and unpack them into one tree there; returns its root."""
    root = folder / "root"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _download(folder, names)
    except subprocess.CalledProcessError:  # the package lists are old
        subprocess.run(["apt-get", "-q", "update"], check=True, capture_output=True)
        _download(folder, names)
    for deb in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
        deb.unlink()
    return root
