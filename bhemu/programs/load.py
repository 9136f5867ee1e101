"""Loading the program that a Python file declares."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

import bhemu.checks as checks
from bhemu.errors import BhemuError, ProgramError
from bhemu.programs.program import Program


def load_program(path: str | Path) -> Program:
    """The program that a Python file declares.

    Raises:
        ProgramError: the file is missing, fails, or declares no program with three threads.
    """
    source = checks.path(path)
    if not source.is_file():
        raise ProgramError(f"{source}: no such file", remedy="name a Python file that declares a bhemu.Program")
    name = f"bhemu_program_{source.stem}"
    absolute = source.absolute()  # as code objects name it, so that lines of the program are found in tracebacks
    spec = importlib.util.spec_from_file_location(name, absolute)
    if spec is None or spec.loader is None:
        raise ProgramError(f"{source} is not a Python file", remedy="a program's name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(source.resolve().parent)
    sys.path.insert(0, folder)  # as Python itself does for a script, so that it may import its neighbours
    try:
        spec.loader.exec_module(module)
    except BhemuError as error:
        error.file, error.line = absolute, error.line or _line_of(error, absolute)
        raise
    except SyntaxError as error:
        failure = ProgramError(f"{error.msg}: {(error.text or '').strip()}", remedy="fix the syntax")
        failure.file, failure.line = Path(error.filename or absolute), error.lineno
        raise failure from None
    except Exception as error:
        failure = ProgramError(f"{type(error).__name__}: {error}", remedy="fix the program")
        failure.file, failure.line = absolute, _line_of(error, absolute)
        raise failure from None
    finally:
        sys.path.remove(folder)
    programs = [value for value in vars(module).values() if isinstance(value, Program)]
    if len(programs) != 1:
        raise ProgramError(
            f"{source} declares {len(programs)} programs", remedy="declare one: program = bhemu.Program('title')"
        )
    program = programs[0]
    program.path = absolute
    missing = [n for n, f in zip(("unpack", "math", "pack"), program.threads, strict=True) if f is None]
    if missing:
        raise ProgramError(
            f"{source}: no function for thread {', '.join(missing)}", remedy=f"decorate one with @program.{missing[0]}"
        )
    return program


def _line_of(error: BaseException, path: Path) -> int | None:
    """The innermost line of the program in the error's traceback."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return lines[-1] if lines else None
