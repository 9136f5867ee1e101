"""Call streams of ttnn for `bhemu bench --client`: recorded from the unmodified package, where pip can install it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bhemu.capi import build_recorder
from bhemu.capi.soc_descriptor import write_soc_descriptor
from bhemu.cc import choose_compiler, find_llk, write_metal_root
from bhemu.compare.trace import read_trace, write_trace
from bhemu.errors import ProgramError
from bhemu.machine.cache import cache_directory

PACKAGE: Final = "ttnn==0.81.1"
PYTHON: Final = "3.10"
"""The only one that there is a wheel for."""
PROGRAMS: Final = (
    *("open", "add", "exp2", "softmax", "embedding", "conv2d", "max_pool2d"),
    *("matmul256", "matmul512", "matmul1024", "matmul110"),
)
"""Names in ttnn_program.py."""
DISPATCH: Final = ("slow", "fast")
"""Programs are dispatched by the host, or by Tensix tiles that read the host's memory."""
ROOT: Final = "TT_METAL_RUNTIME_ROOT"
_PROGRAM: Final = Path(__file__).with_name("ttnn_program.py")
_LONGEST: Final = 1800.0
"""Seconds that a program may take, with its kernels compiled."""


@dataclass(frozen=True)
class Made:
    """What became of one stream.

    Attributes:
        name: of the stream.
        calls: in it; 0 when there is none.
        skipped: why there is none.
    """

    name: str
    calls: int
    skipped: str = ""


def make_streams(
    directory: Path, library: Path, *, python: Path | None = None, only: Sequence[str] = ()
) -> Iterator[Made]:
    """Record programs of ttnn on a library; files are named after them.

    Args:
        directory: made when it is not there.
        library: the simulator that the programs run on.
        python: of an environment with ttnn; None: one is made in bhemu's cache directory, with pip.
        only: names of streams, or their beginnings; none means all.

    Raises:
        ProgramError: ttnn cannot be had, or the directory cannot be written.
    """
    names = [f"ttnn-{dispatch}-{program}" for dispatch in DISPATCH for program in PROGRAMS]
    chosen = [name for name in names if not only or any(name.startswith(part) for part in only)]
    if not chosen:
        raise ProgramError("no stream has such a name", remedy=f"there are {', '.join(names)}")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ProgramError(f"cannot write {directory}: {error.strerror}", remedy="name another directory") from None
    interpreter = python or ttnn_python()
    with tempfile.TemporaryDirectory(prefix="bhemu-streams-") as folder:
        work = Path(folder)
        recorder = build_recorder(work / "recorder", library)
        write_soc_descriptor(recorder.parent, ethernet=False)
        environment = _environment(interpreter, recorder, work)
        for name in chosen:
            yield _record(name, interpreter, environment, work, directory)


def _record(name: str, python: Path, environment: dict[str, str], work: Path, directory: Path) -> Made:
    _, dispatch, program = name.split("-")
    trace = work / "trace.jsonl"
    settings = {"BHEMU_TRACE": str(trace)} | ({"TT_METAL_SLOW_DISPATCH_MODE": "1"} if dispatch == "slow" else {})
    try:
        done = subprocess.run(
            [python, str(_PROGRAM), program],
            env=environment | settings,
            cwd=work,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Made(name, 0, f"the program does not end within {_LONGEST:g} s")
    if done.returncode or "\ndone\n" not in f"\n{done.stdout}":
        return Made(name, 0, _why(done.stdout + "\n" + done.stderr) or f"it ended with status {done.returncode}")
    calls = read_trace(trace)
    write_trace(directory / f"{name}.jsonl.xz", calls)
    return Made(name, len(calls))


def _why(output: str) -> str:
    """The line of a failed program that says most."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if " ERROR: " in line or "rror:" in line or "is wrong by" in line]
    return (telling or lines or [""])[-1][:300]


def _environment(python: Path, recorder: Path, work: Path) -> dict[str, str]:
    """Of a ttnn program. Kernels are compiled from TT_METAL_RUNTIME_ROOT if that is set, else by `bhemu cc`.

    The official simulator refuses SFPLOADMACRO, so kernels are built without it: the streams run on both.
    """
    of_others = ("BHEMU_", "TTSIM_", "TT_", "PYTHON")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(of_others)}
    kept = {name: os.environ[name] for name in ("BHEMU_CACHE", "BHEMU_THREADS") if name in os.environ}
    root = os.environ.get(ROOT)
    if root is None:
        packages = list(python.parents[1].glob("lib/python*/site-packages/ttnn"))
        if not packages:
            raise ProgramError(f"{python} has no ttnn", remedy=f"install {PACKAGE} for it, or let bhemu do it")
        root = str(write_metal_root(work / "metal", find_llk(packages[0]), choose_compiler()))
    return (
        clean
        | kept
        | {
            "TT_METAL_SIMULATOR": str(recorder),
            ROOT: root,
            "TT_METAL_CACHE": os.environ.get("TT_METAL_CACHE") or str(work / "kernels"),
            "TT_METAL_LOGGER_LEVEL": "FATAL",
            "TT_METAL_DISABLE_SFPLOADMACRO": "1",
        }
    )


def ttnn_python() -> Path:
    """Python of an environment with ttnn in bhemu's cache directory, made once.

    Raises:
        ProgramError: there is no such Python, or pip cannot install the package.
    """
    base = next(iter(_pythons()), None)
    if base is None:
        raise ProgramError(
            f"ttnn needs Python {PYTHON}, which this machine does not have", remedy="install it, or give --python"
        )
    place = cache_directory() / "clients" / PACKAGE.replace("==", "-")
    python, stamp = place / "bin" / "python", place / "installed"
    if not stamp.is_file():
        shutil.rmtree(place, ignore_errors=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
        for command in ([str(base), "-m", "venv", str(place)], pip):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                said = done.stderr.strip().splitlines()
                raise ProgramError(
                    f"{PACKAGE} cannot be installed: {said[-1] if said else f'status {done.returncode}'}",
                    remedy="see whether pip reaches its index, or name with --python an environment that has it",
                )
        stamp.touch()
    return python


def _pythons() -> list[Path]:
    """Pythons of the wanted version that run."""
    name = f"python{PYTHON}"
    found = [Path(path)] if (path := shutil.which(name)) else []
    found += sorted(Path.home().glob(f".pyenv/versions/{PYTHON}.*/bin/{name}"))
    return [
        path for path in found if subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode == 0
    ]
