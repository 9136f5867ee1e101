"""Views of other projects' trees, with a compiler where the vendor's is expected there.

A view has links to the tree. Its compiler is the vendor's, or the launchers of `bhemu.cc.vendor`, with copies of the
few files that the stock compiler needs otherwise.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bhemu.cc.errors import CompileError
from bhemu.cc.llk import LlkTree
from bhemu.cc.sfpi import PREFIX, Sfpi
from bhemu.cc.toolchain import Toolchain
from bhemu.cc.vendor import write_program, write_vendor_tools


def write_llk_home(directory: str | Path, tree: LlkTree, compiler: Toolchain | Sfpi) -> Path:
    """Write a view of an LLK tree that has a compiler where the harness looks for it; the tree is not touched.

    The view is `directory/tt_metal/tt-llk`: links to the tree, except `tests/python_tests`, a copy, and `tests/sfpi`,
    which is a link to the vendor's compiler. With a stock compiler `write_vendor_tools` fills it, and the view has its
    own copies of a few headers that the stock compiler would not take. The harness takes the view from
    the environment variable LLK_HOME, and what it writes below LLK_HOME lands in the view.

    Args:
        directory: a new or empty one, or an earlier view, which is replaced.
        tree: the LLK headers and tests, as the `ttnn` wheel or a tt-metal checkout has them.
        compiler: what builds the kernels; see `bhemu.cc.choose_compiler`.

    Returns:
        The value for LLK_HOME.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: the tree has no tests, or the directory cannot be written or holds something else.
    """
    if not (tree.root / "tests" / "python_tests").is_dir():
        raise CompileError(f"{tree.root} has no tests", remedy="use the tree of the ttnn wheel or of tt-metal")
    _check(compiler)
    top = Path(directory).resolve()
    home = top / "tt_metal" / "tt-llk"
    try:
        _begin(top, tree.root)
        (home / "tests").mkdir(parents=True)
        # The harness includes from ../../hw and ../../../ttnn, relative to tests/.
        _link_all(tree.metal.parent, top, only=("ttnn",))
        _link_all(tree.metal, top / "tt_metal", without=(tree.root.name, home.name))
        _link_all(tree.root, home, without=("tests",))
        _link_all(tree.root / "tests", home / "tests", without=("sfpi", "python_tests"))
        # The harness writes logs there, and a test of it looks where its own modules are, links followed.
        shutil.copytree(tree.root / "tests" / "python_tests", home / "tests" / "python_tests")
        _own(home / "tests" / "sources")  # generated kernels
        if isinstance(compiler, Sfpi):
            (home / "tests" / "sfpi").symlink_to(compiler.root)
            return home
        for part in (home / "tt_llk_blackhole", top / "tt_metal" / "hw" / "ckernels" / "blackhole"):
            _adapt(part)
    except OSError as error:
        raise CompileError(f"cannot write {error.filename}: {error.strerror}", remedy="name a new directory") from None
    write_vendor_tools(home / "tests" / "sfpi", gcc=str(compiler.gcc))
    return home


def _check(compiler: Toolchain | Sfpi) -> None:
    """Refuse a stock compiler without C++ headers before anything is written."""
    if isinstance(compiler, Toolchain):
        compiler.cxx_include()


_OBJECTS: Final = {
    "tmu-crt0.o": "hw/toolchain/tmu-crt0.S",
    "substitutes.o": "hw/toolchain/substitutes.cpp",
    "noc.o": "hw/firmware/src/tt-1xx/blackhole/noc.c",
    "tdma_xmov.o": "hw/firmware/src/tt-1xx/tdma_xmov.c",
}
"""What every firmware and kernel is linked with, and its source below `tt_metal`.

