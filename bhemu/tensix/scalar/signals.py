"""What SETDMAREG's signal form reads: four words of packer state, by InputSource (I.11, 003.2.1).

Blackhole has one packer: the words of packers 1 to 3 are zero.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bhemu.isa.registers import config
from bhemu.machine.config_access import config_bank, config_field
from bhemu.machine.faults import DONE
from bhemu.machine.kernel import kernel
from bhemu.machine.state import THREADS
from bhemu.machine.types import Int, TileRecord
from bhemu.tensix.scalar.halves import HALF_BITS, QUAD_REGISTER, WORD_BITS, write_half

# InputSource; everything else reads as zeros
TILE_SIZES: Final = 0
ALL_ZERO_FLAGS: Final = 1
TILE_HEADER: Final = 2
HISTOGRAM_LOW: Final = 6
HISTOGRAM_HIGH: Final = 7
ZERO_FLAG_BITS: Final = 8
MAX_EXPONENT: Final = 9

# ResultSize
_HALF: Final = 0
_WORD: Final = 1
_QUAD: Final = 2

_OUT_FORMAT: Final = config("THCON_SEC0_REG1_Out_data_format")
_UNCOMPRESSED: Final = config("THCON_SEC0_REG1_Disable_zero_compress")

# A tile header's second word: the format at bit 16, the uncompressed flag at bit 20, three spare bits that are zero.
_HEADER_FORMAT_BIT: Final = 16
_HEADER_UNCOMPRESSED_BIT: Final = 20
_HEADER_BITS: Final = 0x00FF0000


@kernel
def _last_tile_size(t: TileRecord, thread: Int) -> Int:
    """Size of the last tile in 16-byte units, if this thread packed it (003.2.1d)."""
    return np.int64(t.pack.last_tile_size) & HALF_BITS if t.pack.last_thread == thread else 0


@kernel
def _histogram_word(t: TileRecord, first: Int) -> Int:
    """Four counters of the exponent histogram as a little-endian word."""
    word: Int = 0
    for i in range(4):
        word |= np.int64(t.pack.histogram[first + i]) << (8 * i)
    return word


@kernel
def signal_words(t: TileRecord, thread: Int, source: Int, packers: Int) -> tuple[Int, Int, Int, Int]:
    """The four words of an InputSource. Source 8 clears the accumulated tile sizes too, if `packers` names packer 0."""
    flags = np.int64(t.pack.all_zero_flags) & WORD_BITS
    if source == TILE_SIZES:
        accumulated = np.int64(t.pack.acc_tile_size[thread]) & HALF_BITS
        return (accumulated << 16) | _last_tile_size(t, thread), 0, 0, 0
    if source == ALL_ZERO_FLAGS:
        return flags, 0, 0, 0
    if source == TILE_HEADER:
        bank = config_bank(t, thread)
        second = config_field(t, bank, _OUT_FORMAT) << _HEADER_FORMAT_BIT
        second |= config_field(t, bank, _UNCOMPRESSED) << _HEADER_UNCOMPRESSED_BIT
        return (_last_tile_size(t, thread) + 1) & HALF_BITS, second, flags, 0
    if source in (HISTOGRAM_LOW, HISTOGRAM_HIGH) and packers & 3 == 0:
        first = 16 * (source - HISTOGRAM_LOW)
        return (
            _histogram_word(t, first),
            _histogram_word(t, first + 4),
            _histogram_word(t, first + 8),
            _histogram_word(t, first + 12),
        )
    if source == ZERO_FLAG_BITS:
        if packers & 1:
            for i in range(THREADS):
                t.pack.acc_tile_size[i] = 0
        return flags & 1, 0, 0, 0
    if source == MAX_EXPONENT:
        return np.int64(t.pack.histogram_max) & WORD_BITS, 0, 0, 0
    return 0, 0, 0, 0


@kernel
def write_signal(
    t: TileRecord, thread: Int, size: Int, packers: Int, source: Int, input_half: Int, result_half: Int
) -> Int:
    """SETDMAREG's signal form: one half, one word or four words of the source to the thread's GPRs."""
    word0, word1, word2, word3 = signal_words(t, thread, source, packers)
    quad = (result_half >> 1) & QUAD_REGISTER
    if size == _QUAD:
        t.gpr[thread, quad] = np.uint32(word0)
        t.gpr[thread, quad + 1] = np.uint32(word1)
        t.gpr[thread, quad + 2] = np.uint32(word2)
        t.gpr[thread, quad + 3] = np.uint32(word3)
        return DONE
    chosen = word0
    if input_half >> 1 == 1:
        chosen = word1
    elif input_half >> 1 == 2:
        chosen = word2
    elif input_half >> 1 == 3:
        chosen = word3
    if size == _HALF:
        write_half(t, thread, result_half, chosen >> (16 * (input_half & 1)))
    elif size == _WORD:
        t.gpr[thread, result_half >> 1] = np.uint32(chosen)
    else:  # tile header: the fields that have a meaning, and nothing else
        write_half(t, thread, 2 * quad, word0)
        kept = np.int64(t.gpr[thread, quad + 1]) & ~_HEADER_BITS
        t.gpr[thread, quad + 1] = np.uint32((kept | (word1 & _HEADER_BITS)) & WORD_BITS)
        t.gpr[thread, quad + 2] = np.uint32(word2)
    return DONE
