"""What ttnn programs run in: Python 3.10 with ttnn and torch, the vendor's compiler, the C library.

Everything is kept in bhemu's cache directory. What tt-metal compiles is kept there too, by content (it hashes sources
and options), for each compiler and release of ttnn.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import bhemu.cc
from bhemu.capi import build
from bhemu.cc import find_llk, find_sfpi, write_metal_root
from bhemu.errors import BhemuError
from bhemu.machine.cache import cache_directory
from tests.capi.library_client import pythons
from tests.processes import one_at_a_time
from tests.ttnn_wheel import WHEEL
from tests.vendor_compiler import NoCompiler, vendor_compiler

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (WHEEL, "torch==2.13.0", "numpy<2")
LONGEST = 1200
"""Seconds that pip may take."""
OF_OTHERS = ("BHEMU_", "TTSIM_", "TT_", "PYTHON")


class CannotRun(Exception):
    """Something that ttnn needs cannot be had on this machine; the text says what."""


@dataclass(frozen=True)
class Parts:
    """Where everything is.

    Attributes:
        python: of the environment with ttnn and torch.
        root: value of TT_METAL_RUNTIME_ROOT: the package, with the vendor's compiler.
        kernels: value of TT_METAL_CACHE.
        library: the C library behind which bhemu is.
    """

    python: Path
    root: Path
    kernels: Path
    library: Path

    def environment(self, *, slow: bool, library: Path | None = None) -> dict[str, str]:
        """Environment of a ttnn program.

        Args:
            slow: whether the host dispatches programs; otherwise Tensix tiles do.
            library: another simulator's library.
        """
        clean = {name: value for name, value in os.environ.items() if not name.startswith(OF_OTHERS)}
        kept = {name: os.environ[name] for name in ("BHEMU_CACHE",) if name in os.environ}
        settings = clean | kept
        settings |= {
            "TT_METAL_SIMULATOR": str(library or self.library),
            "TT_METAL_RUNTIME_ROOT": str(self.root),
            "TT_METAL_CACHE": str(self.kernels),
            "TT_METAL_LOGGER_LEVEL": "FATAL",
        }
        if slow:
            settings["TT_METAL_SLOW_DISPATCH_MODE"] = "1"
        return settings


def prepare() -> Parts:
    """Make everything that is not there yet.

    Raises:
        CannotRun: there is no Python 3.10, pip cannot fetch packages, or there is no C compiler.
    """
    folder = cache_directory() / "ttnn"
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder / "lock"):
        try:
            compiler = find_sfpi(vendor_compiler())
            assert compiler is not None
            python = _python(folder)
            package = next(python.parents[1].glob("lib/python*/site-packages/ttnn"))
            name = hashlib.sha256(f"{compiler}{package}{_text_of_cc()}".encode()).hexdigest()[:12]
            root = folder / f"metal-{name}"
            if not (root / "runtime" / "sfpi").exists():
                write_metal_root(root, find_llk(package), compiler)
            library = build(folder / f"simulator-{hashlib.sha256(f'{ROOT}{sys.executable}'.encode()).hexdigest()[:12]}")
        except NoCompiler as reason:
            raise CannotRun(str(reason)) from None
        except BhemuError as error:
            raise CannotRun(f"{error}\n{error.remedy or ''}".strip()) from None
        return Parts(python, root, folder / f"kernels-{name}", library)


def _text_of_cc() -> str:
    return (Path(bhemu.cc.__file__).parent / "views.py").read_text()


def _python(folder: Path) -> Path:
    """The environment's Python; the environment is made anew when what goes into it has changed."""
    base = next(iter(pythons(10)), None)
    if base is None:
        raise CannotRun("ttnn's wheel needs Python 3.10, and there is none")
    place = folder / f"venv-{hashlib.sha256(repr((str(base), PACKAGES)).encode()).hexdigest()[:12]}"
    python, stamp = place / "bin" / "python", place / "installed"
    if not stamp.is_file():
        for old in folder.glob("venv-*"):
            shutil.rmtree(old)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        for command in ([str(base), "-m", "venv", str(place)], pip):
            try:
                done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LONGEST)
            except subprocess.TimeoutExpired:
                raise CannotRun(f"pip has not installed ttnn and torch, 2.5 GB, within {LONGEST} s") from None
            if done.returncode:
                said = done.stderr.strip().splitlines()
                raise CannotRun(f"pip cannot install ttnn and torch: {said[-1] if said else done.returncode}")
        stamp.touch()
    return python
