"""Tenstorrent's own compiler, `sfpi`: GCC with the SFPU's vector language, where one is installed."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bhemu.cc.cores import Core
from bhemu.cc.errors import MissingTool

PREFIX = "riscv-tt-elf-"
KNOWN_RELEASE = "7.87.0"
"""The release that the tests use."""
TT_METAL_HOME = "TT_METAL_HOME"
"""tt-metal's environment variable: the compiler is in `runtime/sfpi` of that directory."""
INSTALLED = Path("/opt/tenstorrent/sfpi")
"""Where the vendor's Debian and RPM packages install it."""

_DRIVER = Path("compiler") / "bin" / f"{PREFIX}gcc"
_BELOW = ("", "runtime/sfpi", "sfpi")
_COPROCESSOR, _PLAIN = "-mcpu=tt-bh-tensix", "-mcpu=tt-bh"
_RELEASE = re.compile(r"tenstorrent/sfpi:([\d.]+)")


@dataclass(frozen=True, slots=True)
class Sfpi:
    """An installed vendor's compiler. It comes with its own C library and C++ headers.

    Attributes:
        root: the directory that holds `compiler` and `include`.
        release: of sfpi, such as "7.87.0".
    """

    root: Path
    release: str

    @property
    def gcc(self) -> Path:
        """The C driver; it compiles C++ and assembly too."""
        return self.root / _DRIVER

    @property
    def include(self) -> Path:
        """The directory with `sfpi.h` and `lltt.h`."""
        return self.root / "include"

    def machine(self, core: Core) -> tuple[str, ...]:
        """What selects the core: all but NC can push instructions to the coprocessor (T11)."""
        return (_PLAIN if core.name == "NC" else _COPROCESSOR,)

    def language(self, file: Path, core: Core, data: Path, *, llk: bool) -> list[str]:
        """The compiler's arguments for a source that depend on the compiler; see `Toolchain.language`."""
        if file.suffix not in CXX_SUFFIXES:
            return []
        options = ["-ftt-nttp", "-ftt-constinit", "-ftt-consteval", f"-isystem{self.include}"]
        # The vendor's header takes the push window from LLK's ckernel.h, which a bare kernel does not include.
        return options if llk else [*options, "-include", str(data / "sfpu.h")]

    def libraries(self) -> list[str]:
        """The linker's arguments for the C library; the driver finds the one of the core by itself."""
        return []


CXX_SUFFIXES = (".cpp", ".cc", ".cxx", ".C")


def find_sfpi(path: str | Path | None = None) -> Sfpi | None:
    """The vendor's compiler: at `path`, else below TT_METAL_HOME, else in /opt/tenstorrent/sfpi.

    Args:
        path: the directory of sfpi, or one with `runtime/sfpi` in it, such as a tt-metal checkout.

    Returns:
        None when `path` is None and none is installed.

    Raises:
        MissingTool: there is none at `path`, or what is there does not run or does not build for Blackhole.
    """
    if path is not None:
        found = _look(Path(path))
        if found is None:
            raise MissingTool(
                f"--sfpi {path}: no {_DRIVER} there",
                remedy="give the directory of Tenstorrent's sfpi release, or a tt-metal directory with runtime/sfpi; "
                "without --sfpi the stock compiler is used",
            )
        return _examined(found)
    home = os.environ.get(TT_METAL_HOME)
    for place in ([Path(home) / "runtime" / "sfpi"] if home else []) + [INSTALLED]:
        found = _look(place)
        if found is not None:
            return _examined(found)
    return None


def _look(place: Path) -> Path | None:
    for below in _BELOW:
        if (place / below / _DRIVER).is_file():
            return (place / below).absolute()
    return None


@lru_cache(maxsize=8)
def _examined(root: Path) -> Sfpi:
    """The compiler at `root`, after a look at what it is."""
    gcc = root / _DRIVER
    says = _said(gcc, "--version")
    release = _RELEASE.search(says)
    if release is None:
        raise MissingTool(
            f"{gcc} is not Tenstorrent's sfpi: it says {says.splitlines()[0] if says else 'nothing'}",
            remedy=f"name sfpi with --sfpi (release {KNOWN_RELEASE} is known to work), or a stock compiler with --gcc",
        )
    _said(gcc, _COPROCESSOR, "-fsyntax-only", "-x", "c", os.devnull, release=release[1])
    return Sfpi(root, release[1])


def _said(gcc: Path, *arguments: str, release: str | None = None) -> str:
    """What the compiler prints."""
    try:
        done = subprocess.run([gcc, *arguments], capture_output=True, text=True, check=False, errors="replace")
        said, failed = done.stdout + done.stderr, done.returncode != 0
    except OSError as error:
        said, failed = f"{error.strerror}", True
    if failed:
        what = f"sfpi {release} does not build for Blackhole" if release else f"{gcc} does not run"
        raise MissingTool(
            f"{what}:\n{said.strip()}",
            remedy=f"use sfpi {KNOWN_RELEASE}, which is known to work, or the stock compiler with --gcc",
        )
    return said
