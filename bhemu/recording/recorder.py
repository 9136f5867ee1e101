"""The recorder: a second clock, compiled on its own, that writes a row for each executed word.

A machine without a recorder runs the plain clock (`tensix/frontend/run.py`) and pays nothing.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated"

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numba import njit

from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import config
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.compiler import JIT
from bhemu.machine.config_access import config_bank, thread_field
from bhemu.machine.counters import CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_X, PACKER, RWC_DST
from bhemu.machine.dispatch import NOT_COMPILED, call_handler
from bhemu.machine.faults import DONE, REFUSED, SCHEDULED, WAIT
from bhemu.machine.state import THREADS
from bhemu.recording import log as column
from bhemu.recording.buffer_memory import load_i64, store_i64
from bhemu.recording.log import Log, Note, Push
from bhemu.tensix import coprocessor as plain
from bhemu.tensix.frontend.fetch import MOP, fetch
from bhemu.tensix.frontend.gate import is_held, operand, wait_is_over
from bhemu.tensix.frontend.run import (
    AFTER,
    CYCLES_SPENT,
    EMPTY,
    FAULTED,
    NEEDS_HANDLER,
    STOPPED,
    step_beside,
)
from bhemu.tensix.vector_queue import BEGIN, END

if TYPE_CHECKING:
    from bhemu.api.tile import Tile

LOG_FULL: Final = 5
"""The host must take the rows away."""

# Header of the buffer: rows written, rows that fit, then by thread: the last word taken was a MOP, words pushed.
COUNT: Final = 0
CAPACITY: Final = 1
AFTER_MOP: Final = 2
PUSHED: Final = 5
HEADER: Final = 8
ROWS: Final = 1 << 15

PACR: Final = INSTRUCTIONS["PACR"].opcode
UNPACR: Final = INSTRUCTIONS["UNPACR"].opcode
_BLOCK: Final = operand("UNPACR", "Unpack_block_selection")
_CONTEXT: Final = operand("UNPACR", "CfgContextId")
_MULTI: Final = operand("UNPACR", "OvrdThreadId")
_ADC: Final = operand("UNPACR", "AddrCntContextId")

_MATH_OFFSET: Final = thread_register("DEST_TARGET_REG_CFG_MATH_Offset")
_CONTEXT0: Final = thread_register("UNPACK_MISC_CFG_CfgContextOffset_0")
_CONTEXT1: Final = thread_register("UNPACK_MISC_CFG_CfgContextOffset_1")
_ALU: Final = config("ALU_ACC_CTRL_Fp32_enabled")[0]
_PACK_XY: Final = config("PCK0_ADDR_CTRL_XY_REG_0_Xstride")[0]
_PACK_ZW: Final = config("PCK0_ADDR_CTRL_ZW_REG_0_Zstride")[0]
_PACK_BASE: Final = config("PCK0_ADDR_BASE_REG_0_Base")[0]
_PACK_READ: Final = config("PCK_DEST_RD_CTRL_Read_32b_data")[0]
_PACK_FORMAT: Final = config("THCON_SEC0_REG1_In_data_format")[0]
_PACK_DST: Final = config("DEST_TARGET_REG_CFG_PACK_SEC0_Offset")[0]
_REG2: Final = (config("THCON_SEC0_REG2_Out_data_format")[0], config("THCON_SEC1_REG2_Out_data_format")[0])
_TILE: Final = (
    config("THCON_SEC0_REG0_TileDescriptor_in_data_format")[0],
    config("THCON_SEC1_REG0_TileDescriptor_in_data_format")[0],
)
_SPEED: Final = (
    config("THCON_SEC0_REG1_ovrd_default_throttle_mode")[0],
    config("THCON_SEC1_REG1_ovrd_default_throttle_mode")[0],
)
_FORMATS: Final = (
    config("THCON_SEC0_REG7_Unpack_data_format_cntx0")[0],
    config("THCON_SEC1_REG7_Unpack_data_format_cntx0")[0],
)
_DEST: Final = config("THCON_SEC0_REG5_Dest_cntx0_address")[0]
_SHARED: Final = 180


@njit
def _word(t, bank, word):
    return np.int64(t.config[0 if word >= _SHARED else bank, word])


@njit
def _describe_pack(t, log, at, thread, bank):
    adc = t.adc
    x0 = np.int64(adc[thread, PACKER, CH0_X])
    store_i64(log, at + column.PACK_X, x0 | np.int64(adc[thread, PACKER, CH1_X]) << 32)
    yzw = np.int64(adc[thread, PACKER, CH0_Y]) & 0xFFFF
    yzw |= (np.int64(adc[thread, PACKER, CH0_Z]) & 0xFFFF) << 16
    yzw |= (np.int64(adc[thread, PACKER, CH0_W]) & 0xFFFF) << 32
    store_i64(log, at + column.PACK_YZW, yzw)
    store_i64(log, at + column.PACK_XY, _word(t, bank, _PACK_XY))
    store_i64(log, at + column.PACK_ZW, _word(t, bank, _PACK_ZW))
    store_i64(log, at + column.PACK_DST, _word(t, bank, _PACK_DST) | _word(t, bank, _PACK_READ) << 32)
    base = _word(t, bank, _PACK_BASE) & 0x3FFFF
    store_i64(log, at + column.PACK_FORMAT, _word(t, bank, _PACK_FORMAT) | base << 32)


@njit
def _describe_unpack(t, log, at, thread, bank, word):
    unpacker = (word >> _BLOCK[0]) & _BLOCK[1]
    context = 0
    adc = thread
    if (word >> _MULTI[0]) & _MULTI[1]:
        offset = thread_field(t, thread, _CONTEXT0) if unpacker == 0 else thread_field(t, thread, _CONTEXT1)
        context = (((word >> _CONTEXT[0]) & _CONTEXT[1]) + offset) & 7
        other = (word >> _ADC[0]) & _ADC[1]
        if 0 < other < THREADS:
            adc = other
    x = np.int64(t.adc[adc, unpacker, CH0_X]) | np.int64(t.adc[thread, unpacker, CH1_X]) << 32
    store_i64(log, at + column.UNPACK_X, x)
    store_i64(log, at + column.UNPACK_REG2, _word(t, bank, _REG2[unpacker]))
    store_i64(log, at + column.UNPACK_REG2_NEXT, _word(t, bank, _REG2[unpacker] + 1))
    # Two contexts share a word of Dst addresses: the even one stands in the lower half (U3).
    dest = (_word(t, bank, _DEST + ((context & 3) >> 1)) >> (16 * (context & 1))) & 0xFFFF
    store_i64(log, at + column.UNPACK_DEST, dest | context << 32)
    formats = _word(t, bank, _FORMATS[unpacker] + (context & 3))
    store_i64(log, at + column.UNPACK_TILE, _word(t, bank, _TILE[unpacker]) | formats << 32)
    store_i64(log, at + column.UNPACK_SPEED, _word(t, bank, _SPEED[unpacker]))


@njit
def _describe(t, log, at, thread, word, opcode):
    """Write what the instruction finds into row `at`; the row counts once the instruction is done."""
    bank = config_bank(t, thread)
    store_i64(log, at + column.CLOCK, np.int64(t.clock))
    store_i64(log, at + column.THREAD, thread)
    store_i64(log, at + column.WORD, word)
    store_i64(log, at + column.LINE, np.int64(t.gate_line[thread]))
    store_i64(log, at + column.BANK, bank)
    store_i64(log, at + column.DST, np.int64(t.rwc[thread, RWC_DST]) + thread_field(t, thread, _MATH_OFFSET))
    store_i64(log, at + column.ALU, _word(t, bank, _ALU))
    owners = np.int64(0)
    for file in range(2):
        owners |= np.int64(t.matrix.bank[file]) << file
        owners |= np.int64(t.unpack.bank[file]) << (2 + file)
        for which in range(2):
            owners |= np.int64(t.src_owner[file, which]) << (4 + 2 * file + which)
    store_i64(log, at + column.OWNERS, owners)
    for i in range(6):
        store_i64(log, at + column.AUX + i, 0)
    if opcode == PACR:
        _describe_pack(t, log, at, thread, bank)
    elif opcode == UNPACR:
        _describe_unpack(t, log, at, thread, bank, word)


@njit
def _fetch_recorded(t, log, at, thread):
    """`fetch`, noting which push the word comes from and how many cycles the expanders spent in silence.

    Each expander takes one word a cycle. Of the words taken here the last delivers the word at the gate; the others
    were consumed (MOP_CFG, a load of the replay buffer and what it stores). After a MOP there is one dead cycle unless
    the next word is a MOP (Y8).
    """
    before = np.int64(t.fifo_count[thread])
    head = np.int64(t.fifo_word[thread, t.fifo_head[thread]]) >> 24
    mops = t.issued[thread, MOP]
    arrived = fetch(t, thread)
    after = np.int64(t.fifo_count[thread])
    silent = load_i64(log, at + column.SILENT)
    if before > after:
        silent += before - after - (1 if arrived else 0)
        if load_i64(log, AFTER_MOP + thread) and head != MOP:
            silent += 1
        store_i64(log, AFTER_MOP + thread, 1 if t.issued[thread, MOP] > mops else 0)
    store_i64(log, at + column.SILENT, silent)
    return arrived


@njit
def _spare(log, thread):
    """Row that collects what is known of a thread's word before its own row is due."""
    return HEADER + (load_i64(log, CAPACITY) + thread) * column.COLUMNS


