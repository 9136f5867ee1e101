"""Time of a chip as the host sees it: clocks in, exceptions out. What happens in them is bhemu/chip/clock/run.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from bhemu.chip.clock.tiles import ATTENDED, STATUS, can_react
from bhemu.chip.coordinates import NODES, tile_place
from bhemu.chip.entries import chip_entry
from bhemu.chip.faults import recorded
from bhemu.chip.links.send import drop_frame
from bhemu.chip.nodes.identity import describe
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.machine.codegen import JIT
from bhemu.machine.compiler import Entry
from bhemu.machine.dispatch import ADVANCE_TILE, CODE_CACHE, RUN_CORE
from bhemu.machine.faults import WAIT
from bhemu.riscv.decode import new_code_cache
from bhemu.riscv.translator import attach
from bhemu.tensix.coprocessor import Coprocessor, copy_table, ensure_place, given
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tile.cores import MOVING, Cores
from bhemu.tile.observer import PLAIN_OBSERVERS, Observer
from bhemu.tile.turn_ends import ADVANCED, AT_BREAKPOINT

NO_TILE: Final = -1
QUANTUM: Final = 1024
"""Default for the most clocks that tiles run ahead of each other."""
WORTH_THREADS: Final = 20_000
"""Clocks of all tiles together in one call from which on it is worth while to start threads,"""
WORTH_SHARE: Final = 10_000
"""and those in one span of several chips, after each of which the threads wait for each other."""

_STATE: Final = (
    "time",
    "end",
    "goal",
    "last_message",
    "active_count",
    "order",
    "active",
    "touched",
    "runs",
    "waiting",
    "status",
    "local",
    "stop_round",
)
"""Fields of the chip's record that hold its tiles' positions in time."""


class _Helper:
    """A thread's own table of handlers and code cache."""

    def __init__(self) -> None:
        self.code = new_code_cache()
        self.table = copy_table()

    def refresh(self) -> None:
        """Take over what has been compiled since."""
        if MOVING.translates:
            attach(self.code)
        self.table[:] = copy_table()
        self.table[CODE_CACHE] = self.code.ctypes.data


_helpers: list[_Helper] = []
"""Of all threads beside the one that asks for clocks; chips that move at the same time share them, and must not."""
_helpers_in_use = threading.Lock()


@contextmanager
def helped(record: Any, call: Entry, target: Any, threads: int) -> Iterator[Callable[[], None]]:
    """Other threads take part in the work of a record (chip/state.py) as long as the context lasts.

    Args:
        call: what they do: `help_entry`, or the like.
        target: address of the record.
        threads: this one included.

    Returns:
        What is to be called when new functions may have come into the table of handlers.
    """
    with _helpers_in_use:
        while len(_helpers) < threads - 1:
            _helpers.append(_Helper())
        helpers = _helpers[: threads - 1]

        def refresh() -> None:
            for helper in helpers:
                helper.refresh()

        refresh()
        record.threads, record.share_stop = threads, 0
        begun = int(record.share_begin)
        helping = [
            threading.Thread(target=call.call, args=(target, helper.table.ctypes.data, begun), daemon=True)
            for helper in helpers
        ]
        for thread in helping:
            thread.start()
        try:
            yield refresh
        finally:
            record.share_stop = 1
            record.share_begin += 1
            record.threads = 1
            for thread in helping:
                thread.join()


