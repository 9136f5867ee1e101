"""One shared library of all compiled entries and the C runtime: what clients load, and Python itself."""

from __future__ import annotations

import hashlib
import os
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Final

from bhemu.capi import machine_text, settings, slots
from bhemu.capi.compiler import c_compiler, run_compiler
from bhemu.capi.objects import Parts, Told, compile_all
from bhemu.cluster.topology import ALONE_TOPOLOGY, Topology
from bhemu.errors import ProgramError
from bhemu.machine.codegen import toolchain
from bhemu.machine.compiler import package_path
from bhemu.machine.linked import keep_library, library_made_of

_SOURCES: Final = (
    "interface.c",
    "simulator.c",
    "helpers.c",
    "counters.c",
    "end_report.c",
    "fresh_pages.c",
    "parts.c",
    "links.c",
    "lock.c",
    "pace.c",
    "pages.c",
    "processor.c",
    "settings.c",
    "stillness.c",
    "windows.c",
    "explain.c",
    "remote.c",
    "remote_server.c",
    "channel.c",
    "common.c",
    "python_stubs.c",
)
_EXPORTED: Final = "{ global: libttsim_*; bhemu_*; local: *; };\n"


def package_stamp(compiler: list[str]) -> bytes:
    """Hash of all that a library is made of, beside what `toolchain` names."""
    digest = hashlib.sha256(repr(compiler).encode())
    root = package_path()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".c", ".h", ".toml", ".tsv") and path.is_file():
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.digest()


def library(
    told: Told | None = None,
    jobs: int | None = None,
    processor: str | None = None,
    topology: Topology = ALONE_TOPOLOGY,
) -> bytes:
    """The library's content; what the cache does not have is compiled.

    Args:
        told: hears of each part that is done.
        jobs: processes that compile.
        processor: one of `machine_text.BASELINES`; by default this machine's.
        topology: the chips that it has.

    Raises:
        ProgramError: there is no C compiler, or something cannot be compiled.
    """
    compiler = c_compiler()
    is_kept = processor is None and topology == ALONE_TOPOLOGY
    if is_kept:
        known = library_made_of(toolchain(), package_stamp(compiler))
        if known is not None:
            return known
    parts = compile_all(jobs, told, processor, topology)
    if parts.failed:
        raise ProgramError("\n".join(parts.failed), remedy="`bhemu warm` compiles again")
    return keep_linked(parts, compiler) if is_kept else link(parts, compiler, processor)


def keep_linked(parts: Parts, compiler: list[str]) -> bytes:
    """Link a library for this machine, and put it into the cache, if it is not there; returns its content.

    Raises:
        ProgramError: see `link`.
    """
    made_of = package_stamp(compiler)
    known = library_made_of(toolchain(), made_of)
    if known is not None:
        return known
    content = link(parts, compiler)
    if not os.environ.get("CC"):  # Python itself loads what is kept: nothing that has options of the user's
        keep_library(toolchain(), content, made_of)
    return content


def link(parts: Parts, compiler: list[str], processor: str | None = None) -> bytes:
    """Link parts and runtime.

    Raises:
        ProgramError: the C compiler fails, or there is no room for its files.
    """
    here = Path(__file__).parent
    try:
        with tempfile.TemporaryDirectory(prefix="bhemu-") as name:
            work = Path(name)
            objects = []
            for number, (_, content) in enumerate(parts.objects.values()):
                objects.append(work / f"{number}.o")
                objects[-1].write_bytes(content)
            (work / "machine.h").write_text(machine_text.header(parts, metadata.version("bhemu")))
            (work / "machine.c").write_text(machine_text.source(parts, processor))
            (work / "settings_table.h").write_text(settings.header())
            (work / "slots.h").write_text(slots.header())
            (work / "functions.c").write_text(slots.source())
            (work / "exported").write_text(_EXPORTED)
            made = work / "library.so"
            run_compiler(
                [
                    *(*compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
                    *(f"-I{work}", f"-I{here}"),
                    *(str(here / source) for source in _SOURCES),
                    *(str(work / "machine.c"), str(work / "functions.c")),
                    *(str(path) for path in objects),
                    *("-lm", "-ldl", "-pthread", f"-Wl,--version-script={work / 'exported'}", "-Wl,-Bsymbolic"),
                    # tt-umd unloads it, and its threads may still run its code.
                    *("-Wl,-z,nodelete", "-Wl,-z,defs", "-Wl,-s", "-o", str(made)),
                ],
                made,
            )
            return made.read_bytes()
    except OSError as error:
        raise ProgramError(
            f"the library cannot be linked in {tempfile.gettempdir()}: {error.strerror}",
            remedy="make room there, or let TMPDIR name another directory",
        ) from None
