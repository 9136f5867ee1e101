"""What the three functions of a Python program do, noted down while bhemu runs them, as code for the T cores.

Words become `.ttinsn`; stores to configuration and MOP registers become stores; waiting for a semaphore becomes a loop.
Fields that `core.config[...]` changes with RMWCIB are stored with their whole word where only one thread changes that
word: the official simulator refuses RMWCIB on most words (K11).
The functions are Python and the cores are not, so a function must do the same things whatever the machine answers: what
it reads of the machine's state is taken as bhemu has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from bhemu.api.tile import Tile
from bhemu.compare.session import CompareError, Session
from bhemu.compare.stub import Stub, words_of_one_thread
from bhemu.formats import encode
from bhemu.isa.registers import FIRST_SHARED_WORD, field
from bhemu.machine.agents import T0
from bhemu.machine.state import L1_SIZE
from bhemu.programs.program import Program
from bhemu.programs.run import random_input
from bhemu.programs.schedule import Schedule
from bhemu.programs.thread_core import Config, Core

Array = np.ndarray[Any, Any]

_SEMAPHORE_VALUES: Final = range(16)
_ALIGNMENT: Final = 64


class _Config(Config):
    """Notes writes and stores of configuration."""

    def write(self, values: dict[str, int]) -> None:
        core = self._core
        assert isinstance(core, NotingCore)
        with core.merging():
            super().write(values)

    def store(self, values: dict[str, int]) -> None:
        super().store(values)
        core = self._core
        assert isinstance(core, NotingCore)
        bank = int(core.tile.record.thread_config[core.thread, 0]) & 1
        for word in sorted({field(name).word for name in values}):
            kept = 0 if word >= FIRST_SHARED_WORD else bank
            core.stub.config(bank, word, int(core.tile.record.config[kept, word]))


class NotingCore(Core):
    """A thread's core that also writes down what it does as code of a T core."""

    def __init__(self, tile: Tile, program: Program, thread: int) -> None:
        super().__init__(tile, program, thread)
        self.config = _Config(self)
        self.stub = Stub()
        self._merging = False

    @contextmanager
    def merging(self) -> Iterator[None]:
        """Words that are issued inside are the host's way to change fields."""
        self._merging = True
        try:
            yield
        finally:
            self._merging = False

    def _push(self, word: int) -> None:
        self.stub.instruction(word, merges=self._merging)
        super()._push(word)

    def _set_mop(self, words: list[int]) -> None:
        self.stub.mop(words)
        super()._set_mop(words)

    def wait_idle(self) -> None:
        self.stub.wait_idle()
        super().wait_idle()

    def semaphore_post(self, index: int) -> None:
        self.stub.semaphore(int(index), get=False)
        super().semaphore_post(index)

    def semaphore_get(self, index: int) -> None:
        self.stub.semaphore(int(index), get=True)
        super().semaphore_get(index)

    def semaphore(self, index: int) -> int:
        self._mark()
        raise CompareError(
            f"the program reads semaphore {int(index)} in Python, which no core can do in its place",
            remedy="wait with core.wait_until(lambda: core.tile.semaphores[...] ...), or compare an ELF file",
        )

    def wait_until(self, condition: Callable[[], bool], what: str = "a condition of the program") -> None:
        self._mark()
        index, values = self._semaphore_of(condition, what)
        self.stub.wait_semaphore(index, values)
        super().wait_until(condition, what)

    def _semaphore_of(self, condition: Callable[[], bool], what: str) -> tuple[int, set[int]]:
        """The semaphore that a condition polls, and the values that it waits for."""
        semaphores = self.tile.record.sync.semaphore
        found = []
        for index in range(len(semaphores)):
            value = int(semaphores[index])
            good = set()
            for candidate in _SEMAPHORE_VALUES:
                semaphores[index] = candidate
                if condition():
                    good.add(candidate)
            semaphores[index] = value
            if 0 < len(good) < len(_SEMAPHORE_VALUES):
                found.append((index, good))
        if len(found) != 1:
            raise CompareError(
                f"the program waits for {what}, which is not the value of one semaphore",
                remedy="wait for one semaphore at a time, or compare an ELF file",
            )
        return found[0]


def capture(
    program: Program,
    inputs: Mapping[str, Array] | None = None,
    *,
    settings: Mapping[str, str] | None = None,
    seed: int = 0,
    allow_open: bool = False,
) -> Session:
    """Run a program on bhemu and make a session of it; arguments as for `run_program`.

    Raises:
        CompareError: a function does what no code of a T core can do in its place, or the code does not fit into L1.
        BhemuError: the program is wrong, or refused.
    """
    given = dict(inputs or {})
    program.choose(settings or {})
    program.bind(given)
    rng = np.random.default_rng(seed)
    tile = Tile(allow_open=allow_open)
    pieces = []
    for tensor in program.inputs:
        values = given.get(tensor.name)
        if values is None:
            values = random_input(tensor, rng)
        content = encode(values, tensor.format, tile_shape=tensor.tile_shape)
        tile.l1[tensor.address : tensor.address + len(content)] = content
        pieces.append((tensor.address, content.tobytes()))
        tensor.values = tile.read_tensor(tensor.address, tensor.shape, tensor.format, tile_shape=tensor.tile_shape)
    schedule = Schedule(tile, program, core_type=NotingCore)
    schedule.run()
    taken = [(tensor.address, tensor.address + tensor.bytes) for tensor in program.tensors.values()]
    entries = {}
    cores = [core for core in schedule.cores if isinstance(core, NotingCore)]
    whole = words_of_one_thread([core.stub for core in cores])
    for core in cores:
        code = core.stub.code(whole)
        at = _room(taken, len(code), core.thread)
        taken.append((at, at + len(code)))
        pieces.append((at, code))
        entries[T0 + core.thread] = at
    return Session(pieces, entries)


def _room(taken: list[tuple[int, int]], size: int, thread: int) -> int:
    """The highest free range of L1 of at least that many bytes."""
    end = L1_SIZE
    for first, last in sorted(taken, reverse=True):
        if (end - size) & -_ALIGNMENT >= last:
            break
        end = min(end, first)
    at = (end - size) & -_ALIGNMENT
    if at < 0:
        raise CompareError(
            f"the words of thread {thread} take {size:,} bytes, and L1 has no free range of that size",
            remedy="use smaller tensors",
        )
    return at
