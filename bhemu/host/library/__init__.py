"""A library with the C interface of the official simulator, behind which bhemu runs (tile H1 to H3)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from bhemu.errors import ProgramError

NAME: Final = "libttsim_bh.so"
_SHIM: Final = Path(__file__).with_name("shim.c")
_RECORDER: Final = Path(__file__).with_name("recorder.c")
_PACKAGE: Final = Path(__file__).resolve().parents[2]


def _shared_python() -> str:
    """Path of libpython, or empty when this Python was built without one."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    path = Path(sysconfig.get_config_var("LIBDIR") or "") / name
    return str(path) if ".so" in name and path.exists() else ""


def _text(value: str) -> str:
    """A C string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _compiler() -> str:
    """The C compiler: what CC names, or a usual one.

    Raises:
        ProgramError: there is none.
    """
    wanted = os.environ.get("CC")
    found = next(
        (path for name in ([wanted] if wanted else ["cc", "gcc", "clang"]) if (path := shutil.which(name))), None
    )
    if found is None:
        what = f"CC names {wanted!r}, which is not there" if wanted else "there is no C compiler"
        raise ProgramError(what, remedy="install one: on Debian, `apt install gcc libc6-dev`")
    return found


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise ProgramError(
            f"cannot write into {directory}: {error.strerror}", remedy="choose a directory that you may write"
        ) from None


def build(directory: Path) -> Path:
    """Compile the library into a directory, which is made when it is not there; returns its path.

    A process that uses an older library of the same name is not disturbed.

    Raises:
        ProgramError: there is no C compiler, or it fails, or the directory cannot be written.
    """
    packages = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    return _compile(
        _SHIM,
        directory,
        BHEMU_PYTHON=_text(sys.executable),
        BHEMU_LIBPYTHON=_text(_shared_python()),
        BHEMU_PATH=_text(repr(str(_PACKAGE.parent))),
        BHEMU_PACKAGES=_text(repr(list(dict.fromkeys(packages)))),
        BHEMU_MAJOR=str(sys.version_info.major),
        BHEMU_MINOR=str(sys.version_info.minor),
    )


def build_recorder(directory: Path, library: Path) -> Path:
    """Compile a library that passes calls on to another one and writes them down; returns its path.

    Args:
        directory: made when it is not there.
        library: with the simulator's interface, bhemu's own or another.

    Raises:
        ProgramError: there is no C compiler, or it fails, or the directory cannot be written, or is the library's.
    """
    target = library.resolve()
    if target == (directory / NAME).resolve():
        raise ProgramError(f"{library} would be overwritten by its own recorder", remedy="choose another directory")
    return _compile(_RECORDER, directory, BHEMU_TARGET=_text(str(target)))


def _compile(source: Path, directory: Path, **defined: str) -> Path:
    """Compile a file into the library of a directory."""
    compiler = _compiler()
    _make_directory(directory)
    target = directory / NAME
    with tempfile.TemporaryDirectory(dir=directory) as work:
        made = Path(work) / NAME
        done = subprocess.run(
            [
                *(compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", str(source)),
                *(f"-D{name}={value}" for name, value in defined.items()),
                *("-ldl", "-o", str(made)),
            ],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise ProgramError(f"{compiler} cannot compile the library:\n{done.stderr}", remedy="see its messages")
        made.replace(target)
    return target
