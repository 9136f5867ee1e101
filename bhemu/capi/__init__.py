"""A library with the C interface of the official simulator, behind which bhemu runs (tile H1 to H3)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bhemu.capi.c_text import c_string
from bhemu.capi.cluster_descriptor import NAME as CLUSTER
from bhemu.capi.cluster_descriptor import cluster_descriptor
from bhemu.capi.compiler import c_compiler, make_directory, run_compiler
from bhemu.capi.soc_descriptor import NAME as DESCRIPTION
from bhemu.capi.soc_descriptor import soc_descriptor
from bhemu.errors import ProgramError
from bhemu.files import write_all

NAME: Final = "libttsim_bh.so"


def build(
    directory: Path,
    *,
    ethernet: bool = True,
    processor: str | None = None,
    chips: str | Path | None = None,
    told: Callable[[str, int], None] | None = None,
) -> Path:
    """Put the library and the description of the chip into a directory; returns the library's path.

    Machine code that the cache does not have is compiled, which may take minutes. A process that uses an older library
    of the same name is not disturbed.

    Args:
        directory: made when it is not there.
        ethernet: see `soc_descriptor`.
        processor: a baseline (`machine_text.BASELINES`), for other machines; by default this machine's own processor.
        chips: a system of several chips, as `bhemu.Cluster` takes it; by default there is one.
        told: called with the name of each part that has been compiled, and how many there are.

    Raises:
        ProgramError: there is no C compiler, or it fails, or the directory cannot be written.
        ConfigurationError: the description of the system is wrong.
    """
    from bhemu.capi.linking import library
    from bhemu.cluster.topology import ALONE_TOPOLOGY, load_topology

    topology = ALONE_TOPOLOGY if chips is None else load_topology(chips)
    make_directory(directory)
    content = library(told, processor=processor, topology=topology)
    described = soc_descriptor(ethernet=ethernet, python=processor is None)
    target = directory / NAME
    try:
        files = {target: content, directory / DESCRIPTION: described.encode()}
        if len(topology.chips) > 1:
            files[directory / CLUSTER] = cluster_descriptor(topology).encode()
        write_all(files)
    except OSError as error:
        raise ProgramError(
            f"cannot write {error.filename}: {error.strerror}",
            remedy="move away what has this name, or name another place",
        ) from None
    return target


def build_recorder(directory: Path, library: Path) -> Path:
    """Compile a library that passes calls on to another one and writes them down; returns its path.

    Args:
        directory: made when it is not there.
        library: with the simulator's interface, bhemu's own or another.

    Raises:
        ProgramError: there is no C compiler, or it fails, or the directory cannot be written, or is the library's.
    """
    other, target = library.resolve(), directory / NAME
    if other == target.resolve():
        raise ProgramError(f"{library} would be overwritten by its own recorder", remedy="choose another directory")
    compiler = c_compiler()
    make_directory(directory)
    with tempfile.TemporaryDirectory(dir=directory) as work:
        made = Path(work) / NAME
        run_compiler(
            [
                *(*compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra"),
                str(Path(__file__).with_name("recorder.c")),
                f"-DBHEMU_TARGET={c_string(str(other))}",
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
    command = [*c_compiler(), "-O2", "-Wall", "-Wextra", "-o", str(target), str(source), "-ldl"]
    run_compiler(command, target, source.name)
