"""Cores that run and yet cannot get anywhere: they poll words that nothing on the chip can change.

A core that polls L1 sleeps (riscv/poll.py). One that polls a counter of a NoC interface does not: it runs, and a run
with such cores alone would go on to its limit. NoC requests are carried out when they are started (tile N26), so a
counter changes only when a core or thread somewhere does more than poll. A copy of the tile is run for a few rounds: a
core whose registers and pc come back to earlier values, after nothing but arithmetic, branches and loads of such words,
loops forever unless another agent changes one of them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.api.tile import Snapshot, Tile
from bhemu.isa.memory_map import region
from bhemu.isa.riscv import find, immediate
from bhemu.isa.tile_registers import address_of, tile_register
from bhemu.machine.agents import CORES, T0, T2
from bhemu.machine.core_state import ASLEEP, LOCAL_RAM_SIZE, RUNNING
from bhemu.machine.state import L1_SIZE, TILE

LONGEST_LOOP: Final = 64
"""Rounds that are looked at."""
_ARITHMETIC: Final = ("R", "I", "U", "shift", "unary", "B", "J", "jalr", "fence")
"""Layouts of instructions that change registers and pc alone."""
_LOCAL: Final = region("local_ram").base
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
_NIUS: Final = (region("niu0"), region("niu1"))
_NIU_END: Final = address_of("niu", "FURTHER") - region("niu0").base
"""Loads of a NoC interface's registers below this offset change nothing."""
_RS1_LSB: Final = 15

Words = dict[int, int]
"""Values of polled words by their addresses."""


def polled_words(snapshot: Snapshot) -> dict[int, Words] | None:
    """What the running cores of a tile poll, when none of them does more than poll.

    Args:
        snapshot: the tile between two clocks, its coprocessor being idle.

    Returns:
        Words by core, for cores that run; None when one of them may get somewhere.
    """
    record = snapshot.content_for(TILE.itemsize).view(TILE)[0]
    cores = [core for core in range(CORES) if record["core_state"][core] == RUNNING]
    if record["tensix_state"] == RUNNING or not all(_reads_at(record, core) is not None for core in cores):
        return None
    copy = Tile()
    copy.restore(snapshot)
    return _run(copy, cores)


def _run(copy: Tile, cores: list[int]) -> dict[int, Words] | None:
    record = copy.record
    seen: dict[int, dict[bytes, int]] = {core: {} for core in cores}
    loads: dict[int, list[Words]] = {core: [] for core in cores}
    found: dict[int, Words] = {}
    for turn in range(LONGEST_LOOP):
        for core in cores:
            if core in found:
                continue
            if record.core_state[core] == ASLEEP:
                count = int(record.watch_count[core])
                found[core] = {
                    int(record.watch_address[core, i]): int(record.watch_value[core, i]) for i in range(count)
                }
                continue
            words = _reads_at(record, core) if record.core_state[core] == RUNNING else None
            if words is None:
                return None
            state = record.core_x[core, :32].tobytes() + int(record.core_pc[core]).to_bytes(4, "little")
            begun = seen[core].setdefault(state, turn)
            if begun < turn:
                addresses = {address for step in loads[core][begun:] for address in step}
                found[core] = {address: _value(copy, core, address) for address in sorted(addresses)}
                continue
            loads[core].append(dict.fromkeys(words, 0))
        if len(found) == len(cores):
            return found
        if any(_reads_at(record, core) is None for core in cores if record.core_state[core] == RUNNING):
            return None
        if copy.cores.advance_round(True) is not None:  # at a breakpoint
            return None
    return None


def _reads_at(record: Any, core: int) -> list[int] | None:
    """Addresses of words that a core's next instruction loads; None when it may do more than load and compute."""
    pc = int(record["core_pc"][core])
    word = int(record["l1_u32"][pc >> 2]) if pc < L1_SIZE else 0
    row = find(word) if word & 3 == 3 else None
    if row is None:
        return None
    if row.layout in _ARITHMETIC:
        return []
    if row.layout != "load":
        return None
    base = int(record["core_x"][core, word >> _RS1_LSB & 31])
    address = (base + immediate(word, "load")) & 0xFFFFFFFC
    return [address] if _is_harmless(core, address) else None


def _is_harmless(core: int, address: int) -> bool:
    """A load changes nothing, and only agents that proceed change what it gives."""
    if address < L1_SIZE or _LOCAL <= address < _LOCAL + LOCAL_RAM_SIZE[core]:
        return True
    if T0 <= core <= T2 and address in _SEMAPHORES:
        return True
    return any(address in niu and address - niu.base < _NIU_END for niu in _NIUS)


def _value(copy: Tile, core: int, address: int) -> int:
    record = copy.record
    if address < L1_SIZE:
        return int(record.l1_u32[address >> 2])
    if _LOCAL <= address < _LOCAL + LOCAL_RAM_SIZE[core]:
        return int(record.core_ram_u32[core, (address - _LOCAL) >> 2])
    return copy.cores.load(address, core)


class Patience:
    """When a run asks whether its running cores only poll: at doubling numbers of clocks, for it takes time.

    Args:
        first: clocks until the first time.
    """

    def __init__(self, first: int) -> None:
        self._next = first

    def is_over(self, clocks: int) -> bool:
        """True when the condition is due, `clocks` after the run began."""
        if clocks < self._next:
            return False
        self._next = 2 * clocks
        return True


def snapshot_of(tiles: np.ndarray[Any, Any], index: int) -> Snapshot:
    """A copy of a tile of a chip."""
    return Snapshot(tiles[index : index + 1].view(np.ndarray).view(np.uint8).copy())
