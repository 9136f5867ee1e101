"""A drop-in for the vendor's compiler, as the LLK test harness calls it: launchers named `riscv-tt-elf-*` (B19).

The harness starts about a hundred compilers a minute, so a launcher is a shell script with every path resolved: it
translates the arguments and becomes the stock compiler, in a few milliseconds.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from bhemu.cc.errors import CompileError
from bhemu.cc.sfpi import PREFIX
from bhemu.cc.toolchain import GCC, MACHINE, Toolchain, find_toolchain

_COVERAGE = ("gcov", "gcov-dump", "gcov-tool")
_BINUTILS = (
    *("addr2line", "ar", "as", "c++filt", "ld", "nm", "objcopy", "objdump"),
    *("ranlib", "readelf", "size", "strings", "strip"),
)

_DRIVER = """\
#!/bin/sh
# {vendor} by bhemu cc: the vendor's arguments, for the stock compiler.
standard=
twenty=
linking=1
for argument do
    shift
    case $argument in
        -mcpu=tt-bh-tensix) set -- "$@" -D__riscv_xtttensixbh=1 ;;
        -mcpu=tt-bh) ;;
        -mcpu=tt-*)
            echo "{vendor}: $argument: bhemu cc builds for Blackhole only (-mcpu=tt-bh, -mcpu=tt-bh-tensix)" >&2
            exit 1 ;;
        -ftt-nttp|-ftt-constinit|-ftt-consteval) twenty=1 ;;
        -mtt-*|-mno-tt-*|-ftt-*|-fno-tt-*) ;;
        -Werror|-Werror=*) ;;
        -std=*) standard=$argument ;;
        -c|-S|-E) linking= ; set -- "$@" "$argument" ;;
        *) set -- "$@" "$argument" ;;
    esac
done
# Template arguments and constinit as the vendor's extensions allow them need C++20 of the stock compiler.
if [ "$twenty" ]; then standard=-std=gnu++20; fi
exec {compiler} {machine} -include {prelude} -I{include} {headers} "$@" $standard -w {code} ${{linking:+{link}}}
"""
_PRELUDE = "bhemu_prelude.h"
_LIBRARIES = ("libstdc++.a", "libgloss.a")
"""Libraries that a C++ driver names by itself and this compiler comes without. Empty: kernels take nothing of them."""
_CODE = ("-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables")
_MISSING = """\
#!/bin/sh
echo "{vendor}: {stock} is not installed; apt install {package}" >&2
exit 1
"""


def write_vendor_tools(directory: str | Path, *, gcc: str = GCC, options: Sequence[str] = ()) -> Path:
    """Write a directory in the layout of the vendor's `sfpi` package: `compiler/bin/riscv-tt-elf-*` and `include/`.

    Everything in it is resolved for this machine: write it again after moving bhemu or the compiler. Existing files of
    the same names are replaced.

    Args:
        directory: created when it does not exist.
        gcc: the stock C driver.
        options: for every source that is compiled.

    Returns:
        The directory, absolute.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: the directory cannot be written.
    """
    toolchain = find_toolchain(gcc)
    cxx = toolchain.cxx_include()
    root = Path(directory).absolute()
    binaries, include, empty = root / "compiler" / "bin", root / "include", root / "compiler" / "lib"
    try:
        for path in (binaries, include / "sys", empty):
            path.mkdir(parents=True, exist_ok=True)
        for name in _LIBRARIES:
            (empty / name).write_bytes(b"!<arch>\n")
        data = resources.files("bhemu.cc").joinpath("data")
        for header in ("sfpi.h", "lltt.h", "sys/types.h"):
            (include / header).write_text(data.joinpath("sfpi", header).read_text())
        (include / _PRELUDE).write_text(data.joinpath("prelude.h").read_text())
        headers = [f"-isystem{path}" for path in cxx]
        cpp = [*options, "-nostdinc++"]
        drivers = {"g++": (headers, cpp), "c++": (headers, cpp), "gcc": ([], list(options))}
        for name, (paths, code) in drivers.items():
            stock = toolchain.gcc if name == "gcc" else toolchain.tool("g++")
            script = _driver(name, stock, toolchain, root, paths, code) if stock else _missing(name)
            write_program(binaries / f"{PREFIX}{name}", script)
        for name in (*_BINUTILS, *_COVERAGE):
            stock = toolchain.tool(name)
            script = f'#!/bin/sh\nexec {shlex.quote(str(stock))} "$@"\n' if stock else _missing(name)
            write_program(binaries / f"{PREFIX}{name}", script)
    except OSError as error:
        raise CompileError(
            f"cannot write {error.filename}: {error.strerror}", remedy="name a directory that you may write"
        ) from None
    return root


def _driver(name: str, stock: Path, toolchain: Toolchain, root: Path, paths: list[str], code: list[str]) -> str:
    words, include = shlex.join, root / "include"
    return _DRIVER.format(
        vendor=f"{PREFIX}{name}",
        compiler=words([str(stock)]),
        machine=words(MACHINE),
        prelude=words([str(include / _PRELUDE)]),
        include=words([str(include)]),
        headers=words([*paths, f"-isystem{toolchain.include}"]),
        code=words([*_CODE, *code]),
        link=words([f"-L{toolchain.library}", f"-L{toolchain.libgcc}", f"-L{root / 'compiler' / 'lib'}"]),
    )


def _missing(name: str) -> str:
    package = "binutils-riscv64-unknown-elf" if name in _BINUTILS else "gcc-riscv64-unknown-elf"
    return _MISSING.format(vendor=f"{PREFIX}{name}", stock=GCC.removesuffix("gcc") + name, package=package)


def write_program(path: Path, text: str) -> None:
    """Write a script that can be executed."""
    path.write_text(text)
    path.chmod(0o755)
