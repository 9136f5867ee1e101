"""All entries as object files, compiled on all processors, with what else a library of them needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Final

from bhemu.capi.image import Machine, describe_machine
from bhemu.cluster.topology import ALONE_TOPOLOGY, Topology
from bhemu.isa.instructions import BY_OPCODE
from bhemu.machine.compiler import Objects, collect, module_stamp, on_compile, package_path
from bhemu.machine.dispatch import (
    ADVANCE_TILE,
    DEVICE_LOAD,
    DEVICE_STORE,
    ETHERNET_LOAD,
    ETHERNET_STORE,
    NOC_START,
    RUN_CORE,
    RUN_TURNS,
    SLOW_CORE,
    VECTOR_CORE,
)
from bhemu.machine.processes import end_with_parent
from bhemu.riscv.translator import translate_function
from bhemu.tensix import units
from bhemu.tensix.instruction import HANDLERS

assert units

CLOCK: Final = -1
_SCHEDULE: Final = -2
_RECORDED: Final = -3
_CHIP: Final = -4
_MACHINE: Final = -5
_TRANSLATOR: Final = -6
_CLUSTER: Final = -7
_TIMED_CHIP: Final = -8
_TIMED_TILE: Final = -9
_TIMED_CLUSTER: Final = -10
_COUNTED: Final = -11
_PARTS: Final = {
    -DEVICE_STORE: "the registers that cores store to",
    -DEVICE_LOAD: "the registers that cores load",
    -RUN_TURNS: "the cores' turns",
    -ETHERNET_STORE: "the registers that cores of Ethernet tiles store to",
    -ETHERNET_LOAD: "the registers that they load",
    -NOC_START: "the network interfaces",
    -RUN_CORE: "the RISC-V cores",
    -SLOW_CORE: "their other instructions",
    -VECTOR_CORE: "vector instructions of core T2",
    _RECORDED: "the recorder of cores",
    _CHIP: "the chip's clock",
    _CLUSTER: "the clock of several chips",
    _COUNTED: "the recorder that counts",
    -ADVANCE_TILE: "the schedule of a tile",
    _TIMED_TILE: "the schedule of a timed tile",
    _TIMED_CHIP: "the clock of a timed chip",
    _TIMED_CLUSTER: "the clock of several timed chips",
    _TRANSLATOR: "the translator of code of the cores",
    _SCHEDULE: "the schedule",
    CLOCK: "the clock",
    _MACHINE: "a chip after reset",
}
"""What is compiled beside the handlers; the longest first, and the chip after reset last: it only names entries."""


@dataclass
class Parts:
    """What a library is made of.

    Attributes:
        objects: entries.
        places: keys of the entries in the table of handlers, by place (machine/dispatch.py).
        machine: a chip after reset, and tables; None when something failed.
        compiled: how many parts the cache did not have.
        failed: a line about each part that could not be compiled.
    """

    objects: Objects = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    machine: Machine | None = None
    compiled: int = 0
    failed: list[str] = field(default_factory=list)


Told = Callable[[str, int], None]
"""Called with the name of a part that is done, and how many there are."""


@contextmanager
def _processor(name: str | None) -> Iterator[None]:
    """Child processes compile for a processor, not for that of this machine."""
    before = {variable: os.environ.get(variable) for variable in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")}
    if name is not None:
        os.environ.update(NUMBA_CPU_NAME=name, NUMBA_CPU_FEATURES="")
    try:
        yield
    finally:
        for variable, text in before.items():
            if text is None:
                os.environ.pop(variable, None)
            else:
                os.environ[variable] = text


def compile_all(
    jobs: int | None = None,
    told: Told | None = None,
    processor: str | None = None,
    topology: Topology = ALONE_TOPOLOGY,
) -> Parts:
    """Compile everything, or fetch it from the cache.

    Args:
        jobs: processes; as many as there are processors by default.
        told: hears of each part.
        processor: LLVM's name of what to compile for; by default this machine's.
        topology: the chips after reset.
    """
    todo: list[int] = [*_PARTS, *sorted(HANDLERS)]
    parts = Parts()
    for module in (
        "tensix/units.py",
        "chip/clock/clocks.py",
        "recording/core_recorder.py",
        "recording/recorder.py",
        "counting/chip.py",
        "timed/chip.py",
        "timed/cluster_clock.py",
    ):
        module_stamp(package_path() / module)  # finds out here what modules say: the children do not live to keep it
    with (
        _processor(processor),
        ProcessPoolExecutor(
            min(jobs or os.cpu_count() or 1, len(todo)), get_context("spawn"), initializer=end_with_parent
        ) as pool,
    ):
        waiting = {pool.submit(compile_part, part, topology): part for part in todo}
        for done in as_completed(waiting):
            compiled = waiting[done]
            row = BY_OPCODE[compiled] if compiled >= 0 else None
            name = row.mnemonic if row else _PARTS[compiled]
            if told is not None:
                told(name, len(todo))
            error = done.exception()
            if error is not None:
                parts.failed.append(f"{name}: {type(error).__name__}: {error}")
                continue
            result = done.result()
            parts.objects |= result.objects
            parts.places |= result.places
            parts.machine = result.machine or parts.machine
            parts.compiled += result.compiled
    return parts


def compile_part(part: int, topology: Topology = ALONE_TOPOLOGY) -> Parts:
    """Compile the handler of an opcode, or what a negative number selects; `topology` is that of the chips."""
    from bhemu.api.tile import Tile
    from bhemu.chip.entries import ensure_chip_entries
    from bhemu.cluster.clocks import ensure_cluster_entries
    from bhemu.counting.chip import counting_chip
    from bhemu.counting.recorder import counting
    from bhemu.recording import Recorder
    from bhemu.recording.core_counts import taking
    from bhemu.recording.core_recorder import CoreRecorder
    from bhemu.recording.row_code import coding
    from bhemu.tensix.coprocessor import ensure_handlers, ensure_place, keys
    from bhemu.tile.cores import ensure_entries
    from bhemu.timed.chip import timed_clock
    from bhemu.timed.cluster_clock import timed_cluster_entries
    from bhemu.timed.observer import timed_entry

    parts = Parts()

    def count(name: str) -> None:
        parts.compiled = 1

    on_compile(count)
    collect(parts.objects, compiles=part != _MACHINE)
    if part == CLOCK:
        Recorder().attach(Tile())  # compiles the plain clock too
    elif part == _RECORDED:
        CoreRecorder().attach(Tile(), {})
        coding()
        taking()
    elif part == _COUNTED:
        counting()
        counting_chip()
    elif part == _TRANSLATOR:
        translate_function()
    elif part == _SCHEDULE:
        ensure_entries()
    elif part == _CHIP:
        ensure_chip_entries()
    elif part == _CLUSTER:
        ensure_cluster_entries()
    elif part == _TIMED_TILE:
        timed_entry()
    elif part == _TIMED_CHIP:
        timed_clock()
    elif part == _TIMED_CLUSTER:
        timed_cluster_entries()
    elif part == _MACHINE:
        parts.machine = describe_machine(topology)
        return parts  # the entries that it has named are other parts, which come before it
    elif part < 0:
        ensure_place(-part)
    else:
        ensure_handlers([part])
    parts.places = keys()
    return parts
