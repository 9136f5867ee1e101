"""What the clients need: an environment with the unmodified packages, the C library, a RISC-V program with lines."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bhemu.capi import build
from bhemu.capi.soc_descriptor import write_soc_descriptor
from bhemu.machine.cache import cache_directory
from tests.c_programs import compiler_or_skip
from tests.processes import finished

PACKAGES = ("tt-exalens==0.4.2", "tt-umd==0.9.14")
COMPILER = "riscv64-unknown-elf-gcc"
PROGRAM = Path(__file__).with_name("program.c")
LINKER_SCRIPT = """
ENTRY(_start)
SECTIONS { . = 0; .init : { *(.init) } .text : { *(.text*) } .data : { *(.data*) *(.rodata*) } .bss : { *(.bss*) } }
"""
PRELUDE = """
import os
import ttexalens.tt_exalens_lib as lib
from ttexalens.coordinate import OnChipCoordinate
from ttexalens.tt_exalens_init import init_ttexalens
context = init_ttexalens(simulation_directory=os.environ["TT_METAL_SIMULATOR"])
device = context.devices[0]
core = OnChipCoordinate.create("0,0", device)
brisc = core.noc_block.get_risc_debug("brisc")
def pass_clocks(count):
    for _ in range(count):
        lib.read_word_from_device(core, 0, context=context)
def command(line):
    # of the prompt, in this process
    from ttexalens.cli import import_commands
    from ttexalens.uistate import UIState
    if not context.commands:
        context.assign_commands(import_commands())
    name = line.split()[0]
    found = next(known for known in context.commands if name in (known.short_name, known.long_name))
    print("Executing command: " + line)
    found._module.run(line, context, UIState(context))
"""


@pytest.fixture(scope="session")
def install() -> Callable[..., Path]:
    """`install(what, base, *packages)` -> Python of an environment of a Python with packages, made once."""

    def make(what: str, base: str | Path, *packages: str) -> Path:
        version = subprocess.run([base, "-VV"], check=True, capture_output=True, text=True).stdout
        name = hashlib.sha256("\n".join([str(base), version, *packages]).encode()).hexdigest()[:12]
        place = cache_directory() / "clients" / f"venv-{name}"
        binary, stamp = place / "bin" / "python", place / "installed"
        if not stamp.is_file():
            shutil.rmtree(place, ignore_errors=True)
            pip = [str(binary), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
            for command in ([str(base), "-m", "venv", str(place)], pip):
                done = subprocess.run(command, check=False, capture_output=True, text=True)
                if done.returncode:
                    said = done.stderr.strip().splitlines()
                    pytest.skip(f"{what} IS NOT TESTED: pip cannot install it: {said[-1] if said else done.returncode}")
            stamp.touch()
        return binary

    return make


@pytest.fixture(scope="session")
def python(install: Callable[..., Path]) -> Path:
    """Python of an environment with the clients alone; bhemu's own packages come from where bhemu runs."""
    return install("TT-EXALENS", sys.executable, *PACKAGES)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler_or_skip("TT-EXALENS IS NOT TESTED")
    made = build(tmp_path_factory.mktemp("simulator"))
    write_soc_descriptor(made.parent)
    return made


@pytest.fixture(scope="session")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose core B ends in a loop inside `count`, called by `outer`, called by `main`."""
    if shutil.which(COMPILER) is None:
        pytest.skip(f"RUN-ELF, CALLSTACK AND GDB ARE NOT TESTED: there is no {COMPILER}")
    work = tmp_path_factory.mktemp("program")
    (work / "script.ld").write_text(LINKER_SCRIPT)
    shutil.copy(PROGRAM, work)
    # tt-exalens loses its way behind a leaf function with a frame pointer: it looks for the caller's where the leaf
    # would have saved it if it had the caller's layout.
    command = [COMPILER, "-march=rv32im", "-mabi=ilp32", "-g", "-O0", "-fomit-frame-pointer", "-nostdlib"]
    command += ["-nostartfiles", "-T", "script.ld", PROGRAM.name, "-o", "program.elf"]
    subprocess.run(command, cwd=work, check=True)
    return work / "program.elf"


def environment(library: Path) -> dict[str, str]:
    """Of a client: nothing of bhemu's own settings, but for the place of its cache."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("BHEMU_", "TTSIM_", "PYTHON"))}
    if "BHEMU_CACHE" in os.environ:
        clean["BHEMU_CACHE"] = os.environ["BHEMU_CACHE"]
    return clean | {"TT_METAL_SIMULATOR": str(library), "COLUMNS": "200", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def run_client(library: Path) -> Callable[..., str]:
    """`run_client(command, status=0)` -> output of a client that has to end with that status."""

    def run(command: list[str], status: int = 0) -> str:
        done = finished(command, env=environment(library), cwd=library.parent)
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
        assert status or "ERROR" not in done.stdout, done.stdout[-4000:]
        return done.stdout

    return run


@pytest.fixture
def commands(python: Path, library: Path, run_client: Callable[..., str]) -> Callable[..., list[str]]:
    """`commands("device", "riscv status")` -> output of each, from one run of tt-exalens."""

    def run(*lines: str, options: tuple[str, ...] = ()) -> list[str]:
        exalens = [str(python.with_name("tt-exalens")), "-s", str(library), *options, "--test"]
        out = run_client([*exalens, "--commands", "; ".join([*lines, "x"])])
        parts = out.split("Executing command: ")[1:-1]
        assert len(parts) == len(lines), out
        return [part.partition("\n")[2] for part in parts]

    return run


@pytest.fixture
def script(python: Path, run_client: Callable[..., str]) -> Callable[[str], str]:
    """Run Python text behind PRELUDE in the clients' environment; returns its output."""
    return lambda text: run_client([str(python), "-c", PRELUDE + text])
