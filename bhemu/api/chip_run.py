"""One run of a chip: clocks until its tiles are done, a condition is true, or no core or thread can proceed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bhemu.api.blocked import can_move, pc_of
from bhemu.api.chip_report import ChipResult, TileResult, explain_tiles
from bhemu.api.chip_tile import ChipTile
from bhemu.api.machine import CHUNK, PATIENCE, POLLING_REMEDY, polled_chunk
from bhemu.api.polling import Patience, polled_words, snapshot_of
from bhemu.api.semihosting import Semihosting
from bhemu.chip.clock.clocks import in_tile
from bhemu.chip.coordinates import TENSIX_TILES, Place
from bhemu.chip.device import Device
from bhemu.errors import BhemuError, CycleLimit, Deadlock, ProgramError
from bhemu.machine.agents import B
from bhemu.machine.core_state import HALT_ECALL, HALTED, RUNNING

Array = np.ndarray[Any, Any]


@runtime_checkable
class RunningChip(Protocol):
    """What a run needs of a `bhemu.Chip`; see there."""

    @property
    def device(self) -> Device:
        """The host's view of the chip."""

    @property
    def time(self) -> int:
        """Clocks that have passed."""

    @property
    def is_quiet(self) -> bool:
        """Nothing is on its way over the NoC."""

    def clock(self, clocks: int = 1) -> None:
        """Let clocks pass."""

    def pass_clocks(self, clocks: int) -> None:
        """Let clocks pass; tiles in which nothing proceeds keep the time at which they stopped."""

    def touch_exposed(self) -> None:
        """Tiles whose arrays the host holds are brought to the chip's time."""

    def running(self) -> list[ChipTile]:
        """The tiles that have a core out of reset."""

    def locate(self, error: BhemuError) -> None:
        """Add to the error of a tile's instruction the source line."""


