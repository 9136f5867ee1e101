"""What happens to L1, the NoC and circular buffers of a tile, in the order in which the machine did it.

The rows of the cores and those of the coprocessor's words are merged; what a check needs of them becomes an event.
Loads and stores of local RAM, arithmetic and branches are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.analysis.access import access
from bhemu.analysis.hazard import Place, short_text
from bhemu.isa import niu
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.memory_map import bounds, region
from bhemu.isa.riscv_words import EBREAK
from bhemu.isa.tile_registers import tile_register
from bhemu.machine.agents import CORE_NAMES, T0, B
from bhemu.machine.state import L1_SIZE, THREADS
from bhemu.recording import core_columns as core_column
from bhemu.recording import log as column
from bhemu.recording.circular_buffers import COUNTERS_END, MMIO, counter_at
from bhemu.recording.core_log import is_t_core
from bhemu.recording.noc_requests import BASES, END, STEP, Initiators, Request, is_store
from bhemu.recording.parts import Part

Array = np.ndarray[Any, Any]

CORE: Final = "core"
"""Who accesses L1: a core,"""
UNPACKER: Final = "unpacker"
PACKER: Final = "packer"
NIU: Final = "NoC"
"""the network interface, for a request of a core."""

_SOFT_RESET: Final = tile_register("control", "SOFT_RESET_0").span.start
_SEMAPHORES: Final = tile_register("sync", "SEMAPHORE").span
_SEMAPHORE_COUNT: Final = 8
_SYNC, _SYNC_END = region("sync").base, region("sync").end
_MAILBOXES, _MAILBOXES_END = bounds("mailbox")
_MAILBOX_BYTES: Final = 0x1000
_GPRS: Final = region("gpr").base
_GPR_BYTES: Final = 0x100
_LOADS: Final = (0x03, 0x07)
_STORES: Final = (0x23, 0x27)
_ATOMIC: Final = 0x2F
_HALF: Final = 0xFFFF
_UNPACR, _PACR = INSTRUCTIONS["UNPACR"].opcode, INSTRUCTIONS["PACR"].opcode


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes of L1 are read or written.

    Attributes:
        who: CORE, UNPACKER or PACKER.
        core: that did it, or that feeds the thread which did.
        begin, end: bytes.
        writes: they are written, not read.
        value: what a core has loaded or stored; -1: unknown.
        place: for reports.
        push: words that the core had pushed to its thread before; of a thread the number of the word's push.
        thread: whose unit it is; -1: the core itself.
    """

    who: str
    core: int
    begin: int
    end: int
    writes: bool
    value: int
    place: Place
    push: int
    thread: int = -1


@dataclass(frozen=True, slots=True)
class Started:
    """A core has started a NoC request; `push` as in `Touch`."""

    request: Request
    place: Place
    push: int


@dataclass(frozen=True, slots=True)
class CounterRead:
    """A core has loaded a counter of a network interface (N20)."""

    core: int
    noc: int
    index: int
    value: int


@dataclass(frozen=True, slots=True)
class Pages:
    """A counter of a circular buffer was loaded or stored (K51).

    Attributes:
        core: that did it, or that feeds the thread which did.
        stream: number of the buffer.
        received: the count of pages received, not that of pages acknowledged.
        stored: the value was stored, not loaded.
        value: 16 bits.
        place: for reports.
        row: of the part, for a load.
        round: in which it happened.
        push, thread: as in `Touch`.
    """

    core: int
    stream: int
    received: bool
    stored: bool
    value: int
    place: Place
    row: int
    round: int
    push: int
    thread: int = -1


@dataclass(frozen=True, slots=True)
class Halted:
    """A core has executed `ebreak`: its program is over."""

    core: int
    place: Place


