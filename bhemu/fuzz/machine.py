"""A tile that executes one program after another: whole programs in compiled code, or in any other of bhemu's ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from bhemu.conformance import machine_state
from bhemu.conformance.vector_file import State
from bhemu.errors import BhemuError
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.compiler import JIT
from bhemu.machine.state import L1_SIZE, new_tiles, reset
from bhemu.machine.types import AnyInt, Int, LogAddress, Table, TileRecord
from bhemu.tensix.coprocessor import Coprocessor, entry_of
from bhemu.tensix.frontend.fetch import fifo_push
from bhemu.tensix.frontend.observer import NO_LOG
from bhemu.tensix.frontend.run import NEEDS_HANDLER, STOPPED, drain
from bhemu.tile import cores  # gives the coprocessor the registers around it

assert cores

PAGE: Final = 4096
WAITS: Final = 9
"""A word of the script waits for something that no other word will do."""
_COUNT, _NEXT, _PUSHED, _WORDS = 0, 1, 2, 3  # places in a script

Array = np.ndarray[Any, Any]
Words = Sequence[tuple[int, int]]
"""(thread, instruction word) in the order of execution."""


def script_entry(t: TileRecord, table: Table, script: LogAddress, _: Int) -> AnyInt:
    """Execute the words of a script one after the other, each to its end; the next call goes on where one has ended."""
    count = load_i64(script, _COUNT)
    at = load_i64(script, _NEXT)
    while at < count:
        item = load_i64(script, _WORDS + at)
        thread = item >> 32
        if load_i64(script, _PUSHED) == 0:
            fifo_push(t, thread, item & 0xFFFFFFFF, 0)
            store_i64(script, _PUSHED, 1)
        status = drain(t, table, thread, NO_LOG)
        if status != STOPPED:
            return status
        if t.frontend.gate_full[thread] != 0 or t.frontend.wait_word[thread] != 0:
            return WAITS
        store_i64(script, _PUSHED, 0)
        at += 1
        store_i64(script, _NEXT, at)
    return STOPPED


@dataclass(frozen=True, eq=False)
class Program:
    """Instruction words, and what L1 holds before them.

    Attributes:
        items: int64, in the order of execution: the thread in the bits above the word's 32.
        data: (address, bytes) in L1; all else is zero.
    """

    items: Array
    data: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def of(cls, words: Words, data: tuple[tuple[int, bytes], ...] = ()) -> Program:
        """A program from threads and words."""
        return cls(np.array([thread << 32 | word for thread, word in words], np.int64), data)

    @property
    def words(self) -> list[tuple[int, int]]:
        """Threads and words."""
        return [(item >> 32, item & 0xFFFFFFFF) for item in self.items.tolist()]

    def behind(self, other: Array) -> Program:
        """The program with more items at its end."""
        return Program(np.concatenate([self.items, other]), self.data)

    def __len__(self) -> int:
        return len(self.items)


@dataclass
class Ran:
    """What came of a program.

    Attributes:
        executed: words that were executed.
        refusal: why the next one was refused.
        waits: the next one waits.
    """

    executed: int
    refusal: BhemuError | None = None
    waits: bool = False

    @property
    def is_whole(self) -> bool:
        """Every word was executed."""
        return self.refusal is None and not self.waits


@dataclass
class FuzzTile:
    """One tile, used again and again."""

    tiles: np.ndarray[Any, Any] = field(default_factory=new_tiles)

    def __post_init__(self) -> None:
        self.coprocessor = Coprocessor(self.tiles)
        self.record: Any = self.tiles[0]

    def prepare(self, data: tuple[tuple[int, bytes], ...]) -> None:
        """State after reset, with this in L1."""
        reset(self.tiles)
        machine_state.clear_l1(self.tiles)
        for address, content in data:
            self.record.l1[address : address + len(content)] = np.frombuffer(content, np.uint8)

    def continue_with(self, items: Array) -> Ran:
        """Execute items of a program; what a word that is refused or waits has changed stays, the word does not."""
        script = np.concatenate([np.array([len(items), 0, 0]), items])
        address: Any = script.ctypes.data if JIT else script
        coprocessor = self.coprocessor
        try:
            while True:
                status = entry_of("fuzz_script", script_entry, 3).call(
                    coprocessor.target, coprocessor.table, address, 0
                )
                if status != NEEDS_HANDLER:
                    break
                coprocessor.supply()
            if status == STOPPED:
                return Ran(len(items))
            if status == WAITS:
                self._drop_waiting()
                return Ran(int(script[_NEXT]), waits=True)
            raise coprocessor.fault()
        except BhemuError as error:
            self._drop_waiting()
            return Ran(int(script[_NEXT]), refusal=error)

    def run(self, program: Program) -> Ran:
        """Execute a program from reset."""
        self.prepare(program.data)
        return self.continue_with(program.items)

    def state(self) -> State:
        """Architectural state as the arrays of the conformance vectors, with all of L1."""
        return machine_state.store(self.tiles, 0, L1_SIZE)

    def _drop_waiting(self) -> None:
        frontend = self.record["frontend"]
        for name in ("gate_full", "wait_word", "fifo_count", "ready_count"):
            frontend[name][:] = 0