class ChipRun:
    """A run in progress.

    Args:
        chip: that runs.
        chosen: the tiles that are waited for.
        services: what serves `ecall` of their cores B, by translated coordinates; None: nothing does.
    """

    def __init__(
        self, chip: RunningChip, chosen: Sequence[ChipTile], services: Mapping[Place, Semihosting] | None = None
    ) -> None:
        self._chip = chip
        self._tiles = chip.device.tiles
        self._chosen = chosen
        self._services = services
        self._start = chip.time
        self._ended = dict.fromkeys((tile.place for tile in chosen), chip.time)
        """When the last core of each tile moved."""

    def go(
        self,
        max_clocks: int,
        until: Callable[[], bool] | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> str:
        """Let clocks pass; returns `done` or `until`. See `Chip.run`."""
        if not any(tile.programs.out_of_reset() for tile in self._chosen):
            raise ProgramError("no core is out of reset", remedy="start some first")
        chip = self._chip
        patience = Patience(PATIENCE)
        while True:
            if until is not None and until():
                return "until"
            if until is None and all(map(self._is_done, self._chosen)):
                return "done"
            passed = chip.time - self._start
            if passed >= max_clocks:
                left = [tile for tile in self._chosen if not self._is_done(tile)]
                raise CycleLimit(
                    f"not done after {passed:,} clocks\n{explain_tiles(left)}".rstrip(),
                    remedy="allow more with max_clocks, end the programs with ebreak or `j .`, or say what to wait for",
                )
            polled = until is not None or self._services is not None
            self._advance(min(polled_chunk(passed) if polled else CHUNK, max_clocks - passed))
            if progress is not None:
                progress(chip.time - self._start)
            if patience.is_over(chip.time - self._start):
                self._check_not_polling(until)
            if not self._serve() and self._at_rest():
                if until is not None and until():
                    return "until"
                self._check_not_stuck()
                return "done"

    def result(self, reason: str) -> ChipResult:
        """The result of the run."""
        going, now = self._going(), self._chip.time
        tiles = {}
        for tile in self._chosen:
            end = now if going[tile.node.index] else self._ended[tile.place]
            status = self._services[tile.place].status if self._services is not None else None
            tiles[tile.place] = TileResult(max(end - self._start, 0), status, tile.programs.summary())
        last = max(tile.clocks for tile in tiles.values())
        return ChipResult(reason, last if reason == "done" else now - self._start, tiles)

    # --- clocks -----------------------------------------------------------------------------------------------------

    def _advance(self, clocks: int) -> None:
        before = self._moves()
        self._chip.pass_clocks(clocks)
        now, stopped = self._chip.time, (self._moves() != before) & ~self._going()
        self._ended |= {t.place: t.programs.last_move(now) for t in self._chosen if stopped[t.node.index]}
        self._chip.touch_exposed()

    def _moves(self) -> Array:
        """int64 [154]: grows when a core or thread of a tile proceeds."""
        moves: Array = self._tiles["core_retired"].sum(axis=1) + self._tiles["issued"].sum(axis=(1, 2))
        return moves

    def _going(self) -> Array:
        """bool [154]: some core or the coprocessor of a tile can proceed."""
        going: Array = (self._tiles["core_state"] == RUNNING).any(axis=1) | (self._tiles["tensix_state"] == RUNNING)
        return going

    def _at_rest(self) -> bool:
        """No core or thread on the chip can proceed, not even after the effects of the last clock are visible."""
        if self._going().any() or not self._chip.is_quiet:
            return False
        before = self._moves()
        self._chip.clock(1)
        return not self._going().any() and bool((self._moves() == before).all())

    # --- what is done -----------------------------------------------------------------------------------------------

    def _has_exited(self, tile: ChipTile) -> bool:
        return self._services is not None and self._services[tile.place].status is not None

    def _is_done(self, tile: ChipTile) -> bool:
        if self._has_exited(tile):
            return True
        return not can_move(tile.state) and tile.programs.what_could_end_it() is None

    def _check_not_stuck(self) -> None:
        waiting = [tile for tile in self._chosen if not self._is_done(tile)]
        if waiting:
            stuck = [t for t in self._chip.running() if t.programs.what_could_end_it() is not None]
            clocks = max(self._ended.values()) - self._start
            raise Deadlock(
                f"nothing on the chip can move after {max(clocks, 0):,} clocks\n{explain_tiles(stuck)}",
                remedy=waiting[0].programs.what_could_end_it(),
            )

    def _check_not_polling(self, until: Callable[[], bool] | None) -> None:
        """Refuse a run in which the cores that run only poll words that nothing on the chip can change."""
        going = self._going()
        if not going.any() or going[TENSIX_TILES:].any() or self._chip.device.record.waiting.any():
            return
        if not self._chip.is_quiet:
            return
        polled = {}
        for tile in self._chip.running():
            if going[tile.node.index]:
                tile.touch()
                found = polled_words(snapshot_of(self._tiles, tile.node.index))
                if not found or not any(found.values()):
                    return
                polled[tile.place] = found
        if not polled or (until is not None and until()):
            return
        stuck = [t for t in self._chip.running() if t.place in polled or t.programs.what_could_end_it() is not None]
        raise Deadlock(
            f"nothing on the chip can move after {self._chip.time - self._start:,} clocks\n"
            f"{explain_tiles(stuck, polled)}",
            remedy=POLLING_REMEDY,
        )

    def _serve(self) -> bool:
        """Serve every core B that is halted at an `ecall`; True when one of them resumes."""
        if self._services is None:
            return False
        states, reasons = self._tiles["core_state"][:, B], self._tiles["core_halt_reason"][:, B]
        calls = (states == HALTED) & (reasons == HALT_ECALL)
        goes_on = False
        for tile in self._chosen:
            if calls[tile.node.index]:
                try:
                    served = self._services[tile.place].serve(tile.state)
                except BhemuError as error:
                    located = in_tile(tile.node.index, tile.touch().located(error, B, pc_of(tile.state, B)))
                    self._chip.locate(located)
                    raise located from None
                if served:
                    tile.touch()[B].resume()
                    goes_on = True
        return goes_on
