"""Input address: where in Dst a PACR reads (P2, P4, P5), and the packer's ADC counters after it (P12)."""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.machine.counters import CARRY, CH0_W, CH0_X, CH0_Y, CH0_Z, CH1_Y, CH1_Z, PACKER
from bhemu.machine.kernel import kernel
from bhemu.machine.types import AnyInt, Int, TileRecord
from bhemu.tensix.pack.fields import thread

Y_MASK: Final = np.int64(0x1FFF)
"""ADC Y counters have 13 bits (I.8)."""
Z_MASK: Final = np.int64(0xFF)
"""ADC Z counters have 8 bits."""
FLAT_ROW_MASK: Final = 0x3FFF
"""Datum indices in Dst have 14 bits: 1024 rows of 16."""


@kernel
def input_address(t: TileRecord, which: Int) -> AnyInt:
    """Byte address of the first datum by the counters of ADC `which`, before the Dst offset."""
    pack = t.pack
    x, y = np.int64(t.adc[which, PACKER, CH0_X]), np.int64(t.adc[which, PACKER, CH0_Y])
    z, w = np.int64(t.adc[which, PACKER, CH0_Z]), np.int64(t.adc[which, PACKER, CH0_W])
    return pack.input_base + x * pack.x_stride + y * pack.y_stride + z * pack.z_stride + w * pack.w_stride


@kernel
def first_datum(t: TileRecord, which: Int, address: Int) -> AnyInt:
    """Datum index in Dst of the first datum: row * 16 + column (P4)."""
    pack = t.pack
    x = np.int64(t.adc[which, PACKER, CH0_X])
    index = ((address >> pack.size_shift) & ~pack.column_mask) + (x & pack.column_mask)
    return (index + (pack.dst_offset << 4)) & FLAT_ROW_MASK


# Fields of pack address modifier 0; those of modifier i are i entries later (P12).
_Y0_INCR: Final = thread("ADDR_MOD_PACK_SEC0_YsrcIncr")
_Y0_CR: Final = thread("ADDR_MOD_PACK_SEC0_YsrcCR")
_Y0_CLEAR: Final = thread("ADDR_MOD_PACK_SEC0_YsrcClear")
_Y1_INCR: Final = thread("ADDR_MOD_PACK_SEC0_YdstIncr")
_Y1_CR: Final = thread("ADDR_MOD_PACK_SEC0_YdstCR")
_Y1_CLEAR: Final = thread("ADDR_MOD_PACK_SEC0_YdstClear")
_Z0_INCR: Final = thread("ADDR_MOD_PACK_SEC0_ZsrcIncr")
_Z0_CLEAR: Final = thread("ADDR_MOD_PACK_SEC0_ZsrcClear")
_Z1_INCR: Final = thread("ADDR_MOD_PACK_SEC0_ZdstIncr")
_Z1_CLEAR: Final = thread("ADDR_MOD_PACK_SEC0_ZdstClear")
_MODIFIER: Final = _Y0_INCR[0]
if any(thread(f"ADDR_MOD_PACK_SEC{i}_YsrcIncr")[0] != _MODIFIER + i for i in range(4)):
    raise RuntimeError("ADDR_MOD_PACK_SEC0 to 3 must be neighbours in ThreadConfig")


_CH0_Y: Final = np.int64(CH0_Y)  # no literals: one `_move` serves all counters
_CH1_Y: Final = np.int64(CH1_Y)
_CH0_Z: Final = np.int64(CH0_Z)
_CH1_Z: Final = np.int64(CH1_Z)
_NO_CARRY: Final = np.int64(0)


@kernel
def _value(word: Int, field: tuple[Int, Int, Int]) -> Int:
    return (word >> field[1]) & field[2]


@kernel
def _move(t: TileRecord, which: Int, counter: Int, increment: Int, carry: Int, clear: Int, mask: Int) -> None:
    """Clear has priority over the carry copy, and that over the plain increment (P12)."""
    if clear:
        t.adc[which, PACKER, counter] = 0
        t.adc[which, PACKER, counter + CARRY] = 0
    elif carry:
        moved = (np.int64(t.adc[which, PACKER, counter + CARRY]) + increment) & mask
        t.adc[which, PACKER, counter + CARRY] = moved
        t.adc[which, PACKER, counter] = moved
    else:
        t.adc[which, PACKER, counter] = (np.int64(t.adc[which, PACKER, counter]) + increment) & mask


@kernel
def move_counters(t: TileRecord, thread: Int, which: Int, index: Int) -> None:
    """Apply ADDR_MOD_PACK_SEC`index` of the thread to ADC `which`, whose counters the PACR used."""
    word = np.int64(t.thread_config[thread, _MODIFIER + index])
    _move(t, which, _CH0_Y, _value(word, _Y0_INCR), _value(word, _Y0_CR), _value(word, _Y0_CLEAR), Y_MASK)
    _move(t, which, _CH1_Y, _value(word, _Y1_INCR), _value(word, _Y1_CR), _value(word, _Y1_CLEAR), Y_MASK)
    _move(t, which, _CH0_Z, _value(word, _Z0_INCR), _NO_CARRY, _value(word, _Z0_CLEAR), Z_MASK)
    _move(t, which, _CH1_Z, _value(word, _Z1_INCR), _NO_CARRY, _value(word, _Z1_CLEAR), Z_MASK)
