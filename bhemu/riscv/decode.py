"""Decoding, once for each word of a program: the code cache.

The cache has a place for every aligned word of L1 and is shared by all cores and tiles of a process: a place says for
which instruction word it was filled, and the core compares that with what memory holds. So self-modifying code, code
that another agent writes and different programs in different tiles need no invalidation (T22); a stale instruction
cache, which silicon allows, is never seen. Translated code (translate.py) keeps to that, too.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba.np.numpy_support import from_dtype

from bhemu.isa.riscv import FIRST, RISCV
from bhemu.machine.codegen import JIT, record_of
from bhemu.machine.kernel import kernel
from bhemu.machine.state import L1_SIZE
from bhemu.machine.types import AnyInt, Int, Record
from bhemu.riscv.translation_state import FIELDS_OF_CACHE, NEXT, WORD

TTINSN: Final = len(RISCV)
ILLEGAL: Final = len(RISCV) + 1
BREAKPOINT: Final = len(RISCV) + 2
"""A debugger has put it in the place of another instruction, whose number it holds in its `rs2`."""
TRANSLATED: Final = len(RISCV) + 3
"""A block of translated code begins here; the number of its entry is in the place of the immediate (translate.py)."""
FIRST_SLOW: Final = FIRST["atomic"]
"""Instructions from here on are not executed in the inner loop."""

NOWHERE: Final = 32
"""Place among the registers for what is written to x0."""

CODE: Final[np.dtype[Any]] = np.dtype(
    [
        ("key", "i8", (L1_SIZE // 4,)),  # by place: `key_of` the raw word
        ("instruction", "i8", (L1_SIZE // 4,)),  # its fields
        ("breakpoint_count", "i8"),
        ("breakpoint", "i8", (64,)),  # places at which a debugger wants to stop
        ("breakpoint_number", "u1", (256,)),  # 1: it wants to stop at each instruction of this number
        *FIELDS_OF_CACHE,
    ]
)
"""Fields: number [7:0], rd [15:8] (32 for x0), rs1 [23:16], rs2 [31:24], immediate [63:32]."""

_MATCH: Final = np.array([row.match for row in RISCV], np.int64)
_MASK: Final = np.array([row.mask for row in RISCV], np.int64)

# Which immediate each instruction has
_NONE, _I, _U, _J, _B, _S, _SHIFT, _CSR = range(8)
_KIND_OF_LAYOUT: Final = {
    "I": _I,
    "jalr": _I,
    "load": _I,
    "fload": _I,
    "U": _U,
    "J": _J,
    "B": _B,
    "S": _S,
    "fstore": _S,
    "shift": _SHIFT,
    "csr": _CSR,
    "csri": _CSR,
}
_HAS_RD: Final = np.array([row.layout not in ("B", "S", "fence", "fstore", "none") for row in RISCV], np.bool_)
_KIND: Final = np.array([_KIND_OF_LAYOUT.get(row.layout, _NONE) for row in RISCV], np.int64)


def new_code_cache() -> np.ndarray[Any, Any]:
    """An empty cache; its pages are taken from the system when they are used."""
    return np.zeros(1, CODE).view(np.recarray)


if JIT:
    code_at = record_of(from_dtype(CODE))
    """The code cache at an address."""

else:

    def code_at(cache: Int) -> Any:
        """The code cache itself."""
        return cache


@kernel
def sign_extend(value: Int, bits: Int) -> Int:
    """The low `bits` of a number as two's complement."""
    sign = 1 << (bits - 1)
    return ((value & ((1 << bits) - 1)) ^ sign) - sign


@kernel
def number_of(word: Int) -> Any:
    """Number of the instruction that a word encodes (tile T1 to T11)."""
    if word & 3 != 3:
        return TTINSN
    for i in range(TTINSN):
        if word & _MASK[i] == _MATCH[i]:
            return i
    return ILLEGAL


@kernel
def _immediate(word: Int, kind: Int) -> Int:
    if kind == _I:
        return sign_extend(word >> 20, 12)
    if kind == _U:
        return sign_extend(word & 0xFFFFF000, 32)
    if kind == _J:
        bits = ((word >> 31) << 20) | (word & 0xFF000) | (((word >> 20) & 1) << 11) | (((word >> 21) & 0x3FF) << 1)
        return sign_extend(bits, 21)
    if kind == _B:
        bits = ((word >> 31) << 12) | (((word >> 7) & 1) << 11) | (((word >> 25) & 0x3F) << 5) | ((word >> 7) & 0x1E)
        return sign_extend(bits, 13)
    if kind == _S:
        return sign_extend(((word >> 25) << 5) | ((word >> 7) & 0x1F), 12)
    if kind == _SHIFT:
        return (word >> 20) & 0x1F
    if kind == _CSR:
        return word >> 20
    return np.int64(0)


@kernel
def fields_of(word: Int) -> AnyInt:
    """The fields of a decoded word, as the cache keeps them."""
    number = number_of(word)
    rd = (word >> 7) & 31
    immediate: Int = np.int64(0)
    if number >= TTINSN:
        rd = np.int64(NOWHERE)
    else:
        immediate = _immediate(word, _KIND[number])
        # Registers of the F extension have a register 0 of their own, which the slow path takes from the word.
        if rd == 0 or not _HAS_RD[number]:
            rd = np.int64(NOWHERE)
    return number | (rd << 8) | (((word >> 15) & 31) << 16) | (((word >> 20) & 31) << 24) | (immediate << 32)


@kernel(forceinline=True)
def key_of(word: Int) -> Int:
    """How the cache notes the word for which a place was filled; 0 is none."""
    return word + 1


@kernel
def fill(code: Record, place: Int, word: Int) -> Any:
    """Decode a word into its place; returns its fields."""
    fields = fields_of(word)
    for i in range(code.breakpoint_count):
        if code.breakpoint[i] == place:
            # The instruction itself stays to be found: stepping over the breakpoint decodes the word again.
            fields = (fields & ~0xFF) | BREAKPOINT
    if code.breakpoint_number[fields & 0xFF] != 0:
        fields = (fields & ~0xFF) | BREAKPOINT
    code.heat[place] = 0
    entry = np.int64(code.first[place])
    while entry != 0:
        if code.entry[entry, WORD] == word:  # translated before other code was there
            fields = TRANSLATED | (entry << 32)
            break
        entry = code.entry[entry, NEXT]
    code.key[place] = key_of(word)
    code.instruction[place] = fields
    return fields
