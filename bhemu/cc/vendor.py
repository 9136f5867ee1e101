"""A drop-in for the vendor's compiler, as the LLK test harness calls it: launchers named `riscv-tt-elf-*` (B19).

The harness starts about a hundred compilers a minute, so a launcher is a shell script with every path resolved: it
translates the arguments and becomes the stock compiler, in a few milliseconds.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from bhemu.cc.errors import CompileError
from bhemu.cc.llk import LlkTree
from bhemu.cc.toolchain import ABI, GCC, MARCH, Toolchain, find_toolchain

PREFIX = "riscv-tt-elf-"
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
_CODE = ("-fno-threadsafe-statics", "-fno-asynchronous-unwind-tables")
_MISSING = """\
#!/bin/sh
echo "{vendor}: {stock} is not installed; apt install {package}" >&2
exit 1
"""


def write_vendor_tools(directory: str | Path, *, gcc: str = GCC) -> Path:
    """Write a directory in the layout of the vendor's `sfpi` package: `compiler/bin/riscv-tt-elf-*` and `include/`.

    Everything in it is resolved for this machine: write it anew after moving bhemu or the compiler. Existing files of
    the same names are replaced.

    Args:
        directory: created when it does not exist.
        gcc: the stock C driver.

    Returns:
        The directory, absolute.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: the directory cannot be written.
    """
    toolchain = find_toolchain(gcc)
    cxx = toolchain.cxx_include()
    root = Path(directory).absolute()
    binaries, include = root / "compiler" / "bin", root / "include"
    try:
        for path in (binaries, include):
            path.mkdir(parents=True, exist_ok=True)
        data = resources.files("bhemu.cc").joinpath("data")
        for header in data.joinpath("sfpi").iterdir():
            (include / header.name).write_text(header.read_text())
        prelude = include / "bhemu_prelude.h"
        prelude.write_text(data.joinpath("prelude.h").read_text())
        headers = [f"-isystem{path}" for path in cxx]
        drivers = {"g++": (headers, ["-nostdinc++"]), "c++": (headers, ["-nostdinc++"]), "gcc": ([], [])}
        for name, (paths, code) in drivers.items():
            stock = toolchain.gcc if name == "gcc" else toolchain.tool("g++")
            script = _driver(name, stock, toolchain, prelude, include, paths, code) if stock else _missing(name)
            _write_program(binaries / f"{PREFIX}{name}", script)
        for name in (*_BINUTILS, *_COVERAGE):
            stock = toolchain.tool(name)
            script = f'#!/bin/sh\nexec {shlex.quote(str(stock))} "$@"\n' if stock else _missing(name)
            _write_program(binaries / f"{PREFIX}{name}", script)
    except OSError as error:
        raise CompileError(
            f"cannot write {error.filename}: {error.strerror}", remedy="name a directory that you may write"
        ) from None
    return root


def write_llk_home(directory: str | Path, tree: LlkTree, *, gcc: str = GCC) -> Path:
    """Write a view of an LLK tree that has these tools where the harness looks for them; the tree is not touched.

    The view is `directory/tt_metal/tt-llk`: links to the tree, except `tests/sfpi`, which `write_vendor_tools` fills,
    and a few headers in which something small is not to the stock compiler's taste. The harness takes the view from
    the environment variable LLK_HOME, and what it writes below LLK_HOME lands in the view.

    Args:
        directory: a new or empty one, or an earlier view, which is replaced.
        tree: the LLK headers and tests, as the `ttnn` wheel or a tt-metal checkout has them.
        gcc: the stock C driver.

    Returns:
        The value for LLK_HOME.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: the tree has no tests, or the directory cannot be written or holds something else.
    """
    if not (tree.root / "tests" / "python_tests").is_dir():
        raise CompileError(f"{tree.root} has no tests", remedy="use the tree of the ttnn wheel or of tt-metal")
    find_toolchain(gcc).cxx_include()
    top = Path(directory).resolve()
    home = top / "tt_metal" / "tt-llk"
    try:
        if (top / _MARK).is_file():
            shutil.rmtree(top)
        elif top.is_dir() and any(top.iterdir()):
            raise CompileError(f"{top} holds something else", remedy="name a new directory")
        (home / "tests").mkdir(parents=True)
        (top / _MARK).write_text(f"{tree.root}\n")
        # The harness includes from ../../hw and ../../../ttnn, relative to tests/.
        _link_all(tree.metal.parent, top, only=("ttnn",))
        _link_all(tree.metal, top / "tt_metal", without=(tree.root.name, home.name))
        _link_all(tree.root, home, without=("tests",))
        _link_all(tree.root / "tests", home / "tests", without=("sfpi",))
        for written in ("python_tests", "sources"):  # logs and generated kernels
            _own(home / "tests" / written)
        for part in (home / "tt_llk_blackhole", top / "tt_metal" / "hw" / "ckernels" / "blackhole"):
            _adapt_headers(part)
    except OSError as error:
        raise CompileError(f"cannot write {error.filename}: {error.strerror}", remedy="name a new directory") from None
    write_vendor_tools(home / "tests" / "sfpi", gcc=gcc)
    return home


_MARK = ".bhemu-llk-home"
"""File that says that a directory is a view, which may be replaced."""
_ADAPTED = (
    # An unroll count that is a template parameter: the stock compiler wants a number. It is a hint, without effect on
    # results.
    (re.compile(rb"^#pragma GCC unroll [A-Za-z_]\w*[ \t]*$", re.MULTILINE), rb""),
    # A constexpr variable made from a parameter that is a reference: allowed since GCC 14 (C++23, P2280). By value it
    # always was, and a callable without state is the same by value.
    (re.compile(rb"\((\w+)&& (\w+)\)(\s*\{\s*constexpr auto \w+ = [^;]*\b\2\b)"), rb"(\1 \2)\3"),
)
"""What the stock compiler does not take in headers, and what stands there in the view."""


def _adapt_headers(part: Path) -> None:
    """Give the view its own copies of the headers below `part`, a link, that the stock compiler would not take."""
    source = part.resolve()
    for file in sorted(source.rglob("*.h")):
        text = adapted = file.read_bytes()
        for pattern, instead in _ADAPTED:
            adapted = pattern.sub(instead, adapted)
        if adapted != text:
            header = part / file.relative_to(source)
            _own(header.parent)
            header.unlink()
            header.write_bytes(adapted)


def _own(directory: Path) -> None:
    """Make a directory of the view real: a link on the way to it becomes a directory of links.

    The view's top is free of links, so nothing outside of the view changes.
    """
    if directory.resolve() == directory:
        return
    _own(directory.parent)
    if directory.is_symlink():
        source = directory.readlink()
        directory.unlink()
        directory.mkdir()
        _link_all(source, directory)


def _link_all(source: Path, target: Path, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> None:
    """Symbolic links in `target` to what is in `source`."""
    for entry in source.iterdir():
        if entry.name not in without and (not only or entry.name in only):
            (target / entry.name).symlink_to(entry)


def _driver(
    name: str, stock: Path, toolchain: Toolchain, prelude: Path, include: Path, paths: list[str], code: list[str]
) -> str:
    words = shlex.join
    return _DRIVER.format(
        vendor=f"{PREFIX}{name}",
        compiler=words([str(stock)]),
        machine=words([f"-march={MARCH}", f"-mabi={ABI}", "-mcmodel=medlow"]),
        prelude=words([str(prelude)]),
        include=words([str(include)]),
        headers=words([*paths, f"-isystem{toolchain.include}"]),
        code=words([*_CODE, *code]),
        link=words([f"-L{toolchain.library}", f"-L{toolchain.libgcc}"]),
    )


def _missing(name: str) -> str:
    package = "binutils-riscv64-unknown-elf" if name in _BINUTILS else "gcc-riscv64-unknown-elf"
    return _MISSING.format(vendor=f"{PREFIX}{name}", stock=GCC.removesuffix("gcc") + name, package=package)


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
