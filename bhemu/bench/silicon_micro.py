"""Running the series of `core_microbench_blackhole.csv` on a tile in timed mode."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.bench.silicon_programs import probe, program
from bhemu.errors import BhemuError
from bhemu.loader.boot import ALL_HELD, SOFT_RESET
from bhemu.machine.agents import CORE_NAMES, T0
from bhemu.machine.core_state import HALTED
from bhemu.machine.state import THREADS
from bhemu.tensix.banks import MATRIX
from bhemu.tile.reset import CORE_BIT
from bhemu.timed import SiliconTime

_CODE: Final = 0x10000
_CODE_BYTES: Final = 0x8000
_RESULTS: Final = 0x40000
_RESULT_BYTES: Final = 0x1000
_SCRATCH: Final = 0x60000
_RING_BYTES: Final = 1024
_CHUNK: Final = 1 << 20
_MOST_CLOCKS: Final = 1 << 26


class NotReproduced(BhemuError):
    """A series that cannot be run, with the reason."""


_ALONE: Final = 1
"""The thread that a series of one thread runs on: math."""


def _run(phase: str, name: str, unroll: int, threads: int, counts: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """Cycles of each point, by thread."""
    tile = Tile()
    record = tile.record
    held = ALL_HELD
    for thread in (_ALONE,) if threads == 1 else range(threads):
        scratch = _SCRATCH + _RING_BYTES * thread
        one = probe(phase, name, unroll, scratch)
        if one is None:
            raise NotReproduced(f"the program of probe {name} is not known")
        if one.solo and thread != _ALONE:
            continue
        results = _RESULTS + _RESULT_BYTES * thread
        words = np.array(program(one, counts, results), np.uint32)
        code = _CODE + _CODE_BYTES * thread
        if 4 * len(words) > _CODE_BYTES:
            raise NotReproduced(f"the program of probe {name} is too long")
        record.l1_u32[code >> 2 : (code >> 2) + len(words)] = words
        table = (results >> 2) + len(counts)
        record.l1_u32[table : table + len(counts)] = counts
        if one.ring:
            places = np.arange(scratch, scratch + _RING_BYTES, 16)
            record.l1_u32[places >> 2] = np.roll(places, -1)
        if one.banks:
            record.src_owner[:] = MATRIX
        held &= ~(1 << int(CORE_BIT[T0 + thread]))
    SiliconTime().attach(tile)
    tile.cores.store(SOFT_RESET, held)
    running = [t for t in range(THREADS) if not held >> int(CORE_BIT[T0 + t]) & 1]
    for thread in running:
        record.core_pc[T0 + thread] = _CODE + _CODE_BYTES * thread
    while any(record.core_state[T0 + t] != HALTED for t in running):
        tile.clock(_CHUNK)
        if record.clock > _MOST_CLOCKS:
            raise NotReproduced(f"probe {name} does not end; core {CORE_NAMES[T0]} is {tile.cores[T0].state}")
    first = {thread: (_RESULTS + _RESULT_BYTES * thread) >> 2 for thread in running}
    return {thread: tuple(int(v) for v in record.l1_u32[at : at + len(counts)]) for thread, at in first.items()}


@functools.lru_cache(maxsize=4096)
def _known(
    phase: str, name: str, unroll: int, threads: int, counts: tuple[int, ...]
) -> dict[int, tuple[int, ...]] | str:
    try:
        return _run(phase, name, unroll, threads, counts)
    except BhemuError as error:
        return str(error).splitlines()[0]


def measure(phase: str, name: str, unroll: int, threads: int, thread: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Cycles of each point of a series, estimated by running it.

    Args:
        phase, name, unroll, threads, thread: columns of the file; threads count from 0.
        counts: of the points.

    Raises:
        NotReproduced: it cannot be run.
    """
    # An empty loop was measured when its few instructions had been executed before.
    warm = 1 if name == "loop_overhead" else 0
    found = _known(phase, name, unroll, threads, (*counts[:warm], *counts))
    if isinstance(found, str):
        raise NotReproduced(found)
    thread = _ALONE if threads == 1 else thread
    if thread not in found:
        raise NotReproduced(f"probe {name} does not run on thread {thread}")
    return found[thread][warm:]


def slope(counts: Sequence[int], cycles: Sequence[float]) -> float:
    """Cycles of a further block: the straight line with the least squares through the points."""
    return float(np.polyfit(np.array(counts, float), np.array(cycles, float), 1)[0])
