"""The coprocessor as the host sees it: words in, exceptions out.

A `Coprocessor` owns nothing but the address of a tile record; compiled handlers are shared by all of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from bhemu.compiling import progress as compile_progress
from bhemu.errors import BhemuError, UndefinedBehavior, Unimplemented
from bhemu.isa.assembler import disassemble
from bhemu.isa.instructions import BY_OPCODE
from bhemu.machine import dispatch
from bhemu.machine.compiler import JIT, Entry, compile_entry, is_compiled, on_compile
from bhemu.machine.dispatch import MACRO_CYCLE, PLACES
from bhemu.machine.faults import FAULTS
from bhemu.machine.origin import DEBUG_PORT_LINE
from bhemu.machine.state import TILE, offset_of
from bhemu.tensix import units  # registers every instruction
from bhemu.tensix.frontend import run as clock
from bhemu.tensix.frontend.gate import wait_left_entry
from bhemu.tensix.frontend.macro_cycle import macro_cycle_entry
from bhemu.tensix.instruction import HANDLERS
from bhemu.tensix.windows import window_load_entry, window_store_entry

assert units

on_compile(compile_progress.tell, unless_asked=True)

THREAD_NAMES = ("unpack", "math", "pack")

_entries: dict[str, Entry] = {}
_handlers: list[Entry | None] = [None] * PLACES
_addresses = np.zeros(PLACES, np.int64)
_functions: list[Any] = [None] * PLACES


def entry_of(name: str, function: Any, arguments: int) -> Entry:
    """The entry of a function on a tile's record; compiled, or fetched from the cache, the first time."""
    entry = _entries.get(name)
    if entry is None:
        with compile_progress.getting(name):
            entry = _entries[name] = compile_entry(name, function, arguments=arguments)
    return entry


def ensure_handlers(opcodes: Iterable[int]) -> None:
    """Compile the handlers of these opcodes, or fetch them from the cache.

    Raises:
        UndefinedBehavior: no instruction has the opcode.
        Unimplemented: bhemu does not have the instruction yet.
    """
    for opcode in opcodes:
        if opcode == clock.LOADMACRO:
            _fill(MACRO_CYCLE, entry_of("macro_cycle", macro_cycle_entry, 2))
        if _handlers[opcode] is not None:
            continue
        handler = HANDLERS.get(opcode)
        if handler is None:
            row = BY_OPCODE[opcode]
            if row is None:
                raise UndefinedBehavior(
                    f"opcode {opcode:#04x} is not a Blackhole instruction",
                    remedy="check the word: .ttinsn words in a RISC-V stream are rotated left by two bits",
                )
            raise Unimplemented(f"{row.mnemonic} is not built yet", remedy="`bhemu support` lists what is")
        name = handler.instruction.mnemonic
        with compile_progress.getting(name):
            entry = compile_entry(name, handler.function, source=handler.source)
        _fill(opcode, entry)


_provided: dict[int, tuple[str, Any, int]] = {}


def provide(place: int, name: str, function: Any, arguments: int = 2) -> None:
    """Say which function belongs to a place of the table (machine/dispatch.py); it is compiled when first needed."""
    _provided[place] = (name, function, arguments)


def ensure_place(place: int) -> None:
    """Compile the function of a place, or fetch it from the cache."""
    if _handlers[place] is None:
        if place not in _provided:
            raise Unimplemented(
                "the memory-mapped registers around the coprocessor are not there",
                remedy="use bhemu.Tile, which has them",
            )
        _fill(place, entry_of(*_provided[place]))


def expect(opcodes: Iterable[int], places: Iterable[int] = ()) -> None:
    """Say which handlers and places a program will need, so that progress of compilation can say how many are left."""
    handlers = (HANDLERS[opcode] for opcode in opcodes if opcode in HANDLERS and _handlers[opcode] is None)
    compile_progress.expect(handler.instruction.mnemonic for handler in handlers)
    compile_progress.expect(_provided[place][0] for place in places if _handlers[place] is None)


def not_compiled(opcodes: Iterable[int], places: Iterable[int] = ()) -> tuple[list[int], list[int]]:
    """Those of these handlers and places that the cache does not have."""

    def is_there(opcode: int) -> bool:
        handler = HANDLERS[opcode]
        return is_compiled(handler.instruction.mnemonic, handler.function, source=handler.source)

    def is_filled(place: int) -> bool:
        name, function, arguments = _provided[place]
        return is_compiled(name, function, arguments=arguments)

    return (
        [number for number in opcodes if number in HANDLERS and _handlers[number] is None and not is_there(number)],
        [place for place in places if place in _provided and _handlers[place] is None and not is_filled(place)],
    )