@njit
def issue_recorded(t, table, thread, log):
    """`issue` of the plain clock, with a row for each word that is done."""
    at = HEADER + load_i64(log, COUNT) * column.COLUMNS
    spare = _spare(log, thread)
    simulator_order = t.simulator_order != 0
    wait = np.int64(t.wait_word[thread])
    if simulator_order and wait != 0:
        if wait_is_over(t, thread):
            t.wait_word[thread] = np.uint32(0)
            return DONE
        return WAIT
    if t.gate_full[thread] == 0 and not _fetch_recorded(t, log, spare, thread):
        return EMPTY
    word = np.int64(t.gate_word[thread])
    opcode = word >> 24
    if wait != 0:
        if wait_is_over(t, thread):
            t.wait_word[thread] = np.uint32(0)
            return DONE
        if is_held(wait, opcode):
            return WAIT
    _describe(t, log, at, thread, word, opcode)
    status = call_handler(table, opcode, t, thread, word)
    if status == SCHEDULED:  # the loops below ask in each cycle whether something is scheduled
        status = DONE
    if status == DONE:
        store_i64(log, at + column.PUSH, load_i64(log, PUSHED + thread) - np.int64(t.fifo_count[thread]))
        store_i64(log, at + column.SILENT, load_i64(log, spare + column.SILENT))
        store_i64(log, spare + column.SILENT, 0)
        store_i64(log, COUNT, load_i64(log, COUNT) + 1)
        t.gate_full[thread] = 0
        t.issued[thread, opcode] += 1
        if simulator_order and t.wait_word[thread] != 0:
            if not wait_is_over(t, thread):
                return WAIT
            t.wait_word[thread] = np.uint32(0)
    elif status != WAIT:
        t.fault_thread = thread
        t.fault_word = np.uint32(word)
        t.fault_line = t.gate_line[thread]
    return status


