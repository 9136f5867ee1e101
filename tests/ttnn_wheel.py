"""Tenstorrent's `ttnn` wheel, for its firmware and tests: fetched once with pip, kept in bhemu's cache directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from bhemu.machine.cache import cache_directory

WHEEL = "ttnn==0.81.1"
OPTIONS = ("--no-deps", "--only-binary=:all:", "--python-version", "3.10", "--platform", "manylinux_2_34_x86_64")


class NoWheel(Exception):
    """pip cannot fetch it; the text says why."""


def ttnn_wheel() -> Path:
    """The wheel, 103 MB, fetched when it is not there.

    Raises:
        NoWheel: pip cannot fetch it.
    """
    folder = cache_directory() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{WHEEL.replace('==', '-')}.whl"
    if not kept.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            command = [sys.executable, "-m", "pip", "download", WHEEL, *OPTIONS, "--dest", work]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                said = done.stderr.strip().splitlines()
                raise NoWheel(said[-1] if said else f"pip ends with status {done.returncode}")
            next(Path(work).glob("*.whl")).rename(kept)
    return kept


def unpacked(name: str, place: Callable[[str], str | None]) -> Path:
    """A directory with part of the wheel, unpacked when it is not there.

    Args:
        name: of the part.
        place: path in the directory of a file of the wheel, or None for a file that is not wanted.

    Raises:
        NoWheel: pip cannot fetch the wheel.
    """
    folder = cache_directory() / f"{WHEEL.replace('==', '-')}-{name}"
    if not folder.is_dir():
        wheel = ttnn_wheel()
        with tempfile.TemporaryDirectory(dir=folder.parent) as work, zipfile.ZipFile(wheel) as archive:
            part = Path(work) / "part"
            for entry in archive.namelist():
                wanted = place(entry)
                if wanted is not None and not entry.endswith("/"):
                    target = part / wanted
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with archive.open(entry) as source, target.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
            part.rename(folder)
    return folder
