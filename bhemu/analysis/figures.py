"""How long instructions take, as far as the documents say.

Every figure comes from the table `isa/data/behaviour.toml`; the two formulas that it names are here. What no
document states is UNKNOWN: the timing model lets it take one cycle and counts it, so that it does not pass for a fact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from bhemu.analysis.access import Access
from bhemu.isa import timing
from bhemu.isa.registers import config
from bhemu.isa.timing import AT_LEAST, FACTS, UNKNOWN, Timing, timing_of
from bhemu.recording import log as column

KNOWN: Final = "known"
_CERTAINTY: Final = {timing.DOCUMENTED: KNOWN, timing.IMPLIED: KNOWN, AT_LEAST: AT_LEAST, UNKNOWN: UNKNOWN}


@dataclass(frozen=True, slots=True)
class Figure:
    """Cycles of one instruction.

    Attributes:
        occupancy: until its unit takes the next one.
        latency: from issue until its result may be used and its work counts as done.
        certainty: KNOWN; AT_LEAST when the documents give a lower bound; UNKNOWN.
        rule: where the figure is documented.
    """

    occupancy: int
    latency: int
    certainty: str
    rule: str


ADDRESS_CYCLES: Final = FACTS["unpacker_address"].value
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
    entry = timing_of(int(row[column.WORD]))
    if entry.by:
        return BY[entry.by](entry, found, row)
    return Figure(entry.occupancy or 1, entry.latency or 1, _CERTAINTY[entry.grade], entry.source)


def arithmetic_cycles(entry: Timing, found: Access, row: Any) -> Figure:
    """Three cycles with an immediate or with both GPRs in one aligned group of four, else four (I.11)."""
    o = found.operands
    quick = o["OpBisConst"] or o["OpARegIndex"] >> 2 == o["OpBRegIndex"] >> 2
    cycles = 3 if quick else 4
    return Figure(cycles, cycles, _CERTAINTY[entry.grade], entry.source)


def is_arithmetic(word: int) -> bool:
    """Whether the word is GPR arithmetic, which reads its operands later than other instructions do."""
    return timing_of(word).by == arithmetic_cycles.__name__


def unpack_cycles(entry: Timing, found: Access, row: Any) -> Figure:
    """Two cycles of address, then L1 at the chosen speed; other traffic on L1 can only make it longer (U12)."""
    o = found.operands
    unknown = Figure(1, 1, UNKNOWN, "")
    if o["CfgContextCntInc"] or o["SearchCacheFlush"] or o["RowSearch"]:
        return unknown
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
        return unknown
    if _field(reg2, _TILEIZE):
        speed = _TILEIZE_BYTES
    elif bits == 2:
        speed = _SLOWEST
    elif _field(int(row[column.UNPACK_SPEED]), _OBEY_THROTTLE):
        speed = 16 << _field(reg2, _THROTTLE)
    else:
        speed = _FASTEST
    cycles = math.ceil(max(datums, 0) * bits / 8 / speed)
    return Figure(max(cycles, ADDRESS_CYCLES), ADDRESS_CYCLES + cycles, _CERTAINTY[entry.grade], entry.source)


BY: Final = {function.__name__: function for function in (arithmetic_cycles, unpack_cycles)}
"""Functions that the table of timing names."""
