"""The recorder of a coprocessor: the clock of `tensix/frontend/run.py` with an observer that writes rows of words.

It is compiled on its own: a machine without a recorder pays nothing.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, Protocol

import numpy as np

import bhemu.recording.log as column
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import config
from bhemu.isa.registers import thread as thread_register
from bhemu.machine.buffer_memory import load_i64, store_i64
from bhemu.machine.codegen import JIT
from bhemu.machine.config_access import config_bank, thread_field
from bhemu.machine.counters import CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_X, PACKER, RWC_DST
from bhemu.machine.frontend_state import FIFO_PUSH_LIMIT
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import AnyInt, Bool, Int, LogAddress, Table, TileRecord
from bhemu.machine.unpacker_state import SINGLE
from bhemu.recording.log import Log, Note, Push
from bhemu.tensix import coprocessor as plain
from bhemu.tensix.frontend.fetch import MOP
from bhemu.tensix.frontend.gate import operand
from bhemu.tensix.frontend.observer import WordObserver
from bhemu.tensix.frontend.run import OBSERVER_FULL, make_front_end
from bhemu.tensix.unpack.address import tile_start
from bhemu.tensix.unpack.walk import advanced
from bhemu.tile.observer import RESERVED

# Header of the buffer, after what every observer's begins with (tile/observer.py): rows written, rows that fit, then
# by thread: the last word taken was a MOP, words pushed; and what is kept while a thread's expanders work.
COUNT: Final = RESERVED
CAPACITY: Final = RESERVED + 1
AFTER_MOP: Final = RESERVED + 2
PUSHED: Final = RESERVED + 5
CLOCK_OFFSET: Final = RESERVED + 8
"""Added to the clock in a row: the schedule of a tile counts rounds."""
FIFO_BEFORE: Final = RESERVED + 9
HEAD_BEFORE: Final = RESERVED + 10
MOPS_BEFORE: Final = RESERVED + 11
HEADER: Final = RESERVED + 12
ROWS: Final = 1 << 15

PACR: Final = INSTRUCTIONS["PACR"].opcode
UNPACR: Final = INSTRUCTIONS["UNPACR"].opcode
_BLOCK: Final = operand("UNPACR", "Unpack_block_selection")
_CONTEXT: Final = operand("UNPACR", "CfgContextId")
_MULTI: Final = operand("UNPACR", "OvrdThreadId")
_ADC: Final = operand("UNPACR", "AddrCntContextId")
_ZERO: Final = operand("UNPACR", "ZeroWrite2")
_INCREMENT: Final = operand("UNPACR", "CfgContextCntInc")
_FLUSH: Final = operand("UNPACR", "SearchCacheFlush")
_COUNTER_BITS: Final = 20
"""Room for each of three counters that are kept until the instruction is done."""
_COUNTER_MASK: Final = (1 << _COUNTER_BITS) - 1

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


@kernel
def _word(t: TileRecord, bank: Int, word: Int) -> Int:
    return np.int64(t.config[0 if word >= _SHARED else bank, word])


@kernel
def _describe_pack(t: TileRecord, log: LogAddress, at: Int, thread: Int, bank: Int) -> None:
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
    store_i64(log, at + column.L1_BEGIN, np.int64(t.pack.data_address) if t.pack.open != 0 else np.int64(-1))


@kernel
def _describe_unpack(t: TileRecord, log: LogAddress, at: Int, thread: Int, bank: Int, word: Int) -> None:
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
    # Two contexts share a word of Dst addresses: the even one is in the lower half (U3).
    dest = (_word(t, bank, _DEST + ((context & 3) >> 1)) >> (16 * (context & 1))) & 0xFFFF
    store_i64(log, at + column.UNPACK_DEST, dest | context << 32)
    formats = _word(t, bank, _FORMATS[unpacker] + (context & 3))
    store_i64(log, at + column.UNPACK_TILE, _word(t, bank, _TILE[unpacker]) | formats << 32)
    store_i64(log, at + column.UNPACK_SPEED, _word(t, bank, _SPEED[unpacker]))
    counters = np.int64(t.adc[adc, unpacker, CH0_Y])
    counters |= (np.int64(t.adc[thread, unpacker, CH0_Z]) & 0xFF) << _COUNTER_BITS
    counters |= (np.int64(t.adc[thread, unpacker, CH0_W]) & 0xFF) << 2 * _COUNTER_BITS
    store_i64(log, at + column.L1_BEGIN, counters)
    store_i64(log, at + column.L1_END, np.int64(t.adc[adc, unpacker, CH1_X]))


@kernel
def _unpacked(t: TileRecord, log: LogAddress, at: Int, word: Int) -> None:
    """The bytes of L1 that an UNPACR of an uncompressed tile has read (U5); what it found is in the row."""
    counters, last = load_i64(log, at + column.L1_BEGIN), load_i64(log, at + column.L1_END)
    store_i64(log, at + column.L1_BEGIN, 0)
    store_i64(log, at + column.L1_END, 0)
    idle = (word >> _ZERO[0]) & _ZERO[1] | (word >> _INCREMENT[0]) & _INCREMENT[1] | (word >> _FLUSH[0]) & _FLUSH[1]
    if idle != 0:
        return
    unpacker = (word >> _BLOCK[0]) & _BLOCK[1]
    bank = load_i64(log, at + column.BANK)
    context = load_i64(log, at + column.UNPACK_DEST) >> 32
    slot = context if (word >> _MULTI[0]) & _MULTI[1] else np.int64(SINGLE)
    d = t.unpack.decoded[bank, slot, unpacker]
    first = load_i64(log, at + column.UNPACK_X) & 0xFFFFFFFF
    count = last + 1 - first
    if d.uncompressed == 0 or count <= 0:
        return
    index = first + (counters & _COUNTER_MASK) * d.x_dim
    index += (counters >> _COUNTER_BITS & _COUNTER_MASK) * d.z_stride + (counters >> 2 * _COUNTER_BITS) * d.w_stride
    data = tile_start(t, d, unpacker, bank, context) * 16 + d.start_index_section + d.exponent_skip
    data += index * d.datum_size
    store_i64(log, at + column.L1_BEGIN, data >> 4)
    store_i64(log, at + column.L1_END, (advanced(d, data, count - 1) + d.datum_size + 15) >> 4)


@kernel
def _packed(t: TileRecord, log: LogAddress, at: Int) -> None:
    """The bytes of L1 that a PACR has written (P11)."""
    begin = load_i64(log, at + column.L1_BEGIN)
    if begin < 0:  # it has opened the streams
        begin = min(np.int64(t.pack.exp_start), np.int64(t.pack.data_start))
    store_i64(log, at + column.L1_BEGIN, begin)
    store_i64(log, at + column.L1_END, np.int64(t.pack.data_address))


@kernel
def _describe(t: TileRecord, log: LogAddress, at: Int, thread: Int, word: Int, opcode: Int) -> None:
    """Write what the instruction finds into row `at`; the row counts once the instruction is done."""
    bank = config_bank(t, thread)
    store_i64(log, at + column.CLOCK, np.int64(t.clock) + load_i64(log, CLOCK_OFFSET))
    store_i64(log, at + column.THREAD, thread)
    store_i64(log, at + column.WORD, word)
    store_i64(log, at + column.LINE, np.int64(t.frontend.gate_line[thread]))
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
    for i in range(column.COLUMNS - column.AUX):
        store_i64(log, at + column.AUX + i, 0)
    if opcode == PACR:
        _describe_pack(t, log, at, thread, bank)
    elif opcode == UNPACR:
        _describe_unpack(t, log, at, thread, bank, word)


@kernel
def _spare(log: LogAddress, thread: Int) -> AnyInt:
    """Row that collects what is known of a thread's word before its own row is due."""
    return HEADER + (load_i64(log, CAPACITY) + thread) * column.COLUMNS


