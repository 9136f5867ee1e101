"""A library with the C interface of the official simulator, behind which bhemu runs (tile H1 to H3)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Final

from bhemu.capi.slots import header
from bhemu.errors import ProgramError

NAME: Final = "libttsim_bh.so"
_SHIM: Final = ("shim.c", "remote.c", "remote_server.c", "channel.c", "common.c")
_RECORDER: Final = ("recorder.c",)
_PACKAGE: Final = Path(__file__).resolve().parents[1]


def shared_python() -> str:
    """Path of libpython, or empty when this Python was built without one."""
    name = sysconfig.get_config_var("INSTSONAME") or ""
    path = Path(sysconfig.get_config_var("LIBDIR") or "") / name
    return str(path) if ".so" in name and path.exists() else ""


def _text(value: str) -> str:
    """A C string."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _compiler() -> list[str]:
    """The C compiler's command: what CC says, options included, or a usual one.

    Raises:
        ProgramError: there is none.
    """
    setting = os.environ.get("CC", "")
    try:
        wanted = shlex.split(setting)
    except ValueError as error:
        raise ProgramError(f"CC is {setting!r}: {error}", remedy="set it to a compiler's name and options") from None
    if not wanted:
        for name in ("cc", "gcc", "clang"):
            path = shutil.which(name)
            if path:
                return [path]
        raise ProgramError("there is no C compiler", remedy="install one: on Debian, `apt install gcc libc6-dev`")
    path = shutil.which(wanted[0])
    if path is None:
        raise ProgramError(
            f"CC names {wanted[0]!r}, which is not a program on this machine",
            remedy="set CC to a C compiler, or not at all to have cc, gcc or clang taken",
        )
    return [path, *wanted[1:]]


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
        BHEMU_LIBPYTHON=_text(shared_python()),
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


def _compile(sources: tuple[str, ...], directory: Path, **defined: str) -> Path:
    """Compile files of this package into the library of a directory."""
    compiler = _compiler()
    _make_directory(directory)
    target = directory / NAME
    with tempfile.TemporaryDirectory(dir=directory) as work:
        made = Path(work) / NAME
        (Path(work) / "slots.h").write_text(header())
        _run_compiler(
            [
                *(*compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
                *(str(Path(__file__).with_name(source)) for source in sources),
                f"-I{work}",
                *(f"-D{name}={value}" for name, value in defined.items()),
                # tt-umd unloads it, and one of its threads may still run its code.
                *("-ldl", "-pthread", "-Wl,-z,nodelete", "-o", str(made)),
            ],
            made,
        )
        try:
            made.replace(target)
        except OSError as error:
            raise ProgramError(
                f"cannot write {target}: {error.strerror}", remedy="move away what has this name, or name another place"
            ) from None
    return target


def compile_program(source: Path, target: Path) -> None:
    """Compile a C file into a program, with the compiler of the library.

    Raises:
        ProgramError: there is no C compiler, or it fails.
    """
    _run_compiler(
        [*_compiler(), "-O2", "-Wall", "-Wextra", "-o", str(target), str(source), "-ldl"], target, source.name
    )


def _run_compiler(command: list[str], made: Path, what: str = "the library") -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise ProgramError(
            f"the C compiler {command[0]} cannot be started: {error.strerror}", remedy="set CC to another compiler"
        ) from None
    if done.returncode or not made.is_file():
        said = done.stderr.strip() or done.stdout.strip() or f"it ended with status {done.returncode} and made no file"
        lines = [f"{command[0]} cannot compile {what}:", *(f"  {line}" for line in said.splitlines()[:20])]
        raise ProgramError(
            "\n".join(lines),
            remedy="install a compiler with the headers of the C library (on Debian, `apt install gcc libc6-dev`), or "
            "set CC to another one",
        )