@dataclass(frozen=True, slots=True)
class Sync:
    """Something that orders agents.

    Attributes:
        name: of what is handed over.
        core: that did it, or that feeds the thread.
        push, thread: as in `Touch`.
        acquires: the agent learns what was known to those who had released `name`.
        releases: others learn by `name` what the agent knows.
        later: it learns that when its next word executes.
        of_thread: it learns what this thread knows; -1: of none.
    """

    name: object
    core: int
    push: int
    thread: int = -1
    acquires: bool = False
    releases: bool = False
    later: bool = False
    of_thread: int = -1


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows were left out before, because there is a limit: what was under way is not known any more."""


Event = Touch | Started | CounterRead | Pages | Halted | Sync | Gap


class TileEvents:
    """Follows one tile through the parts of its recording."""

    def __init__(self) -> None:
        self._words = 0
        self._registers: list[dict[int, int]] = [{} for _ in range(THREADS)]

    def events(self, part: Part) -> Iterator[Event]:
        """The events of the next part, in order."""
        log = part.log
        initiators = Initiators(part.initiators, are_known=not log.dropped)
        words = log.tensix.rows
        before = self._words + log.tensix_dropped
        self._words = before + len(words)
        chosen = np.flatnonzero(_wanted_rows(log.rows))
        wanted = np.flatnonzero(_wanted_words(words))
        numbers = (wanted + before).tolist()
        kept = words[wanted].tolist()
        at = 0
        rows_left_out, words_left_out = log.dropped > 0, log.tensix_dropped > 0
        if rows_left_out or words_left_out:
            yield self._gap()
        for index, row in zip(chosen.tolist(), log.rows[chosen].tolist(), strict=True):
            if words_left_out and row[core_column.TENSIX_ROWS] > before:
                yield self._gap()
                words_left_out = False
            while at < len(kept) and numbers[at] < row[core_column.TENSIX_ROWS]:
                yield from self._word(kept[at], part.first_push)
                at += 1
            if rows_left_out:
                yield self._gap()
                rows_left_out = False
            yield from self._row(row, index, initiators)
        if words_left_out:
            yield self._gap()
        for word in kept[at:]:
            yield from self._word(word, part.first_push)
        if rows_left_out:
            yield self._gap()

    def _gap(self) -> Gap:
        for registers in self._registers:
            registers.clear()
        return Gap()

    # --- cores --------------------------------------------------------------------------------------------------------

    def _row(self, row: list[int], index: int, initiators: Initiators) -> Iterator[Event]:
        address, code = row[core_column.ADDRESS], row[core_column.CODE]
        opcode = code >> 32 & 0x7F
        core = row[core_column.WHO] & 7
        push = row[core_column.DETAIL] & 0xFFFFFFFF
        if row[core_column.WHO] >> 4 & 0xF == core_column.RESTARTED:
            yield Sync("reset", core, push, acquires=True)
        elif address < 0:
            yield Halted(core, place_of(row, "ebreak"))
        elif address < L1_SIZE:
            size = row[core_column.WHO] >> 8 & 0xF
            if opcode in _STORES or opcode in _LOADS or opcode == _ATOMIC:
                writes = opcode in _STORES
                verb = "store to" if writes else "load of"
                place = place_of(row, f"{verb} {address:#x}")
                value = row[core_column.VALUE]
                yield Touch(CORE, core, address, address + size, writes, value, place, push)
                if opcode == _ATOMIC:
                    yield Touch(CORE, core, address, address + size, True, -1, place, push)
        elif BASES[0] <= address < END:
            if is_store(code):
                request = initiators.store(row)
                if request is not None:
                    yield Started(request, place_of(row, request_text(request)), push)
            elif opcode in _LOADS:
                noc, offset = divmod(address - BASES[0], STEP)
                if niu.COUNTERS_FIRST <= offset < niu.COUNTERS_END:
                    number = (offset - niu.COUNTERS_FIRST) // 4
                    yield CounterRead(core, noc, number, row[core_column.VALUE] & 0xFFFFFFFF)
        elif (counter := counter_at(address)) is not None:
            stream, received = counter
            stored = opcode in _STORES
            text = f"{'sets' if stored else 'reads'} {counter_name(stream, received=received)}"
            value = row[core_column.VALUE] & _HALF
            at = row[core_column.ROUND]
            yield Pages(core, stream, received, stored, value, place_of(row, text), index, at, push)
        elif address == _SOFT_RESET:
            yield Sync("reset", core, push, releases=True)
        elif _MAILBOXES <= address < _MAILBOXES_END:
            # Both ends of a mailbox have one name; a load takes what the other end has sent.
            other = (address - _MAILBOXES) // _MAILBOX_BYTES
            ends = frozenset((CORE_NAMES[core], CORE_NAMES[other]))
            yield Sync(("mailbox", ends), core, push, acquires=opcode in _LOADS, releases=opcode in _STORES)
        elif address in _SEMAPHORES:
            yield Sync(("semaphore", (address - _SEMAPHORES.start) // 4), core, push, acquires=True, releases=True)
        elif _SYNC <= address < _SYNC_END:
            if is_t_core(core):
                yield Sync("pcbuf", core, push, acquires=True, of_thread=core - T0)
        elif address < _GPRS:
            yield Sync("pcbuf", core, push, releases=True)
        elif is_store(code):
            thread, offset = divmod(address - _GPRS, _GPR_BYTES)
            thread = thread if core == B else core - T0
            if 0 <= thread < THREADS:
                self._registers[thread][offset // 4] = row[core_column.VALUE] & 0xFFFFFFFF

    # --- the coprocessor ----------------------------------------------------------------------------------------------

    def _word(self, row: list[int], first_push: tuple[int, ...]) -> Iterator[Event]:
        thread, word = row[column.THREAD], row[column.WORD]
        core, push = T0 + thread, row[column.PUSH] + first_push[thread]
        begin, end = row[column.L1_BEGIN], row[column.L1_END]
        opcode = word >> 24
        if opcode in (_UNPACR, _PACR) and 0 <= begin < end <= L1_SIZE:
            writes = opcode == _PACR
            who = PACKER if writes else UNPACKER
            yield Touch(who, core, begin, end, writes, -1, word_place(row), push, thread)
        found = access(word)
        if (found.unit == "matrix" and (found.needs or found.touches)) or opcode == _UNPACR:
            yield Sync("source", core, push, thread, acquires=True, releases=True)
        elif found.unit == "sync":
            yield from _synchronised(found.mnemonic, found.operands, core, push, thread)
        if found.unit not in ("scalar", "config"):
            return
        registers = self._registers[thread]
        operands = found.operands
        if found.mnemonic == "SETDMAREG" and not operands.get("SetSignalsMode"):
            register, half = divmod(operands["RegIndex16b"], 2)
            value = registers.get(register, 0)
            kept = value & _HALF if half else value & ~_HALF
            registers[register] = kept | operands["value"] << 16 * half
        elif found.mnemonic == "STOREREG":
            counter = counter_at(MMIO + 4 * operands["RegAddr"])
            known = registers.get(operands["TdmaDataRegIndex"])
            if counter is not None and known is not None:
                stream, received = counter
                place = Place(thread, row[column.LINE], f"STOREREG to {counter_name(stream, received=received)}")
                at = row[column.CLOCK]
                yield Pages(core, stream, received, True, known & _HALF, place, -1, at, push, thread)
        else:
            for register in found.gpr_writes | found.gpr_later | found.gpr_config:
                registers.pop(register, None)


def _synchronised(name: str, operands: Mapping[str, int], core: int, push: int, thread: int) -> Iterator[Sync]:
    """What words about semaphores and mutexes hand over."""
    if name in ("ATGETM", "ATRELM"):
        taken = name == "ATGETM"
        yield Sync(("mutex", operands["mutex_index"]), core, push, thread, acquires=taken, releases=not taken)
        return
    for number in range(_SEMAPHORE_COUNT):
        if operands.get("sem_sel", 0) >> number & 1:
            if name in ("SEMPOST", "SEMGET"):
                yield Sync(("semaphore", number), core, push, thread, acquires=True, releases=True)
            elif name == "SEMWAIT":
                yield Sync(("semaphore", number), core, push, thread, later=True)


def _wanted_rows(rows: Array) -> Array:
    """bool [n]: rows of instructions that halt, or access L1 or a device that orders agents; and of restarts."""
    kinds = rows[:, core_column.WHO] >> 4 & 0xF
    address = rows[:, core_column.ADDRESS]
    near = (address >= 0) & (address < L1_SIZE)
    device = (address >= BASES[0]) & (address < COUNTERS_END) | (address == _SOFT_RESET)
    device |= (address >= _GPRS) & (address < _GPRS + THREADS * _GPR_BYTES)
    device |= (address >= _SYNC) & (address < _MAILBOXES_END)
    executed = (kinds == core_column.INSTRUCTION) | (kinds == core_column.DEVICE)
    halts = (rows[:, core_column.CODE] >> 32 & 0xFFFFFFFF) == EBREAK
    return np.asarray(executed & (near | device | halts) | (kinds == core_column.RESTARTED))


def _wanted_words(rows: Array) -> Array:
    """bool [n]: words that access L1 or a GPR, or order agents."""
    return np.asarray(
        np.isin(rows[:, column.WORD] >> 24, _OPCODES) | (rows[:, column.L1_END] > rows[:, column.L1_BEGIN])
    )


_OPCODES: Final = [
    row.opcode
    for row in INSTRUCTIONS.values()
    if row.unit in ("scalar", "config", "matrix", "unpack", "pack")
    or row.mnemonic.startswith(("SEM", "ATGETM", "ATREL"))
]


# --- names ------------------------------------------------------------------------------------------------------------


def place_of(row: list[int], text: str) -> Place:
    """The place of a core's instruction."""
    core = row[core_column.WHO] & 7
    thread = core - T0 if is_t_core(core) else -1
    return Place(thread, 0, text, core, row[core_column.CODE] & 0xFFFFFFFF)


