"""What cores poll that run and get nowhere, on a chip that waits for what does not come: for a client that polls, too.

A core that reads the same words in a short loop sleeps (riscv/poll.py), or comes back to the same registers
(api/polling.py). Firmware that moves packets does neither: it goes through long loops, and counts them. A copy of its
tile is run for some rounds. A core whose loads and stores go to places in the second half of them that the first half
has seen polls; one that comes to others computes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bhemu.api.blocked import can_move, explain_all, is_stuck, waiting_threads
from bhemu.api.chip_report import alike
from bhemu.api.polling import Words, snapshot_of
from bhemu.api.tile import Snapshot, Tile
from bhemu.chip.coordinates import TENSIX_TILES, tile_place
from bhemu.chip.device import Device
from bhemu.errors import BhemuError
from bhemu.isa.memory_map import region
from bhemu.isa.riscv import find, immediate
from bhemu.machine.agents import CORES, T0
from bhemu.machine.core_state import LOCAL_RAM_SIZE, RUNNING
from bhemu.machine.faults import DONE
from bhemu.machine.state import L1_SIZE
from bhemu.tile.noc.request import READ

ROUNDS: Final = 1500
"""That a copy is run for: several times through the loop of a router of tt-metal's fabric."""
_NEW: Final = 4
"""Places that a polling core may come to for the first time in the second half: what it does now and then."""
_RUN: Final = (8, 2)
"""Tensix and Ethernet tiles whose copies are run, at most: plain Python does it."""
_WAYS: Final = 16
"""At most this many different ways of polling are explained."""
_LOCAL: Final = region("local_ram").base
_ACCESSES: Final = ("load", "store")
_RS1_LSB: Final = 15


@dataclass
class _Trace:
    """Where a core's accesses went.

    Attributes:
        loads: words and the round in which they were read last.
        seen: words that were read or written, and the round in which they were first.
        ended: it has halted, or sleeps.
    """

    loads: dict[int, int] = field(default_factory=dict)
    seen: dict[int, int] = field(default_factory=dict)
    ended: bool = False

    def polls(self, rounds: int) -> bool:
        """It does no more than poll."""
        return self.ended or (bool(self.loads) and sum(1 for turn in self.seen.values() if turn >= rounds // 2) <= _NEW)

    def words(self, core: int, rounds: int) -> list[int]:
        """What it polls; words of its own memory only where there are no others."""
        found = sorted(address for address, turn in self.loads.items() if turn >= rounds // 2)
        others = [address for address in found if not _LOCAL <= address < _LOCAL + LOCAL_RAM_SIZE[core]]
        return others or found


def polled_by_loops(snapshot: Snapshot, *, rounds: int = ROUNDS) -> dict[int, Words] | None:
    """What the running cores of a tile poll; None when one of them does more than poll.

    Args:
        snapshot: the tile between two clocks.
        rounds: to look at.

    Returns:
        Words by core, for cores that run; empty for one that soon sleeps or halts.
    """
    copy = Tile()
    copy.restore(snapshot)
    record = copy.record
    writes = False

    def answer(number: int) -> None:
        """A read brings what it brought the last time."""
        nonlocal writes
        request = record.noc_request[number]
        writes = writes or request.kind != READ
        request.status, request.responses = DONE, 1

    copy.cores.connect(answer, lambda _: None)
    traces = {core: _Trace() for core in range(CORES) if record.core_state[core] == RUNNING}
    decoded: dict[int, tuple[str, int, int] | None] = {}
    for turn in range(rounds):
        for core, trace in traces.items():
            if record.core_state[core] != RUNNING:
                trace.ended = True
                continue
            access = _access(record, core, decoded)
            if access is not None:
                layout, address = access
                trace.seen.setdefault(address, turn)
                if layout == "load":
                    trace.loads[address] = turn
        if all(trace.ended for trace in traces.values()):
            break
        try:
            copy.cores.advance_round(True)
        except BhemuError:  # it goes on in another way than the chip's tile
            return None
    if writes or not all(trace.polls(rounds) for trace in traces.values()):
        return None
    return {core: {at: _value(copy, core, at) for at in trace.words(core, rounds)} for core, trace in traces.items()}


def _access(record: Any, core: int, decoded: dict[int, tuple[str, int, int] | None]) -> tuple[str, int] | None:
    """(layout, address of the word) of the load or store that a core executes next."""
    pc = int(record.core_pc[core])
    if pc not in decoded:
        word = int(record.l1_u32[pc >> 2]) if pc < L1_SIZE else 0
        row = find(word) if word & 3 == 3 else None
        known = row is not None and row.layout in _ACCESSES
        decoded[pc] = (row.layout, word >> _RS1_LSB & 31, immediate(word, row.layout)) if row and known else None
    found = decoded[pc]
    if found is None:
        return None
    layout, base, offset = found
    return layout, (int(record.core_x[core, base]) + offset) & 0xFFFFFFFC


def _value(copy: Tile, core: int, address: int) -> int:
    try:
        return copy.cores.load(address, core)
    except BhemuError:
        return 0


def explain_polling(device: Device) -> str | None:
    """What the cores of a chip poll, without names of programs; None when one does more than poll.

    Tiles are named by physical coordinates. Of those whose cores run, a few are looked at.
    """
    texts = []
    left = list(_RUN)
    for index in range(len(device.tiles)):
        record = device.tiles[index]
        polled: dict[int, Words] = {}
        if can_move(record):
            kind = int(index >= TENSIX_TILES)
            if left[kind] and np.any(record.core_state == RUNNING):
                left[kind] -= 1
                found = polled_by_loops(snapshot_of(device.tiles, index))
                if found is None:
                    return None
                polled = {core: words for core, words in found.items() if words}
        elif not waiting_threads(record) and not any(is_stuck(record, core) for core in range(CORES)):
            continue
        text = explain_all(record, lambda _, pc: f"{pc:#07x}", lambda _: "", lambda thread, _: T0 + thread, polled)
        texts.append((tile_place(index), text))
    return (alike(texts, _WAYS) or "  nothing runs or waits") + "\n"