def given(call: Callable[..., int], record: Any, table: Any) -> Callable[..., int]:
    """The call of an entry with a record and a table of handlers, made into what C takes once and not in each call."""
    return partial(call, *((ctypes.c_void_p(record), ctypes.c_int64(table)) if JIT else (record, table)))


def set_value(place: int, value: Any) -> None:
    """Put an address (with Numba disabled: an object) into a place that is not a function."""
    _addresses[place] = value if JIT else 0
    _functions[place] = value


def _fill(place: int, entry: Entry) -> None:
    """Put a function into the table of handlers."""
    _handlers[place] = entry
    _addresses[place] = entry.address
    _functions[place] = entry.call


_table: Any = _addresses.ctypes.data if JIT else _functions
if not JIT:
    dispatch.PLAIN_TABLE = _functions


def copy_table() -> np.ndarray[Any, Any]:
    """The addresses of all handlers that there are, for another thread."""
    return _addresses.copy()


def keys() -> dict[int, str]:
    """Names of the machine code of the functions in the table, by place (machine/compiler.py)."""
    return {place: entry.key for place, entry in enumerate(_handlers) if entry is not None}


def wait_left(record: Any, thread: int) -> int:
    """What still holds the wait that a thread of a tile has latched; see `bhemu.tensix.frontend.gate.wait_left`."""
    tile = record["l1"].ctypes.data - offset_of(TILE, "l1") if JIT else record
    return int(entry_of("wait_left", wait_left_entry, 2).call(tile, thread, 0))