@kernel
def _is_full(log: LogAddress) -> Bool:
    return load_i64(log, COUNT) + THREADS > load_i64(log, CAPACITY)


@kernel
def _before_fetch(t: TileRecord, log: LogAddress, thread: Int) -> None:
    store_i64(log, FIFO_BEFORE, np.int64(t.frontend.fifo_count[thread]))
    store_i64(log, HEAD_BEFORE, np.int64(t.frontend.fifo_word[thread, t.frontend.fifo_head[thread]]) >> 24)
    store_i64(log, MOPS_BEFORE, np.int64(t.issued[thread, MOP]))


@kernel
def _after_fetch(t: TileRecord, log: LogAddress, thread: Int, arrived: bool) -> None:
    """Note which push the word comes from and how many cycles the expanders spent in silence.

    Each expander takes one word a cycle. Of the words taken here the last delivers the word at the gate; the others
    were consumed (MOP_CFG, a load of the replay buffer and what it stores). After a MOP there is one dead cycle unless
    the next word is a MOP (Y8).
    """
    at = _spare(log, thread) + column.SILENT
    before, after = load_i64(log, FIFO_BEFORE), np.int64(t.frontend.fifo_count[thread])
    if before > after:
        silent = before - after - (1 if arrived else 0)
        if load_i64(log, AFTER_MOP + thread) and load_i64(log, HEAD_BEFORE) != MOP:
            silent += 1
        store_i64(log, AFTER_MOP + thread, 1 if t.issued[thread, MOP] > load_i64(log, MOPS_BEFORE) else 0)
        store_i64(log, at, load_i64(log, at) + silent)


