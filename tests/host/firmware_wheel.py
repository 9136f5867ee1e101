"""The tt-metal firmware in the ttnn wheel: fetched once with pip, kept in bhemu's cache directory."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from bhemu.machine.compiler import cache_directory

WHEEL = "ttnn==0.81.1"
OPTIONS = ("--no-deps", "--only-binary=:all:", "--python-version", "3.10", "--platform", "manylinux_2_34_x86_64")
INSIDE = "ttnn/tt_metal/pre-compiled/"
FILES = tuple(f"{name}/{name}.elf" for name in ("brisc", "ncrisc", "trisc0", "trisc1", "trisc2"))


class NoWheel(Exception):
    """pip cannot fetch it; the text says why."""


def firmware_sets() -> list[Path]:
    """The directories of all firmware sets, fetched when they are not there.

    Raises:
        NoWheel: pip cannot fetch the wheel.
    """
    folder = cache_directory() / WHEEL.replace("==", "-")
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            unpacked = _fetch(Path(work))
            unpacked.rename(folder)
    return sorted(path for path in folder.iterdir() if all((path / name).is_file() for name in FILES))


def _fetch(work: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", WHEEL, *OPTIONS, "--dest", str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoWheel(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    unpacked = work / "unpacked"
    unpacked.mkdir()
    with zipfile.ZipFile(next(work.glob("*.whl"))) as wheel:
        for name in wheel.namelist():
            parts = name.removeprefix(INSIDE).partition("/")
            if name.startswith(INSIDE) and parts[2] in FILES:
                target = unpacked / parts[0] / parts[2]
                target.parent.mkdir(parents=True, exist_ok=True)
                with wheel.open(name) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    return unpacked