class Coprocessor:
    """Drives the three Tensix threads of one tile.

    Args:
        tiles: record array from `bhemu.machine.state.new_tiles`.
        index: which tile of it.
    """

    def __init__(self, tiles: np.ndarray[Any, Any], index: int = 0) -> None:
        self._tiles = tiles
        self.record: Any = tiles[index]
        self.frontend: Any = self.record.frontend
        """The front ends' part of the record; to look it up there takes as long as a short instruction."""
        self._gate_full = self.frontend.gate_full
        self._macro = self.record.macro
        self._tile: Any = tiles.ctypes.data + index * tiles.dtype.itemsize if JIT else self.record
        self.record.handlers = _addresses.ctypes.data
        self.carry_out: Callable[[], None] | None = None
        """Carries out the tile's pending NoC request; a chip sets it."""
        self.refusal: BhemuError | None = None
        """Why it has refused, until compiled code has refused, too."""
        self._push = entry_of("fifo_push", clock.push_entry, 3)
        self._run = entry_of("run", clock.run_entry, 2)
        self._drain = entry_of("drain", clock.drain_entry, 2)

    def push(self, thread: int, word: int, line: int = 0) -> bool:
        """Append a word to the thread's FIFO; False when the FIFO is full (math Y3)."""
        return bool(self._push.call(self._tile, thread, word, line))

    def run(self, cycles: int) -> int:
        """Clock the threads until nothing moves or `cycles` have passed; returns STOPPED or CYCLES_SPENT.

        Raises:
            BhemuError: an instruction was refused; its category is the class.
        """
        start = int(self.record.clock)
        while True:
            spent = int(self.record.clock) - start
            status = self._run.call(self._tile, _table, cycles - spent)
            if not self._resume(status):
                return status

    def drain(self, thread: int) -> bool:
        """Execute all words that the thread has queued; False when a word still waits at the gate.

        Raises:
            BhemuError: an instruction was refused.
        """
        while True:
            status = self._drain.call(self._tile, _table, thread)
            if not self._resume(status):
                return not self._gate_full[thread]

    def settle(self) -> None:
        """Advance until what SFPLOADMACRO has scheduled is done, or waits for further vector instructions.

        Raises:
            BhemuError: a scheduled instruction was refused.
        """
        if self._macro["pending"]:
            entry = entry_of("settle", clock.settle, 2)
            while self._resume(entry.call(self._tile, _table, 0)):
                pass

    def repeat(self, thread: int, word: int, count: int) -> None:
        """Execute one word `count` times through the full dispatch, for measurements."""
        entry = entry_of("repeat", clock.repeat_entry, 3)
        ensure_handlers([word >> 24])
        self._resume(entry.call(self._tile, _table, thread << 32 | word, count))

    def play(self, script: int, count: int) -> None:
        """Run a script of words for all threads, `count` times, for measurements; see `frontend.run.play`."""
        entry = entry_of("play", clock.play_entry, 3)
        while self._resume(entry.call(self._tile, _table, script, count)):
            self.run(clock.CYCLES_IN_A_SCRIPT)  # finish the pass that found a handler missing, then begin again

    def execute_loop(self, name: str, loop: Any) -> None:
        """Call `loop(t, table, 0, 0)`, which executes instructions through the table of handlers by itself.

        Args:
            name: names the loop in the compile cache.
            loop: returns a status as `frontend.run.drain` does. It begins again when a handler was missing.

        Raises:
            BhemuError: an instruction was refused.
        """
        entry = entry_of(name, loop, 3)
        while self._resume(entry.call(self._tile, _table, 0, 0)):
            pass

    def load(self, core: int, address: int, size: int = 4) -> int:
        """Load from the GPR or configuration window as a core; see `bhemu.tensix.windows.window_load`.

        Raises:
            BhemuError: the load was refused.
        """
        value = entry_of("window_load", window_load_entry, 3).call(self._tile, core, address, size)
        if value < 0:
            raise self.recorded()
        return int(value)

    def store(self, core: int, address: int, value: int) -> None:
        """Store a word to the GPR or configuration window as a core; see `bhemu.tensix.windows.window_store`.

        Raises:
            BhemuError: the store was refused.
        """
        if entry_of("window_store", window_store_entry, 3).call(self._tile, core, address, value):
            raise self.recorded()

    @property
    def target(self) -> Any:
        """What entries take for the tile: its address, or the record itself when Numba is disabled."""
        return self._tile

    @property
    def table(self) -> Any:
        """The table of handlers, as entries take it."""
        return _table

    def supply(self) -> None:
        """Compile what compiled code has asked for, or have its NoC request carried out.

        Raises:
            BhemuError: there is no such instruction.
        """
        self._resume(clock.NEEDS_HANDLER)

    def call_of(self, place: int) -> Callable[[int], int]:
        """The function of a place that `ensure_place` has filled, to be called with what follows the table."""
        return given(_functions[place], self._tile, _table)

    def call_place(self, place: int, a: int, b: int) -> int:
        """Call the function of a place that `ensure_place` has filled; returns its status."""
        return int(_functions[place](self._tile, a, b))

    def _resume(self, status: int) -> bool:
        """True when the call is to be made again."""
        if status == clock.NEEDS_HANDLER:
            record = self.record
            if record.noc_pending:
                assert self.carry_out is not None  # a lone tile refuses such requests
                self.carry_out()
                return True
            if record.needs_place:
                place, record.needs_place = int(record.needs_place), 0
                ensure_place(place)
                return True
            opcode = int(record.fault_word) >> 24
            try:
                ensure_handlers([opcode])
            except BhemuError as error:
                raise self._located(error) from None
            record.fault_thread = record.fault_line = 0
            record.fault_word = np.uint32(0)
            return True
        if status == clock.FAULTED:
            raise self.fault()
        return False

    def fault(self) -> BhemuError:
        """The exception for the fault that compiled code recorded; clears it, so that the machine can continue."""
        return self._located(self.recorded())

    def recorded(self) -> BhemuError:
        """The same without an instruction to blame."""
        record = self.record
        known = FAULTS[int(record.fault_code)]
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            record.fault_code = 0
            return refusal
        text = known.text.format(*(int(v) for v in record.fault_value))
        record.fault_code = 0
        return known.error(f"{text} [{known.rule}]", remedy=known.remedy)

    def _located(self, error: BhemuError) -> BhemuError:
        """The same error, with the instruction and thread in front; the refused word leaves the gate."""
        record = self.record
        thread, word, line = int(record.fault_thread), int(record.fault_word), int(record.fault_line)
        error.thread, error.word, error.line = thread, word, line
        where = f"thread {thread}, {THREAD_NAMES[thread]}"
        if line == DEBUG_PORT_LINE:
            error.line = None
            where += ", pushed through the debug port"
        if record.fault_scheduled:
            where += ", scheduled by SFPLOADMACRO"
            record.fault_scheduled = 0
        else:
            record.frontend.gate_full[thread] = 0
        error.message = f"{disassemble(word)} ({where}): {error.message}"
        return error