@kernel
def _before_word(t: TileRecord, log: LogAddress, thread: Int, word: Int) -> None:
    at = HEADER + load_i64(log, COUNT) * column.COLUMNS
    _describe(t, log, at, thread, word, word >> 24)


@kernel
def after_word(t: TileRecord, log: LogAddress, thread: Int) -> None:
    """The row of the word counts."""
    at = HEADER + load_i64(log, COUNT) * column.COLUMNS
    word = load_i64(log, at + column.WORD)
    if word >> 24 == UNPACR:
        _unpacked(t, log, at, word)
    elif word >> 24 == PACR:
        _packed(t, log, at)
    silent = _spare(log, thread) + column.SILENT
    store_i64(log, at + column.PUSH, load_i64(log, PUSHED + thread) - np.int64(t.frontend.fifo_count[thread]))
    store_i64(log, at + column.SILENT, load_i64(log, silent))
    store_i64(log, silent, 0)
    store_i64(log, COUNT, load_i64(log, COUNT) + 1)


WORDS: Final = WordObserver(_is_full, _before_fetch, _after_fetch, _before_word, after_word)
"""Writes a row for each word that is executed."""
_front_end: Final = make_front_end(WORDS)
_run, _drain = _front_end.run, _front_end.drain


def run_recorded_entry(t: TileRecord, table: Table, cycles: Int, log: LogAddress) -> AnyInt:
    """The recorder's clock, for `compile_entry`."""
    return _run(t, table, cycles, log)


def drain_recorded_entry(t: TileRecord, table: Table, thread: Int, log: LogAddress) -> AnyInt:
    """Its `drain`."""
    return _drain(t, table, thread, log)


class HasCoprocessor(Protocol):
    """A `bhemu.Tile`."""

    coprocessor: plain.Coprocessor
    recorder: Any

    @property
    def _tiles(self) -> Any: ...


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
        self._seen = [(0, 0)] * THREADS  # what a core would have found last, and the rows after which it first did
        self._ready: list[int | None] = [None] * THREADS  # rows after which it could go on; None: no programs run
        self._room: tuple[list[int], list[int], list[int]] = ([], [], [])  # rows after which words had left a FIFO

    def attach(self, tile: HasCoprocessor) -> None:
        """Record what `tile` executes from now on."""
        super().__init__(tile._tiles)
        log: LogAddress = self._buffer.ctypes.data if JIT else self._buffer
        for name, function in (("run_recorded", run_recorded_entry), ("drain_recorded", drain_recorded_entry)):
            entry = plain.entry_of(name, function, 3)

            def call(tile: Any, table: Table, count: int, entry: Any = entry) -> int:
                while True:
                    status = int(entry.call(tile, table, count, log))
                    if status != OBSERVER_FULL:
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
            pushes, left = self._pushes[thread], self._room[thread]
            must_have_left = len(pushes) - FIFO_PUSH_LIMIT
            ready, own = self._ready[thread], self._own[thread]
            row = self._row() if ready is None else ready
            if ready is not None and 0 < must_have_left <= len(left) and left[must_have_left - 1] >= row:
                row, own = left[must_have_left - 1], True
            self._buffer[PUSHED + thread] += 1
            pushes.append(Push(row, own))
        return accepted

    def note(self, thread: int, kind: str, values: tuple[int, ...], line: int) -> None:
        """Remember what a core did past its FIFO."""
        pushes = self._pushes[thread]
        ready = max(self._ready[thread] or 0, pushes[-1].row if pushes else 0)
        self._notes.append(Note(self._row(), len(pushes), thread, kind, values, line, ready))

    def saw(self, thread: int, value: int) -> None:
        """What a thread's core finds, or would find if it were asked."""
        row = self._row()
        if self._seen[thread][0] != value:
            self._seen[thread] = (value, row)
        left = self._room[thread]
        left += [row] * (len(self._pushes[thread]) - int(self.frontend.fifo_count[thread]) - len(left))

    def resumed(self, thread: int, waited_for_others: bool) -> None:
        """The schedule lets a thread's core go on, which it could have done since it first saw what it sees."""
        self._own[thread] = not waited_for_others
        self._ready[thread] = max(self._ready[thread] or 0, self._seen[thread][1])

    def log(self) -> Log:
        """Everything recorded so far."""
        self._take_away()
        rows = np.concatenate(self._chunks) if self._chunks else np.zeros((0, column.COLUMNS), np.int64)
        return Log(rows, self._pushes, list(self._notes), self.file)