@njit
def _issue_all(t, table, first, log):
    """Let the threads from `first` on issue; returns (status, thread that found no handler, whether any moved)."""
    moved = False
    for thread in range(first, THREADS):
        status = issue_recorded(t, table, thread, log)
        if status == DONE:
            moved = True
        elif status in (REFUSED, NOT_COMPILED):
            return status, thread, moved
    return DONE, THREADS, moved


@njit
def _cycle_beside(t, table, log):
    """A cycle of `_run_beside` of the plain clock; returns a status."""
    scheduled = t.macro_pending != 0
    result = WAIT
    if scheduled:
        result = step_beside(t, table, BEGIN)
        if result in (REFUSED, NOT_COMPILED):
            return result
    first = np.int64(t.macro_resume)
    t.macro_resume = 0
    status, thread, moved = _issue_all(t, table, first, log)
    if status != DONE:
        t.macro_resume = thread if status == NOT_COMPILED else thread + 1
        return status
    if scheduled and step_beside(t, table, END) != DONE:
        return REFUSED
    return DONE if moved else result


@njit
def run_recorded(t, table, cycles, log):
    """`run` of the plain clock, which it follows word by word; LOG_FULL when a cycle might not fit."""
    beside = t.macro_pending != 0
    for _ in range(cycles):
        if load_i64(log, COUNT) + THREADS > load_i64(log, CAPACITY):
            return LOG_FULL
        if t.cycle_resume > 0 or not beside:
            first = np.int64(t.cycle_resume)
            before = t.cycle_moved != 0
            t.cycle_resume = 0
            t.cycle_moved = 0
            status, thread, moved = _issue_all(t, table, first, log)
            moved = moved or before
            if status == REFUSED:
                return FAULTED
            if status == NOT_COMPILED:
                t.cycle_resume = thread
                t.cycle_moved = 1 if moved else 0
                return NEEDS_HANDLER
            beside = beside or t.macro_pending != 0
            if not moved:
                return STOPPED
        else:
            status = _cycle_beside(t, table, log)
            if status != DONE:
                return AFTER[status]
        t.clock += 1
    return CYCLES_SPENT


