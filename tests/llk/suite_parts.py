"""What a run of Tenstorrent's LLK test suite on bhemu needs: its Python, the suite itself, compilers, the C library.

Everything is kept in bhemu's cache directory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

import bhemu.cc
from bhemu.capi import build
from bhemu.capi.soc_descriptor import write_soc_descriptor
from bhemu.cc import Sfpi, Toolchain, find_llk, find_sfpi, find_toolchain, write_llk_home
from bhemu.errors import BhemuError
from bhemu.machine.cache import cache_directory
from tests.llk.cached_compiler import trim, write_launchers
from tests.processes import one_at_a_time
from tests.ttnn_wheel import NoWheel, unpacked
from tests.vendor_compiler import NoCompiler, vendor_compiler

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
REQUIREMENTS = HERE / "requirements.txt"
INSIDE = "ttnn/tt_metal/"
WANTED = tuple(f"{INSIDE}{part}" for part in ("tt-llk/", "hw/", "hostdevcommon/"))
"""The suite and the headers that its kernels include."""


class CannotRun(Exception):
    """Something that the suite needs cannot be had on this machine; the text says what."""


@dataclass(frozen=True)
class Parts:
    """Where everything is.

    Attributes:
        python: of the environment with the suite's packages.
        home: value of LLK_HOME: the suite, with compilers where it looks for them.
        library: the C library behind which bhemu runs.
    """

    python: Path
    home: Path
    library: Path

    @property
    def tests(self) -> Path:
        """The directory with the suite's tests."""
        return self.home / "tests" / "python_tests"

    def environment(self, work: Path) -> dict[str, str]:
        """Environment of the suite's pytest, which builds kernels and keeps its files in `work`.

        Some tests turn stochastic rounding on, whose random bits no source gives; they compare with a tolerance, so the
        simulator may choose.
        """
        temporary = work / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        return os.environ | {
            "PYTHONPATH": f"{ROOT}{os.pathsep}{HERE}",
            "LLK_HOME": str(self.home),
            "CHIP_ARCH": "blackhole",
            "TT_METAL_SIMULATOR": str(self.library),
            "BHEMU_ALLOW_OPEN": "1",
            "RUNNER_TEMP": str(work),
            "TMPDIR": str(temporary),
        }


def prepare(*, stock: bool) -> Parts:
    """Make everything that is not there yet; what another run may be using is left alone.

    Args:
        stock: compile kernels with the stock compiler, not with the vendor's.

    Raises:
        CannotRun: pip cannot fetch packages, or there is no RISC-V or C compiler.
    """
    folder = cache_directory() / "llk"
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder / "lock"):
        try:
            suite = unpacked("llk", lambda name: name.removeprefix(INSIDE) if name.startswith(WANTED) else None)
        except NoWheel as reason:
            raise CannotRun(f"pip cannot fetch the ttnn wheel: {reason}") from None
        try:
            compiler = find_toolchain() if stock else find_sfpi(vendor_compiler())
            assert compiler is not None
            home = _home(folder, suite, compiler)
            library = build(folder / f"simulator-{_digest(str(ROOT), sys.executable)}")
        except NoCompiler as reason:
            raise CannotRun(f"the vendor's compiler: {reason}") from None
        except BhemuError as error:
            raise CannotRun(f"{error}\n{error.remedy or ''}".strip()) from None
        write_soc_descriptor(library.parent)
        return Parts(python=_python(folder), home=home, library=library)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]


def _home(folder: Path, suite: Path, compiler: Toolchain | Sfpi) -> Path:
    """The suite with a compiler in it: made anew when `bhemu cc`, the compiler or the suite has changed.

    With the vendor's, the results of compilations are kept: most of a run's time is theirs.
    """
    sources = [file for file in sorted(Path(bhemu.cc.__file__).parent.rglob("*")) if file.is_file()]
    texts = [file.read_text() for file in sources if file.suffix != ".pyc"]
    digest = _digest(str(suite), str(compiler), *texts, (HERE / "cached_compiler.py").read_text())
    place = folder / f"home-{digest}"
    stamp = folder / f"home-{digest}.ready"
    home = place / "tt_metal" / "tt-llk"
    if not stamp.is_file():
        home = write_llk_home(place, find_llk(suite), compiler)
        if isinstance(compiler, Sfpi):
            (home / "tests" / "sfpi").unlink()
            write_launchers(home / "tests" / "sfpi", compiler.root, folder / "kernels", sys.executable)
        stamp.touch()
    trim(folder / "kernels")
    return home


def _python(folder: Path) -> Path:
    """The environment's Python; the environment is made anew when what goes into it has changed."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    text = "\n".join([sys.version, REQUIREMENTS.read_text(), *needs])
    place = folder / f"venv-{_digest(text)}"
    python, stamp = place / "bin" / "python", place / "installed"
    if not stamp.is_file():
        for old in folder.glob("venv-*"):
            shutil.rmtree(old)
        venv.create(place, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, "--requirement", str(REQUIREMENTS), *needs], check=False, stderr=subprocess.PIPE, text=True
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise CannotRun(f"pip cannot install the suite's packages: {said[-1] if said else done.returncode}")
        stamp.touch()
    return python