def word_place(row: list[int]) -> Place:
    """The place of a word of the coprocessor."""
    return Place(row[column.THREAD], row[column.LINE], short_text(row[column.WORD]))


def counter_name(stream: int, *, received: bool) -> str:
    """`pages received of circular buffer 3`."""
    return f"pages {'received' if received else 'acknowledged'} of circular buffer {stream}"


def request_text(request: Request) -> str:
    """`NoC 0: read of 2048 bytes from 17-12 to 0x20000`."""
    x, y = request.other
    where = f"{x}-{y}"
    if request.multicast:
        where += f" to {request.last[0]}-{request.last[1]}"
    far = f"{request.address:#x} in {where}"
    if request.kind == "read":
        return f"NoC {request.noc}: read of {request.size} bytes of {far} to {request.local:#x}"
    if request.kind == "write":
        return f"NoC {request.noc}: write of {request.size} bytes of {request.local:#x} to {far}"
    return f"NoC {request.noc}: {request.kind} to {far}"


def core_name(core: int) -> str:
    """`core NC`."""
    return f"core {CORE_NAMES[core]}"


def parts_of_launches(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Parts of a tile by the programs that ran on it; the last ones may belong to a program that has not ended."""
    waiting: list[Part] = []
    for part in parts:
        waiting.append(part)
        if part.launch:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def unbroken(parts: Iterable[Part], left_out: Callable[[Part], int]) -> list[list[Part]]:
    """Parts in spans in which nothing is missing: what was left out of a part is missing at its beginning."""
    spans: list[list[Part]] = []
    for part in parts:
        if not spans or left_out(part):
            spans.append([])
        spans[-1].append(part)
    return spans
