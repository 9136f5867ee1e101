"""Programs as calls: memory is written, cores are started and clocked through PCI windows alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from bhemu.api.blocked import can_move, is_stuck, waiting_threads
from bhemu.compare.calls import INIT, Call, clock, read, write
from bhemu.compare.chip_side import ChipSide
from bhemu.compare.places import aim
from bhemu.errors import BhemuError
from bhemu.loader.boot import SOFT_RESET, start_stores
from bhemu.machine.state import L1_SIZE

TILE: Final = (1, 2)
"""The tile that programs run on unless another is named; clients' coordinates."""
EVERY: Final = 1000
GROWTH: Final = 8
"""In long runs memory is compared each time that another 1/8 of the elapsed clocks has passed."""
MAX_CLOCKS: Final = 10_000_000
_MEMORY, _REGISTERS, _OTHERS = 1, 2, 3  # windows
_REGISTER_BASE: Final = SOFT_RESET & ~0x1F_FFFF


@dataclass(frozen=True)
class Span:
    """A range of L1 that is compared.

    Attributes:
        address, size: in bytes.
    """

    address: int = 0
    size: int = L1_SIZE


@dataclass
class Session:
    """A tile, what its memory holds at the start, and which cores run.

    Attributes:
        pieces: (address in L1, bytes), written in this order.
        entries: where each core starts, by number; B starts at 0 and needs a jump there among the pieces.
        tile: coordinates as clients give them.
        spans: what is compared.
        others: more tiles in which that is compared, for programs that reach them over the NoC.
        every: clocks between two comparisons of memory; None: 1,000, in long runs 1/8 of the clocks so far.
        at_end: compare only when nothing moves any more.
        max_clocks: the session ends after this many.
        finished: why it has ended, once it has: `done`, `stuck` (nothing can proceed, and an agent waits), `limit`.
    """

    pieces: list[tuple[int, bytes]]
    entries: dict[int, int]
    tile: tuple[int, int] = TILE
    spans: list[Span] = field(default_factory=lambda: [Span()])
    others: list[tuple[int, int]] = field(default_factory=list)
    every: int | None = None
    at_end: bool = False
    max_clocks: int = MAX_CLOCKS
    finished: str = ""

    def calls(self, ours: ChipSide) -> Iterator[Call]:
        """The calls; bhemu's side, which has made those that were given, says when nothing moves any more."""
        yield Call(INIT)
        setup, memory = aim(_MEMORY, self.tile, 0)
        more, registers = aim(_REGISTERS, self.tile, _REGISTER_BASE)
        looks = [memory]
        for number, tile in enumerate(self.others):
            calls, place = aim(_OTHERS + number, tile, 0)
            more += calls
            looks.append(place)
        yield from setup + more
        for address, content in self.pieces:
            if content:
                yield write(memory + address, content)
        for address, value in start_stores(self.entries):
            yield write(registers + address - _REGISTER_BASE, value)
        index = ours.chip.node(self.tile).index
        passed = 0
        while not self.finished:
            part = min(self.every or max(EVERY, passed // GROWTH), self.max_clocks - passed)
            yield clock(part)
            passed += part
            record = ours.chip.cores(index).record
            if not can_move(record):
                stuck = waiting_threads(record) or any(is_stuck(record, core) for core in self.entries)
                self.finished = "stuck" if stuck else "done"
                if self.at_end:  # the other side may need longer
                    yield clock(max(self.every or EVERY, passed))
            elif passed >= self.max_clocks:
                self.finished = "limit"
            if self.finished or not self.at_end:
                for place in looks:
                    for span in self.spans:
                        yield read(place + span.address, span.size)


class CompareError(BhemuError):
    """A program that cannot be run through the windows of the host alone."""
