"""A tile with compiled programs on its cores: load ELF files, start the cores, run to the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

import bhemu.checks as checks
from bhemu.api.blocked import can_move, pc_of
from bhemu.api.polling import Patience, polled_words
from bhemu.api.semihosting import Semihosting
from bhemu.api.summary import MachineResult
from bhemu.api.tile import Tile
from bhemu.api.tile_programs import TilePrograms
from bhemu.errors import BhemuError, CycleLimit, Deadlock, ProgramError
from bhemu.loader.boot import Placement
from bhemu.machine.agents import B
from bhemu.machine.state import L1_SIZE
from bhemu.riscv.translator import forget
from bhemu.tile.cores import CODE

Array = np.ndarray[Any, Any]

DEFAULT_CLOCKS: Final = 10_000_000
PATIENCE: Final = 1 << 15
"""Clocks of a run until it is first asked whether the cores that run only poll."""
POLLING_REMEDY: Final = (
    "a counter of a NoC interface changes when a request is started, answered or arrives: start the request that is "
    "waited for"
)
CHUNK: Final = 1 << 14
"""Clocks between two checks whether anything can still proceed."""
POLLED_CHUNK: Final = 32
LONGEST_POLLED_CHUNK: Final = 4096
"""The same when the host waits for a condition or serves `ecall`: 1/64 of the elapsed clocks, between these limits."""


def polled_chunk(clocks: int) -> int:
    """Clocks until the condition of a waiting host is checked again, in a run of `clocks` so far."""
    return min(max(clocks >> 6, POLLED_CHUNK), LONGEST_POLLED_CHUNK)


class Machine(TilePrograms):
    """A tile whose cores run ELF files.

    Example:
        machine = bhemu.Machine()
        machine.load("brisc.elf", "B")
        machine.load("math.elf", "T1")
        machine.tile.write_tensor(0x21000, operand, "bf16")
        machine.start()
        print(machine.run().clocks, machine.tile.read_tensor(0x22000, (32, 32), "bf16"))

    Attributes:
        tile: memory and registers.
    """

    def __init__(self, tile: Tile | None = None, *, allow_open: bool = False, timed: bool = False) -> None:
        """
        Args:
            tile: whose cores to use, all of them in reset; by default a new one.
            allow_open: of a new tile: use the recommended choice where no source settles what silicon does.
            timed: of a new tile: its clocks are estimates of cycles of silicon (docs/time.md).
        """
        self.tile = Tile(allow_open=allow_open, timed=timed) if tile is None else checks.instance(tile, "tile", Tile)
        super().__init__(self.tile)
        self._interrupted = False

    def __getstate__(self) -> tuple[Tile, list[Placement], bool]:
        """What `copy` and `pickle` take: the tile, its programs, and whether a run has stopped inside of a clock."""
        return self.tile, self.placements, self._interrupted

    def __setstate__(self, state: tuple[Tile, list[Placement], bool]) -> None:
        tile, placements, interrupted = state
        Machine.__init__(self, tile)
        self.placements = placements
        self._interrupted = interrupted

    # --- running --------------------------------------------------------------------------------------------------

    @property
    def clocks(self) -> int:
        """Clocks of the tile since it was made; while a core is stopped at a breakpoint, those of that core."""
        record = self.tile.record
        if self._interrupted:
            return int(record.core_round[record.stopped_core]) - int(record.free_rounds)
        return int(record.clock)

    def run(
        self,
        *,
        max_clocks: int = DEFAULT_CLOCKS,
        until: str | int | Callable[[], bool] | None = None,
        semihosting: Semihosting | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> MachineResult:
        """Let the started cores run until all are done, or until a condition is true.

        A core is done when it has halted (ebreak) or spins in a loop that reads nothing, such as `j .`.

        Args:
            max_clocks: stop after this many clocks of the tile.
            until: end the run when any core reaches this symbol (`main` or `T1.main`) or address; or when the function,
                which is called every 32 clocks, in long runs every 4,096, returns True.
            semihosting: serves `ecall` of core B.
            progress: called now and then with the clocks that have passed.

        Raises:
            BhemuError: an instruction was refused: category, core, pc, symbol and line say which.
            Deadlock: no core or thread can proceed, and at least one waits.
            CycleLimit: not done within `max_clocks`.
        """
        max_clocks = checks.integer(max_clocks, "max_clocks", 1, checks.MAX_CLOCKS)
        checks.optional(semihosting, checks.instance, "semihosting", Semihosting)
        checks.optional(progress, checks.function, "progress")
        record = self.tile.record
        condition = until if callable(until) else None
        places = [] if until is None or callable(until) else [self._instruction(until)]
        if not self.out_of_reset():
            raise ProgramError("no core is out of reset", remedy="call machine.start() first")
        polled = condition is not None or semihosting is not None
        start, limit = self.clocks, self.clocks + max_clocks
        ended = self.clocks
        patience = Patience(PATIENCE)
        try:
            with self._breakpoints(places):
                while True:
                    if condition is not None and condition():
                        return self._result("until", self.clocks - start, semihosting)
                    if self.clocks >= limit:
                        raise self._limit(max_clocks)
                    chunk = CHUNK
                    if polled:
                        chunk = polled_chunk(self.clocks - start)
                    before = self.accounts()
                    if self._advance(min(chunk, limit - self.clocks), places):
                        return self._result("until", self.clocks - start, semihosting)
                    if progress is not None:
                        progress(self.clocks - start)
                    if before != self.accounts():
                        ended = self.last_move(int(record.clock))
                    if semihosting is not None:
                        if self._serve(semihosting):
                            self.tile.cores[B].resume()
                            continue
                        if semihosting.status is not None:
                            return self._result("exit", self.clocks - start, semihosting)
                    if can_move(record):
                        if patience.is_over(self.clocks - start):
                            self._check_not_polling(condition, self.clocks - start)
                    else:
                        if condition is not None and condition():
                            return self._result("until", self.clocks - start, semihosting)
                        self._check_not_stuck(ended - start)
                        return self._result("done", ended - start, semihosting)
        except BhemuError as error:
            self.locate(error)
            raise

    def _instruction(self, where: str | int) -> int:
        address = self.address_of(where) if isinstance(where, str) else checks.integer(where, "until")
        if address % 4 or not 0 <= address < L1_SIZE:
            raise ProgramError(
                f"{where if isinstance(where, str) else ''} {address:#x} is not an instruction in L1".strip(),
                remedy="name a function, or a multiple of 4 below 0x180000",
            )
        return address

    @contextmanager
    def _breakpoints(self, places: list[int]) -> Iterator[None]:
        """Cores stop before they execute the instructions at these addresses."""
        code = CODE[0]
        saved = int(code.breakpoint_count)
        if places:
            forget(CODE)
        for number, place in enumerate(places, saved):
            code.breakpoint[number] = place >> 2
            code.key[place >> 2] = 0
        code.breakpoint_count = saved + len(places)
        try:
            yield
        finally:
            code.breakpoint_count = saved
            for place in places:
                code.key[place >> 2] = 0

    def _advance(self, clocks: int, places: list[int]) -> bool:
        """Let clocks pass; True when a core is at one of the places."""
        cores, record = self.tile.cores, self.tile.record
        if self._interrupted:  # a run ended at a breakpoint: its last clocks are not over
            self._interrupted = False
            record.core_skip_breakpoint[record.stopped_core] = 1
            clocks = 0
        stopped = cores.advance(clocks)
        while stopped is not None:
            if int(record.core_pc[stopped]) in places:
                self._interrupted = True
                return True
            record.core_skip_breakpoint[stopped] = 1
            stopped = cores.advance(0)
        return False

    def _serve(self, semihosting: Semihosting) -> bool:
        try:
            return semihosting.serve(self.tile.record)
        except BhemuError as error:
            raise self.tile.cores.located(error, B, pc_of(self.tile.record, B)) from None

    def _check_not_stuck(self, clocks: int) -> None:
        remedy = self.what_could_end_it()
        if remedy is not None:
            raise Deadlock(f"nothing can move after {clocks:,} clocks\n{self.explain()}", remedy=remedy)

    def _check_not_polling(self, condition: Callable[[], bool] | None, clocks: int) -> None:
        """Refuse a run whose running cores only poll words that nothing in the tile can change."""
        polled = polled_words(self.tile.snapshot())
        if polled and any(polled.values()) and (condition is None or not condition()):
            raise Deadlock(f"nothing can move after {clocks:,} clocks\n{self.explain(polled)}", remedy=POLLING_REMEDY)

    def _limit(self, clocks: int) -> CycleLimit:
        return CycleLimit(
            f"not done after {clocks:,} clocks\n{self.explain()}",
            remedy="allow more with max_clocks (--max-clocks), end the program with ebreak or `j .`, "
            "or say what to wait for (--until, --until-word)",
        )

    # --- what it did ----------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        from bhemu.api.html import cores_html

        return cores_html(f"Machine, {self.clocks:,} clocks", self.summary())

    def _result(self, reason: str, clocks: int, semihosting: Semihosting | None) -> MachineResult:
        status = semihosting.status if semihosting is not None else None
        return MachineResult(reason, clocks, status, self.summary())
