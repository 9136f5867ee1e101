"""A library with the C interface of the official simulator, behind which bhemu runs (tile H1 to H3)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
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
    return str(path) if name.endswith(".so") or (".so." in name and path.exists()) else ""


def _text(value: str) -> str:
    """A C string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def build(directory: Path) -> Path:
    """Compile the library into a directory; returns its path.

    Raises:
        ProgramError: there is no C compiler, or it fails.
    """
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if compiler is None:
        raise ProgramError("there is no C compiler", remedy="install one: on Debian, `apt install gcc`")
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / NAME
    done = subprocess.run(
        [
            *(compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", str(_SHIM)),
            f"-DBHEMU_PYTHON={_text(sys.executable)}",
            f"-DBHEMU_LIBPYTHON={_text(_shared_python())}",
            f"-DBHEMU_PATH={_text(repr(str(_PACKAGE.parent)))}",
            *("-ldl", "-o", str(target)),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ProgramError(f"{compiler} cannot compile the library:\n{done.stderr}", remedy="see its messages")
    return target
