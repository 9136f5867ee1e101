"""Observers of a tile's agents, called from inside its schedule (schedule.py)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

from bhemu.machine.buffer_memory import store_i64
from bhemu.machine.codegen import JIT
from bhemu.machine.dispatch import call_handler
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, LogAddress, Table, TileRecord
from bhemu.tensix.frontend.observer import NO_OBSERVER, WordObserver, never_full

# What the buffer of every observer of a tile begins with, for a chip (chip/clock/run.py)
ENTRY: Final = 0
"""Address of the compiled function that advances the tile, `f(t, table, log)`."""
HOW: Final = 1
"""What it is to do (schedule.py)."""
RESERVED: Final = 2


@dataclass(frozen=True)
class TileObserver:
    """What is called when agents move; kernels.

    Attributes:
        words: observer of the coprocessor's words.
        one_by_one: a core's turn is one instruction, so that each can be seen. The order of all accesses is the same.
        is_full: `is_full(log)`: there may be no room for another turn.
        begin: `begin(t, log)`: the host, or another tile, may have changed anything.
        before_core: `before_core(t, log, core)`: the core's turn begins.
        after_core: `after_core(t, log, core, reason)`: it has had it, or falls asleep; see `turn_ends.after_run`.
        before_words: `before_words(t, log)`: the coprocessor's turn begins.
        after_words: `after_words(t, log, first, moved)`: it has moved in `moved` rounds from `first` on, which took no
            time.
    """

    words: WordObserver
    one_by_one: bool
    is_full: Any
    begin: Any
    before_core: Any
    after_core: Any
    before_words: Any
    after_words: Any


@kernel(forceinline=True)
def _ignore(t: TileRecord, log: LogAddress) -> None:
    pass


@kernel(forceinline=True)
def _ignore_core(t: TileRecord, log: LogAddress, core: Int) -> None:
    pass


@kernel(forceinline=True)
def _ignore_turn(t: TileRecord, log: LogAddress, core: Int, reason: Int) -> None:
    pass


@kernel(forceinline=True)
def _ignore_words(t: TileRecord, log: LogAddress, first: Int, moved: Int) -> None:
    pass


NO_TILE_OBSERVER: Final = TileObserver(
    NO_OBSERVER, False, never_full, _ignore, _ignore_core, _ignore_turn, _ignore, _ignore_words
)
"""The observer of the plain schedule."""


class Observer(Protocol):
    """An observer of one tile as the host has it: `Cores.observe`.

    Attributes:
        log_address: of its buffer.
    """

    log_address: int

    def advance(self, target: Any, table: Table, how: Int) -> int:
        """Advance a tile alone, as `schedule.advance_tile_entry` does; returns a status of the schedule."""

    def take_away(self) -> None:
        """Its buffer is full."""


PLAIN_OBSERVERS: Final[dict[int, Observer]] = {}
"""Observers by `log_address`, for plain Python."""

if JIT:

    @kernel
    def call_observer(log: LogAddress, t: TileRecord, table: Table, how: Int) -> AnyInt:
        """Advance a tile by the schedule of the observer whose buffer is at `log`."""
        store_i64(log, HOW, how)
        return call_handler(log, ENTRY, t, table, log)

else:

    def call_observer(log: LogAddress, t: TileRecord, table: Table, how: Int) -> int:
        """Advance a tile by the schedule of the observer whose buffer is at `log`."""
        return PLAIN_OBSERVERS[int(log)].advance(t, table, how)
