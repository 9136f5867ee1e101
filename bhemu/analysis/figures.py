"""How long instructions take, as far as the documents say.

Every figure comes from the instruction table's columns, or from a rule where the table has a formula. What no document
states is UNKNOWN: the timing model lets it take one cycle and counts it, so that nobody mistakes it for a fact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from bhemu.analysis.access import Access, is_slow_shift
from bhemu.isa.instructions import INSTRUCTIONS
from bhemu.isa.registers import config
from bhemu.recording import log as column

KNOWN: Final = "known"
AT_LEAST: Final = "at least"
UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Figure:
    """Cycles of one instruction.

    Attributes:
        occupancy: until its unit takes the next one.
        latency: from issue until its result may be used and its work counts as done.
        certainty: KNOWN; AT_LEAST when the documents give a lower bound; UNKNOWN.
        rule: where the figure stands.
    """

    occupancy: int
    latency: int
    certainty: str
    rule: str


_ONE: Final = Figure(1, 1, UNKNOWN, "")
_SCALAR_AT_LEAST: Final = {
    **dict.fromkeys(("LOADIND", "LOADREG", "STOREIND", "STOREREG", "ATSWAP", "ATINCGET"), 3),
    **dict.fromkeys(("FLUSHDMA", "REG2FLOP"), 2),
    **dict.fromkeys(("ATINCGETPTR", "ATCAS"), 15),
}
_ARITHMETIC: Final = frozenset({"ADDDMAREG", "SUBDMAREG", "MULDMAREG", "BITWOPDMAREG", "SHIFTDMAREG", "CMPDMAREG"})

ADDRESS_CYCLES: Final = 2
"""UNPACR computes its address for two cycles, in which its thread and the other threads' UNPACRs wait (U12)."""
_FASTEST: Final = 128
"""Bytes a cycle by default: x8 for 8-bit input, doubled x4 for others (U12)."""
_TILEIZE_BYTES: Final = 64
_SLOWEST: Final = 16

_DATUM_BITS: Final = {
    **dict.fromkeys((0, 4, 8), 32),
    **dict.fromkeys((1, 5, 9), 16),
    **dict.fromkeys((2, 6, 10, 14), 8),
    **dict.fromkeys((3, 7), 4),
    **dict.fromkeys((11, 15), 2),
}
"""Bits of a datum in L1 by format code (rules I.1); TF32 lies in L1 as FP32."""

_IN_FORMAT: Final = config("THCON_SEC0_REG0_TileDescriptor_in_data_format")
_OVERRIDE_FORMAT: Final = config("THCON_SEC0_REG2_Ovrd_data_format")
_CONTEXT_FORMAT: Final = config("THCON_SEC0_REG7_Unpack_data_format_cntx0")
_LATER_CONTEXT_FORMAT: Final = config("THCON_SEC0_REG7_Unpack_data_format_cntx4")
_THROTTLE: Final = config("THCON_SEC0_REG2_Throttle_mode")
_TILEIZE: Final = config("THCON_SEC0_REG2_Tileize_mode")
_OBEY_THROTTLE: Final = config("THCON_SEC0_REG1_ovrd_default_throttle_mode")


def _field(word: int, place: tuple[int, int, int]) -> int:
    return word >> place[1] & place[2]


def figure(found: Access, row: Any) -> Figure:
    """Cycles of an executed instruction.

    Args:
        found: what `access` says of the word.
        row: its row of the log.
    """
    name = found.mnemonic
    if name in _ARITHMETIC:
        o = found.operands
        quick = o["OpBisConst"] or o["OpARegIndex"] >> 2 == o["OpBRegIndex"] >> 2
        cycles = 3 if quick else 4
        return Figure(cycles, cycles, KNOWN, "rules I.11")
    if name in _SCALAR_AT_LEAST:
        return Figure(_SCALAR_AT_LEAST[name], _SCALAR_AT_LEAST[name], AT_LEAST, "rules I.11")
    if name == "UNPACR":
        return _unpacr(found, row)
    if name == "UNPACR_NOP":
        return Figure(1, 1, KNOWN, "instruction table")
    if name == "RDCFG":
        return Figure(1, 2, AT_LEAST, "rules I.11")
    if name == "STREAMWRCFG":
        return Figure(1, 5, AT_LEAST, "rules I.11")
    if name == "MOVD2B":
        return Figure(1, 4, KNOWN, "math Y12")
    if name == "SFPSHFT2":
        cycles = 2 if is_slow_shift(name, found.operands) else 1
        return Figure(cycles, cycles, KNOWN, "math Y12")
    if name in ("STALLWAIT", "SEMWAIT", "ATGETM"):
        return Figure(1, 1, KNOWN, "math Y10, Y12")
    instruction = INSTRUCTIONS[name]
    if instruction.latency is not None and instruction.issue is not None:
        return Figure(instruction.issue, instruction.latency, KNOWN, "instruction table")
    return _ONE


def _unpacr(found: Access, row: Any) -> Figure:
    """Two cycles of address, then L1 at the chosen speed; other traffic on L1 can only make it longer (U12)."""
    o = found.operands
    if o["CfgContextCntInc"] or o["SearchCacheFlush"] or o["RowSearch"]:
        return _ONE
    x = int(row[column.UNPACK_X])
    datums = (x >> 32) - (x & 0xFFFFFFFF) + 1
    reg2 = int(row[column.UNPACK_REG2])
    tile = int(row[column.UNPACK_TILE])
    code = _field(tile & 0xFFFFFFFF, _IN_FORMAT)
    context = int(row[column.UNPACK_DEST]) >> 32
    if o["OvrdThreadId"] and _field(reg2, _OVERRIDE_FORMAT):
        code = _field(tile >> 32, _LATER_CONTEXT_FORMAT if context > 3 else _CONTEXT_FORMAT)
    bits = _DATUM_BITS.get(code)
    if bits is None:
        return _ONE
    if _field(reg2, _TILEIZE):
        speed = _TILEIZE_BYTES
    elif bits == 2:
        speed = _SLOWEST
    elif _field(int(row[column.UNPACK_SPEED]), _OBEY_THROTTLE):
        speed = 16 << _field(reg2, _THROTTLE)
    else:
        speed = _FASTEST
    cycles = math.ceil(max(datums, 0) * bits / 8 / speed)
    return Figure(max(cycles, ADDRESS_CYCLES), ADDRESS_CYCLES + cycles, AT_LEAST, "rules U12")