def run_recorded_entry(t, table, cycles, log):
    """`run_recorded` for `compile_entry`."""
    return run_recorded(t, table, cycles, log)


def drain_recorded(t, table, thread, log):
    """`drain` of the plain clock; LOG_FULL when a row might not fit."""
    while True:
        if load_i64(log, COUNT) + 1 > load_i64(log, CAPACITY):
            return LOG_FULL
        scheduled = t.macro_pending != 0
        moved = False
        if scheduled:
            if t.gate_full[thread] == 0 and not _fetch_recorded(t, log, _spare(log, thread), thread):
                return STOPPED
            status = step_beside(t, table, BEGIN)
            if status == REFUSED:
                return FAULTED
            if status == NOT_COMPILED:
                return NEEDS_HANDLER
            moved = status == DONE
        status = issue_recorded(t, table, thread, log)
        if status == REFUSED:
            return FAULTED
        if status == NOT_COMPILED:
            return NEEDS_HANDLER
        if scheduled and step_beside(t, table, END) != DONE:
            return FAULTED
        if status != DONE and not moved:
            return STOPPED
        t.clock += 1


class Recorder(plain.Coprocessor):
    """A coprocessor that keeps a log of what it executes; `attach` puts it in the place of a tile's own.

    Example:
        >>> import bhemu
        >>> from bhemu.recording import Recorder
        >>> tile = bhemu.Tile()
        >>> recorder = Recorder()
        >>> recorder.attach(tile)
        >>> tile.execute(1, "SETRWC 0, 0, 0, 0, 0, 15")
        >>> len(recorder.log())
        1
    """

    def __init__(self) -> None:
        """Not attached yet: nothing can be executed."""
        self.file: Path | None = None
        self._chunks: list[np.ndarray[Any, Any]] = []
        self._buffer = np.zeros(HEADER + (ROWS + THREADS) * column.COLUMNS, np.int64)
        self._buffer[CAPACITY] = ROWS
        self._kept = 0
        self._pushes: tuple[list[Push], list[Push], list[Push]] = ([], [], [])
        self._notes: list[Note] = []
        self._own = [False] * THREADS

    def attach(self, tile: Tile) -> None:
        """Record what `tile` executes from now on."""
        super().__init__(tile._tiles)
        log: Any = self._buffer.ctypes.data if JIT else self._buffer
        for name, function in (("run_recorded", run_recorded_entry), ("drain_recorded", drain_recorded)):
            entry = plain._entry(name, function, 3)

            def call(tile: Any, table: Any, count: int, entry: Any = entry) -> int:
                while True:
                    status = int(entry.call(tile, table, count, log))
                    if status != LOG_FULL:
                        return status
                    self._take_away()

            setattr(self, "_" + name.partition("_")[0], SimpleNamespace(call=call))
        tile.coprocessor = self
        tile.recorder = self

    def _take_away(self) -> None:
        count = int(self._buffer[COUNT])
        rows = self._buffer[HEADER : HEADER + count * column.COLUMNS].reshape(count, column.COLUMNS)
        self._chunks.append(rows.copy())
        self._kept += count
        self._buffer[COUNT] = 0

    def _row(self) -> int:
        return self._kept + int(self._buffer[COUNT])

    def push(self, thread: int, word: int, line: int = 0) -> bool:
        """As the plain coprocessor, remembering when the word could be pushed."""
        accepted = super().push(thread, word, line)
        if accepted:
            self._buffer[PUSHED + thread] += 1
            self._pushes[thread].append(Push(self._row(), self._own[thread]))
        return accepted

    def note(self, thread: int, kind: str, values: tuple[int, ...], line: int) -> None:
        """Remember what a core did past its FIFO."""
        self._notes.append(Note(self._row(), len(self._pushes[thread]), thread, kind, values, line))

    def resumed(self, thread: int, waited_for_others: bool) -> None:
        """The schedule lets a thread's core go on."""
        self._own[thread] = not waited_for_others

    def log(self) -> Log:
        """Everything recorded so far."""
        self._take_away()
        rows = np.concatenate(self._chunks) if self._chunks else np.zeros((0, column.COLUMNS), np.int64)
        return Log(rows, self._pushes, list(self._notes), self.file)
