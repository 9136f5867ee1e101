"""The private tiles on which `bhemu.numerics` executes instructions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bhemu.isa.registers import field
from bhemu.machine.state import ALL_CONFIG_DIRTY, new_tiles
from bhemu.numerics.loops import PLAN_WORDS, SEED, seed_loop
from bhemu.tensix.coprocessor import Coprocessor, ensure_handlers

U32 = NDArray[np.uint32]

DATA = PLAN_WORDS
"""First word of L1 after the plan."""


class Unit:
    """A tile that is used again and again for one kind of operation."""

    def __init__(self) -> None:
        self._tiles = new_tiles(1)
        self.record: Any = self._tiles[0]
        self.coprocessor = Coprocessor(self._tiles)
        self._set: dict[str, int] = {}
        self.words: U32 = self.record["l1_u32"]
        self.bytes: NDArray[np.uint8] = self.record["l1"]

    def configure(self, thread: int, values: dict[str, int]) -> None:
        """Give Config fields (bank 0) and ThreadConfig fields of a thread their values."""
        for name, value in values.items():
            if self._set.get(name) == value:
                continue
            found = field(name)
            words = self.record["config"][0] if found.space == "config" else self.record["thread_config"][thread]
            words[found.word] = int(words[found.word]) & ~found.mask | value << found.lsb
            self.record["config_dirty"][0] = ALL_CONFIG_DIRTY
            self._set[name] = value

    def seed(self, seed: int) -> None:
        """Start the pseudo-random generators of all lanes (math V4)."""
        self.words[SEED] = seed & 0xFFFFFFFF
        self.coprocessor.execute_loop("numerics_seed", seed_loop)

    def execute(self, name: str, loop: Callable[..., int], opcodes: Iterable[int], plan: dict[int, int]) -> None:
        """Run one of `loops.py` with a plan.

        Args:
            opcodes: of the instructions that the loop executes.
            plan: position in the plan -> value.

        Raises:
            BhemuError: an instruction was refused.
        """
        ensure_handlers(opcodes)
        for position, value in plan.items():
            self.words[position] = value
        self.coprocessor.execute_loop(name, loop)


_local = threading.local()


@contextmanager
def unit(kind: str, prepare: Callable[[Unit], None] | None = None) -> Iterator[Unit]:
    """This thread's tile for a kind of operation; one whose instruction was refused is not used again.

    Args:
        kind: of operation.
        prepare: what a new tile needs besides the state after reset.
    """
    idle: dict[str, Unit] = _local.__dict__.setdefault("idle", {})
    taken = idle.pop(kind, None)
    if taken is None:
        taken = Unit()
        if prepare is not None:
            prepare(taken)
    yield taken
    idle[kind] = taken
