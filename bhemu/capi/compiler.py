"""The machine's C compiler, which makes the C library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from bhemu.errors import ProgramError


def c_compiler() -> list[str]:
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


def make_directory(directory: Path) -> None:
    """Make a directory, if it is not there.

    Raises:
        ProgramError: nothing can be written into it.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise ProgramError(
            f"cannot write into {directory}: {error.strerror}", remedy="choose a directory that you may write"
        ) from None


def run_compiler(command: list[str], made: Path, what: str = "the library") -> None:
    """Run a C compiler, which makes a file.

    Args:
        command: and its arguments.
        made: the file.
        what: is compiled, for messages.

    Raises:
        ProgramError: it fails.
    """
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
