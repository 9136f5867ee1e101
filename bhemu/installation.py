"""What is installed, what is missing, what it is for, and how to get it: what `bhemu doctor` prints."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

NEEDED: Final = ("numba", "llvmlite", "numpy", "ml_dtypes", "greenlet", "pyelftools", "pyyaml", "typer", "rich")
FIRST_PYTHON: Final = (3, 11)
PROBE: Final = "NOP"


@dataclass(frozen=True)
class Finding:
    """What was looked for.

    Attributes:
        name: what it is.
        found: version or place; None when it is missing.
        use: what it is for.
        remedy: how to get it.
        needed: nothing works without it.
    """

    name: str
    found: str | None
    use: str
    remedy: str
    needed: bool = False


def find(*, compiles: bool = True) -> list[Finding]:
    """Look for everything that bhemu needs or can use."""
    works = [_works()] if compiles else []
    return [*_python(), *_packages(), _cache(), *works, _translates(), *_tools(), *_optional()]


def _python() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= FIRST_PYTHON
    linux = sys.platform == "linux"
    system = f"{platform.system()} {platform.machine()}"
    return [
        Finding("Python", version if good else None, "everything", "install Python 3.11 or newer", True),
        Finding("Linux", system if linux else None, "everything; nothing else is tested", "use Linux, or a container"),
    ]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _packages() -> list[Finding]:
    bhemu = Finding("bhemu", _version("bhemu") or "from a source tree", "everything", "pip install bhemu", True)
    return [bhemu, *(Finding(name, _version(name), "everything", f"pip install {name}", True) for name in NEEDED)]


def _cache() -> Finding:
    from bhemu.machine.cache import cache_directory

    directory = cache_directory()
    use = "compiled code; without it every process compiles anew"
    remedy = f"make {directory} writable for you alone, or name another with BHEMU_CACHE"
    existing = next((each for each in (directory, *directory.parents) if each.exists()), Path("/"))
    if not os.access(existing, os.W_OK | os.X_OK) or not existing.is_dir():
        return Finding("compile cache", None, use, remedy)
    files = list(directory.glob("*.bin")) if directory.is_dir() else []
    size = sum(file.stat().st_size for file in files) / 2**20
    return Finding("compile cache", f"{directory}: {len(files)} files, {size:.1f} MiB", use, remedy)


def _works() -> Finding:
    """An instruction is executed, by compiled code unless Numba is disabled."""
    from bhemu.machine.compiler import JIT

    def run() -> str:
        from bhemu.api.tile import Tile

        tile = Tile()
        tile.execute(0, PROBE)
        assert int(tile.record.issued.sum()) == 1
        return f"{PROBE} executed, " + ("compiled" if JIT else "as plain Python (NUMBA_DISABLE_JIT)")

    return Finding("compiled code", _try(run), "everything", "bhemu --traceback run examples/add1.py says more", True)


def _translates() -> Finding:
    from bhemu.riscv.translator import VARIABLE, why_not

    reason = why_not()
    found = f"machine code of {platform.machine()}" if reason is None else None
    remedy = f"{reason}; programs of the cores run at the speed of an interpreter"
    return Finding("translated code", found, f"fast programs of the cores; {VARIABLE}=0 turns it off", remedy)


def _try(run: Callable[[], str]) -> str | None:
    try:
        return run()
    except Exception:  # whatever is wrong with the installation
        return None


def _tools() -> list[Finding]:
    from bhemu.capi.compiler import c_compiler
    from bhemu.cc.toolchain import find_toolchain

    def stock() -> str:
        return str(find_toolchain().gcc)

    def host() -> str:
        return shlex.join(c_compiler())

    def cxx() -> str:
        return str(find_toolchain().cxx_include()[0])

    return [
        Finding(
            "RISC-V compiler", _try(stock), "bhemu cc: kernels in C",
            "apt install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf",
        ),
        Finding("C++ headers", _try(cxx), "bhemu cc: kernels in C++", "apt install libstdc++-arm-none-eabi-newlib"),
        Finding("C compiler", _try(host), "bhemu library: tt-umd, tt-exalens, ttnn", "apt install gcc libc6-dev"),
        Finding("GDB", shutil.which("gdb-multiarch"), "bhemu debug --gdb", "apt install gdb-multiarch"),
        Finding("QEMU", shutil.which("qemu-riscv32"), "tests of the cores", "apt install qemu-user"),
    ]  # fmt: skip


def _optional() -> list[Finding]:
    def llk() -> str:
        from bhemu.cc.llk import find_llk

        return str(find_llk().root)

    return [
        Finding("matplotlib", _version("matplotlib"), "plot() of tiles, chips, results", "pip install 'bhemu[plot]'"),
        Finding("torch", _version("torch"), "tensors of torch", "pip install 'bhemu[torch]'"),
        Finding(
            "LLK headers", _try(llk), "bhemu cc --llk", "name a checkout of tt-metal with BHEMU_LLK, or install ttnn"
        ),
    ]
