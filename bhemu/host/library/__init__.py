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
    compiler = _compiler()
    _make_directory(directory)
    target = directory / NAME
    packages = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    with tempfile.TemporaryDirectory(dir=directory) as work:
        made = Path(work) / NAME
        done = subprocess.run(
            [
                *(compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", str(_SHIM)),
                f"-DBHEMU_PYTHON={_text(sys.executable)}",
                f"-DBHEMU_LIBPYTHON={_text(_shared_python())}",
                f"-DBHEMU_PATH={_text(repr(str(_PACKAGE.parent)))}",
                f"-DBHEMU_PACKAGES={_text(repr(list(dict.fromkeys(packages))))}",
                f"-DBHEMU_MAJOR={sys.version_info.major}",
                f"-DBHEMU_MINOR={sys.version_info.minor}",
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