class Clocks:
    """Moves the tiles of a chip.

    Args:
        chip: record of the chip (chip/state.py).
        tiles: those of its tiles.
        carry_out: `carry_out(tile, request, in_turn)` carries out a NoC request of a tile that compiled code has left;
            see `Cores.connect`. In turn: of one of the tile's agents, and not between two clocks.
        quantum: clocks that tiles may run ahead of each other; with 1 the order is exact to the clock.
        threads: of the host, that tiles run on.

    Raises:
        ConfigurationError: less than 1 clock or thread.
    """

    def __init__(
        self,
        chip: np.ndarray[Any, Any],
        tiles: np.ndarray[Any, Any],
        carry_out: Callable[[int, int, bool], None],
        *,
        quantum: int = QUANTUM,
        threads: int = 1,
    ) -> None:
        if quantum < 1 or threads < 1:
            raise ConfigurationError(f"a quantum of {quantum} clocks, {threads} threads", remedy="both are 1 or more")
        self.tiles = tiles
        self.record: Any = chip[0]
        self.record.quantum = quantum
        self.record.threads = 1
        self.record.current = NO_TILE
        self.threads = threads if JIT else 1
        self._target: Any = chip.ctypes.data if JIT else self.record
        # Views of single words: attributes of a record cost more than an idle clock.
        self._time, self._current, self._active = chip["time"], chip["current"], chip["active_count"]
        self._carry_out = carry_out
        self._cores: dict[int, Cores] = {}
        tiles["noc_connected"] = 1
        self._touch = chip_entry("chip_touch").call
        self._transfer = chip_entry("chip_transfer").call
        self._table = self.cores(0).table  # and it compiles the entries of tiles
        self._clock = given(chip_entry("chip_clock").call, self._target, self._table)
        ensure_place(ADVANCE_TILE)
        ensure_place(RUN_CORE)

    @property
    def time(self) -> int:
        """Clocks that have passed."""
        return int(self._time[0])

    @property
    def active(self) -> int:
        """Tiles that move."""
        return int(self._active[0])

    @property
    def target(self) -> Any:
        """The chip's record, as entries take it."""
        return self._target

    def cores(self, index: int) -> Cores:
        """The cores of a tile."""
        cores = self._cores.get(index)
        if cores is None:
            cores = self._cores[index] = Cores(Coprocessor(self.tiles, index))
            cores.connect(partial(self._request, index), partial(self._observed, index))
        return cores

    def advance(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
        """
        if self.threads > 1 and self._active[0] > 1 and clocks * int(self._active[0]) >= WORTH_THREADS:
            self._advance_on_threads(clocks)
        else:
            self._advance(clocks)

    def replace_clock(self, clock: Callable[[Any, Any, int], int]) -> None:
        """From now on clocks pass by another function than `bhemu.chip.clock.run.clock_entry`, called like it."""
        self._clock = partial(clock, self._target, self._table)

    def finish(self) -> None:
        """Go on with clocks that have stopped because the host had to do something, and let the rest of them pass."""
        self.attend()
        self._advance(0)

    @property
    def table(self) -> Any:
        """The table of handlers, as entries take it."""
        return self._table

    def can_react(self, index: int) -> bool:
        """True when a change in a tile's L1 can make a difference to its agents."""
        return bool(can_react(self.tiles[index]))

    def touch(self, index: int) -> Cores:
        """Before the host or another tile changes a tile: bring it to the present; it is active from then on."""
        current = int(self._current[0])
        if index != current:
            self._touch(self._target, index, self.time + (1 if index < current else 0))
        return self.cores(index)

    def snapshot(self) -> dict[str, bytes]:
        """What it knows of time beside the tiles' records."""
        return {name: np.asarray(self.record[name]).tobytes() for name in _STATE}

    def restore(self, state: dict[str, bytes]) -> None:
        """Put it back, when the tiles' records are those of the copy again."""
        for name, content in state.items():
            field = self.record[name]
            if np.ndim(field):
                field[:] = np.frombuffer(content, field.dtype)
            else:
                self.record[name] = np.frombuffer(content, np.int64)[0]
        self.record.current = NO_TILE
        self.record.lone_core = 0
        for index in range(len(self.tiles)):
            if self.record.active[index] or self.can_react(index):
                self.cores(index)

    # --- order --------------------------------------------------------------------------------------------------------

    def _advance(self, clocks: int, changed: Callable[[], None] | None = None) -> None:
        """Let clocks pass in this thread.

        Args:
            changed: called after new functions may have come into the table of handlers.
        """
        while True:
            with MOVING.context:
                status = self._clock(clocks)
            if status == ADVANCED:
                return
            clocks = 0
            self.attend()
            if changed is not None:
                changed()

    def _advance_on_threads(self, clocks: int) -> None:
        """The same with the help of other threads, which live as long as the call."""
        with helped(self.record, chip_entry("chip_help"), self._target, self.threads) as refresh:
            self._advance(clocks, refresh)

    def attend(self) -> None:
        """Do what the tile that has stopped needs."""
        record = self.record
        index = int(record.current)
        if index == NO_TILE:
            self._attend_frame()
            return
        status = int(record.status[index]) & STATUS
        record.status[index] |= ATTENDED
        record.time = record.local[index]
        try:
            cores = self.cores(index)
            if cores.serve(status) == AT_BREAKPOINT:
                cores.record.core_skip_breakpoint[cores.record.stopped_core] = 1
        except BhemuError as error:
            raise in_tile(index, error) from None
        finally:
            record.current = NO_TILE

    def _attend_frame(self) -> None:
        """Do what a tile needs at which a frame arrives."""
        index = int(self.record.noc_end)
        try:
            if self.record.fault_code:
                raise recorded(self.record)
            cores = self.cores(index)
            if cores.record.fault_code:
                raise cores.coprocessor.recorded()
            cores.coprocessor.supply()
        except BhemuError as error:
            drop_frame(self.record, index)
            raise in_tile(index, error) from None

    def _observed(self, index: int, observer: Observer | None) -> None:
        """Attach an observer to a tile, or None to detach it."""
        before = int(self.record.observer[index])
        PLAIN_OBSERVERS.pop(before, None)
        self.record.observer[index] = NO_LOG if observer is None else observer.log_address
        self.record.lone_core = 0
        if observer is not None and not JIT:
            PLAIN_OBSERVERS[observer.log_address] = observer

    def _request(self, index: int, number: int) -> None:
        """Carry out a NoC request of a tile."""
        self._carry_out(index, number, int(self._current[0]) == index)
        self.record.waiting[index] = self.tiles[index].noc_request[number].status == WAIT

    def transfer(self, index: int, number: int, in_turn: bool) -> int:
        """Carry out a NoC request as far as compiled code can; see `bhemu.chip.noc.transfer.carry_out_entry`."""
        return self._transfer(self._target, index, number, int(in_turn))


def in_tile(index: int, error: BhemuError) -> BhemuError:
    """The same error, with the tile in front."""
    if error.tile is None:
        error.tile = tile_place(index)
        error.message = f"{describe(NODES[error.tile])}: {error.message}"
    return error
