"""Time of a chip: which tiles move, and in which order (tile T34, H8).

In a clock the tiles move in the order of their numbers, and what a tile does to another happens at once (N26): a later
tile sees it in the same clock, an earlier one in the next.

That is kept exactly: while more than one tile is active, every clock visits each of them once. A tile that is active
alone moves through all clocks at once, since nobody can see it; when it touches a tile that can move, its run ends with
the clock in progress. Its other cores may then be ahead of that clock in instructions that touch nothing but their own
registers and local RAM, as they always may inside a tile; only a reset from another tile within those very
instructions could tell. Tiles in which nothing can move cost nothing: their clocks are made up for when they are
touched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import NODES, tensix_place
from bhemu.chip.identity import describe
from bhemu.errors import BhemuError
from bhemu.machine.agents import CORES
from bhemu.machine.core_state import ASLEEP, BLOCKED, RUNNING
from bhemu.machine.faults import WAIT
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores

_NOBODY: Final = -1


class Clocks:
    """Moves the Tensix tiles of a chip.

    Args:
        tiles: their records.
        carry_out: `carry_out(tile, noc, initiator)` carries out a NoC request and returns (status, how many tiles have
            answered); see `Cores.connect`.
    """

    def __init__(self, tiles: np.ndarray[Any, Any], carry_out: Callable[[int, int, int], tuple[int, int]]) -> None:
        self.tiles = tiles
        self.time = 0
        """Clocks that have passed."""
        self._carry_out = carry_out
        self._cores: dict[int, Cores] = {}
        self._active: set[int] = set()
        self._waiting: set[int] = set()
        """Tiles with a core whose NoC request has to wait for another tile: it tries again in each clock."""
        self._moving = _NOBODY
        self._alone = False
        self._stopped = False
        self._turns: list[int] = []
        """A heap of the tiles that the clock in progress has yet to visit."""
        self._tile_clock = tiles["clock"]
        self._core_state = tiles["core_state"]
        self._tensix_state = tiles["tensix_state"]

    def cores(self, index: int) -> Cores:
        """The cores of a tile."""
        cores = self._cores.get(index)
        if cores is None:
            cores = self._cores[index] = Cores(Coprocessor(self.tiles, index))
            cores.connect(partial(self._request, index))
        return cores

    def advance(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
        """
        end = self.time + clocks
        while self.time < end:
            if not self._active:
                self.time = end
            elif len(self._active) == 1:
                self._run_alone(end)
            else:
                self._one_clock(_NOBODY)

    def can_react(self, index: int) -> bool:
        """True when a change in a tile's L1 can make a difference to its cores."""
        states = self._core_state[index].tolist()
        return RUNNING in states or ASLEEP in states or BLOCKED in states or self._tensix_state[index] == RUNNING

    def touch(self, index: int) -> Cores:
        """Before somebody else changes a tile: bring it to the time that it is; it moves from then on."""
        cores = self.cores(index)
        if index == self._moving:
            return cores
        self._bring(index, self.time + (1 if index < self._moving else 0))
        if index not in self._active:
            self._active.add(index)
            if self._alone:
                self._end_with_this_clock()
            elif self._moving != _NOBODY and index > self._moving:
                heappush(self._turns, index)
        return cores

    # --- order --------------------------------------------------------------------------------------------------------

    def _one_clock(self, first: int) -> None:
        """The clock in progress, for the active tiles behind `first`."""
        self._turns = sorted(index for index in self._active if index > first)
        try:
            while self._turns:
                self._moving = heappop(self._turns)
                self._bring(self._moving, self.time + 1)
                self._end_turn(self._moving)
        finally:
            self._moving = _NOBODY
        self.time += 1

    def _run_alone(self, end: int) -> None:
        """All clocks up to `end` for the only active tile, as long as it remains the only one."""
        (index,) = self._active
        self._moving, self._alone, self._stopped = index, True, False
        try:
            self._bring(index, end)
        finally:
            self._moving, self._alone = _NOBODY, False
            self.time = int(self._tile_clock[index]) - (1 if self._stopped else 0)
        self._end_turn(index)
        if self._stopped:
            self._one_clock(index)

    def _bring(self, index: int, time: int) -> None:
        behind = time - int(self._tile_clock[index])
        if behind > 0:
            try:
                self.cores(index).advance(behind)
            except BhemuError as error:
                raise in_tile(index, error) from None

    def _end_turn(self, index: int) -> None:
        """Tiles in which nothing moves are passed over until the host, or another tile, touches them."""
        if index in self._waiting:
            self._waiting.discard(index)
        elif self._tensix_state[index] != RUNNING and RUNNING not in self._core_state[index].tolist():
            self._active.discard(index)

    def _moment(self) -> int:
        """Round of the access in progress in the tile that moves."""
        record: Any = self.tiles[self._moving]
        return int(record.now_round) if record.now_agent < CORES else int(record.tensix_round)

    def _end_with_this_clock(self) -> None:
        """The tile that runs alone is no longer alone.

        The round in progress is the last one of its clock, unless the coprocessor executes in it: that moves the goal.
        """
        record: Any = self.tiles[self._moving]
        record.round_goal = self._moment() + 1
        self._stopped = True

    def _request(self, index: int, noc: int, initiator: int) -> tuple[int, int]:
        """An initiator of a tile has been started."""
        if self._alone and index == self._moving:
            self.time = self._moment() - int(self.tiles[index].free_rounds)
        status, responses = self._carry_out(index, noc, initiator)
        if status == WAIT:
            self._waiting.add(index)
        return status, responses


def in_tile(index: int, error: BhemuError) -> BhemuError:
    """The same error, with the Tensix tile in front."""
    if error.tile is None:
        error.tile = tensix_place(index)
        error.message = f"{describe(NODES[error.tile])}: {error.message}"
    return error