In the wheel they are intermediate code of the vendor's compiler.
"""
_OBJECT_OPTIONS: Final = (
    *("-mcpu=tt-bh", "-std=c++17", "-Os", "-flto=auto", "-ffast-math", "-fno-use-cxa-atexit", "-fno-exceptions"),
    *("-fno-tree-loop-distribute-patterns", "-DTENSIX_FIRMWARE"),
)
_OBJECT_INCLUDES: Final = (
    *("", "api", "api/tt-metalium", "hw/inc", "hw/inc/debug", "hw/firmware/src/tt-1xx"),
    *(f"hw/inc/internal/tt-1xx/blackhole{part}" for part in ("", "/noc", "/overlay")),
    *("tt-llk/tt_llk_blackhole/common/inc", "tt-llk/tt_llk_blackhole/llk_lib"),
)


def write_metal_root(
    directory: str | Path, tree: LlkTree, compiler: Toolchain | Sfpi, *, profiled: bool = False
) -> Path:
    """Write a view of tt-metal, as the `ttnn` package carries it, with a compiler for its kernels.

    tt-metal takes the view from the environment variable TT_METAL_RUNTIME_ROOT. What one compiler has built must not
    meet what another has: let TT_METAL_CACHE name another directory than elsewhere.

    Args:
        directory: a new or empty one, or an earlier view, which is replaced.
        tree: the LLK headers of the package.
        compiler: what builds the kernels; see `bhemu.cc.choose_compiler`.
        profiled: firmware and kernels of Tensix tiles have tt-metal's device profiler, which its packages for pip ask
            for only when they are built for Tracy.

    Returns:
        The value for TT_METAL_RUNTIME_ROOT.

    Raises:
        MissingTool: no compiler, C library or C++ headers.
        CompileError: the tree is not that of a package, or something does not compile, or the directory cannot be
            written or holds something else.
    """
    package = tree.metal.parent
    linked = package / "runtime" / "hw" / "lib" / "blackhole"
    if not linked.is_dir() or tree.metal.name != "tt_metal":
        raise CompileError(
            f"{package} has no {linked.relative_to(package)}", remedy="use the tree of an installed ttnn package"
        )
    _check(compiler)
    top = Path(directory).resolve()
    objects = top / linked.relative_to(package)
    try:
        _begin(top, package)
        _link_all(package, top, without=("runtime",))
        if isinstance(compiler, Sfpi):
            (top / "runtime").mkdir()
            _link_all(package / "runtime", top / "runtime", without=("sfpi",))
            if profiled:
                _forget_firmware(top)
                _write_profiling(top / "runtime" / "sfpi", compiler)
            else:
                (top / "runtime" / "sfpi").symlink_to(compiler.root)
            return top
        objects.mkdir(parents=True)
        for above in (objects.parent, objects.parent.parent, objects.parent.parent.parent):
            _link_all(package / above.relative_to(top), above, without=("sfpi", "hw", "lib", "blackhole"))
        _link_all(linked, objects, without=tuple(_OBJECTS))
        for part in ("tt_metal/tt-llk/tt_llk_blackhole", "tt_metal/hw/ckernels/blackhole", "ttnn"):
            if (top / part).exists():
                _adapt(top / part)
        if profiled:
            _forget_firmware(top)
    except OSError as error:
        raise CompileError(f"cannot write {error.filename}: {error.strerror}", remedy="name a new directory") from None
    # tt-metal moves kernels, and refuses those with addresses of code in their data.
    options = ("-fno-jump-tables", *(_PROFILE if profiled else ()))
    tools = write_vendor_tools(top / "runtime" / "sfpi", gcc=str(compiler.gcc), options=options)
    driver = tools / "compiler" / "bin" / f"{PREFIX}g++"
    includes = [f"-I{top}", *(f"-I{top / 'tt_metal' / part}" for part in _OBJECT_INCLUDES)]
    for name, source in _OBJECTS.items():
        command = [str(driver), *_OBJECT_OPTIONS, *includes, "-c", "-o", str(objects / name)]
        done = subprocess.run(
            [*command, str(top / "tt_metal" / source)], check=False, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise CompileError(
                f"{source} of {package} does not compile:\n{done.stderr.strip()}",
                remedy="ttnn 0.81.1 is known to work",
            )
    return top


_PROFILE: Final = ("-DPROFILE_KERNEL=1", f"-DPROFILER_FULL_HOST_BUFFER_SIZE_PER_RISC={1 << 26}")
"""What tt-metal defines for its device profiler. The size is that of a buffer in DRAM, which bhemu does not provide."""
_PROFILING: Final = """\
#!/bin/sh
# {name} by bhemu cc: the vendor's, and on Tensix tiles tt-metal's device profiler.
for argument do
    case $argument in
        *ERISC*|*DRISC*) exec {compiler} "$@" ;;
    esac
done
exec {compiler} {options} "$@"
"""


def _write_profiling(directory: Path, compiler: Sfpi) -> None:
    """The vendor's compiler as links, and launchers of its drivers that turn the device profiler on."""
    binaries = compiler.root / "compiler" / "bin"
    drivers = tuple(f"{PREFIX}{name}" for name in ("g++", "c++"))
    for source, target, without in (
        (compiler.root, directory, ("compiler",)),
        (compiler.root / "compiler", directory / "compiler", ("bin",)),
        (binaries, directory / "compiler" / "bin", drivers),
    ):
        target.mkdir()
        _link_all(source, target, without=without)
    for name in drivers:
        text = _PROFILING.format(name=name, compiler=shlex.quote(str(binaries / name)), options=shlex.join(_PROFILE))
        write_program(directory / "compiler" / "bin" / name, text)


def _forget_firmware(top: Path) -> None:
    """The view does not have the package's compiled firmware: it is built with the kernels."""
    _own(top / "tt_metal")
    (top / "tt_metal" / "pre-compiled").unlink(missing_ok=True)


_MARK = ".bhemu-view"
"""File that says that a directory is a view, which may be replaced."""
_ADAPTED = (
    # An unroll count that is not a number, such as a template parameter: the stock compiler wants a number. It is a
    # hint, without effect on results.
    (re.compile(rb"^[ \t]*#pragma GCC unroll[ \t]*\(?[ \t]*[A-Za-z_][^\n]*$", re.MULTILINE), rb""),
    # A constexpr variable made from a parameter that is a reference: allowed since GCC 14 (C++23, P2280). By value it
    # always was, and a callable without state is the same by value.
    (re.compile(rb"\((\w+)&& (\w+)\)(\s*\{\s*constexpr auto \w+ = [^;]*\b\2\b)"), rb"(\1 \2)\3"),
)
"""What the stock compiler does not take in sources, and what the view has instead."""
_SUFFIXES: Final = (".h", ".hpp", ".inl", ".cpp")


def _begin(top: Path, what: Path) -> None:
    """Make the empty directory of a view."""
    if (top / _MARK).is_file():
        shutil.rmtree(top)
    elif top.is_dir() and any(top.iterdir()):
        raise CompileError(f"{top} holds something else", remedy="name a new directory")
    top.mkdir(parents=True, exist_ok=True)
    (top / _MARK).write_text(f"{what}\n")


def _adapt(part: Path) -> None:
    """Give the view its own copies of the sources below `part`, a link, that the stock compiler would not take."""
    source = part.resolve()
    for file in sorted(file for file in source.rglob("*") if file.suffix in _SUFFIXES):
        text = adapted = file.read_bytes()
        for pattern, instead in _ADAPTED:
            adapted = pattern.sub(instead, adapted)
        if adapted != text:
            header = part / file.relative_to(source)
            _own(header.parent)
            header.unlink()
            header.write_bytes(adapted)


def _own(directory: Path) -> None:
    """Make a directory of the view real: a link in its path becomes a directory of links.

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
