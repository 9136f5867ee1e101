"""The end of an UNPACR: it advances counters and SrcRow, and gives its bank to the matrix unit (rule U11)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.registers import thread as thread_register
from bhemu.machine.config_access import thread_field
from bhemu.machine.counters import CH0_Y, CH0_Z, CH1_Y, CH1_Z
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord, UnpackDecodedRecord
from bhemu.tensix.adc import Y_MASK, ZW_MASK
from bhemu.tensix.banks import MATRIX

_SRC_SET_BASE: Final = (thread_register("SRCA_SET_Base"), thread_register("SRCB_SET_Base"))


@kernel
def advance_adc(t: TileRecord, thread: Int, unpacker: Int, ch1_y: Int, ch1_z: Int, ch0_y: Int, ch0_z: Int) -> None:
    """Add to the Y and Z counters; the carry copies stay (I.8)."""
    counters = t.adc[thread, unpacker]
    counters[CH0_Y] = (np.int64(counters[CH0_Y]) + ch0_y) & Y_MASK
    counters[CH0_Z] = (np.int64(counters[CH0_Z]) + ch0_z) & ZW_MASK
    counters[CH1_Y] = (np.int64(counters[CH1_Y]) + ch1_y) & Y_MASK
    counters[CH1_Z] = (np.int64(counters[CH1_Z]) + ch1_z) & ZW_MASK


@kernel
def advance_context(t: TileRecord, d: UnpackDecodedRecord, thread: Int, unpacker: Int, context: Any) -> None:
    """Advance the context counter past `context`; it returns to 0 at the configured count, and has 3 bits."""
    count = d.count_non_log2 if d.non_log2_en else 1 << d.context_count
    following = (context + 1) & 7
    t.unpack.context_counter[thread, unpacker] = 0 if following >= count else following


@kernel
def source_row_base(t: TileRecord, thread: Int, unpacker: Int) -> Int:
    """First Src row after a hand-over."""
    return thread_field(t, thread, _SRC_SET_BASE[unpacker]) << 4


@kernel
def hand_over(t: TileRecord, thread: Int, unpacker: Int, out_format: Int) -> None:
    """Give the unpacker's bank to the matrix unit with its implied format, and change banks."""
    bank = t.unpack.bank[unpacker]
    t.src_owner[unpacker, bank] = MATRIX
    t.src_format[unpacker, bank] = out_format
    t.unpack.bank[unpacker] = bank ^ 1
    t.unpack.src_row[thread, unpacker] = source_row_base(t, thread, unpacker)


@kernel
def finish_bank(t: TileRecord, d: UnpackDecodedRecord, thread: Int, unpacker: Int, set_dvalid: Int) -> None:
    """Hand the bank over, or advance SrcRow within it."""
    if set_dvalid:
        hand_over(t, thread, unpacker, d.out_format)
    elif d.src_row_update:
        t.unpack.src_row[thread, unpacker] += 16 + source_row_base(t, thread, unpacker)
