"""NoC requests of a tile, from what its cores have stored to its network interfaces (tile N13, N14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import Place
from bhemu.isa import niu
from bhemu.isa.memory_map import region
from bhemu.machine.state import L1_SIZE
from bhemu.recording import core_columns as column
from bhemu.recording.parts import Part

READ: Final = "read"
WRITE: Final = "write"
INLINE: Final = "inline write"
ATOMIC: Final = "atomic"

BASES: Final = (region("niu0").base, region("niu1").base)
"""First addresses of the two network interfaces."""
STEP: Final = BASES[1] - BASES[0]
_PAGES: Final = niu.INITIATORS * niu.INITIATOR_BYTES
END: Final = BASES[1] + _PAGES
_STORE: Final = 0x23
_ATOMIC, _WRITE, _INLINE, _ANSWERED, _MULTICAST, _STATIC = 1, 2, 8, 0x10, 0x20, 0x80
_BY_COLUMN: Final = 1 << 16
_X_BITS: Final = 0x3F
_Y_SHIFT: Final = 6
_CORNER_BITS: Final = 12
_CHANNEL: Final = 13
_TAG: Final = 10
_NEEDED: Final = [
    at // 4
    for at in (
        niu.TARGET_LO,
        niu.TARGET_HI,
        niu.RETURN_LO,
        niu.RETURN_HI,
        niu.PACKET_TAG,
        niu.CTRL,
        niu.LENGTH,
    )
]
"""Registers of an initiator that say what its request is."""


@dataclass(frozen=True, slots=True)
class Request:
    """A NoC request.

    Attributes:
        round: in which it was started.
        core, pc: that started it.
        noc: 0 or 1.
        kind: READ, WRITE, INLINE or ATOMIC.
        other: what software wrote as the coordinates of the other end, (x, y); of a multicast one of its corners.
        multicast: it goes to several tiles.
        address: at the other end.
        size: bytes.
        local: first byte of the own tile's L1 that it reads (WRITE) or writes (READ); -1 when it does neither.
        last: the other corner of a multicast, (x, y); `other` without one.
        tag: transaction id.
        answered: a response is wanted (non-posted).
        channel: static virtual channel; -1: the hardware chooses.
        by_column: a multicast goes along a column first (bit 16 of CTRL).
    """

    round: int
    core: int
    pc: int
    noc: int
    kind: str
    other: Place
    multicast: bool
    address: int
    size: int
    local: int
    last: Place
    tag: int
    answered: bool
    channel: int
    by_column: bool = False

    def reaches(self, place: Place) -> bool:
        """A tile is its other end, or in the rectangle of its multicast; coordinates are as software wrote them."""
        (x, y), (u, v) = self.other, self.last
        return min(x, u) <= place[0] <= max(x, u) and min(y, v) <= place[1] <= max(y, v)


def _place(bits: int) -> Place:
    return bits & _X_BITS, bits >> _Y_SHIFT & _X_BITS


def decode(words: Any, noc: int, at: int, core: int, pc: int) -> Request:
    """The request that the registers of an initiator mean.

    Args:
        words: of the initiator's page.
        noc: 0 or 1.
        at: round.
        core, pc: who starts it.
    """
    control, tag = int(words[niu.CTRL // 4]), int(words[niu.PACKET_TAG // 4]) >> _TAG & 0xF
    length, local = int(words[niu.LENGTH // 4]), -1
    target, back = int(words[niu.TARGET_LO // 4]), int(words[niu.RETURN_LO // 4])
    coordinate, address = int(words[niu.TARGET_HI // 4]), target
    if control & _ATOMIC:
        kind, length = ATOMIC, 4
    elif control & _WRITE and control & _INLINE:
        kind, length = INLINE, 4
    elif control & _WRITE:
        kind, coordinate, address, local = WRITE, int(words[niu.RETURN_HI // 4]), back, target
    else:
        kind, local = READ, back
    multicast = bool(control & _MULTICAST)
    return Request(
        round=at,
        core=core,
        pc=pc,
        noc=noc,
        kind=kind,
        other=_place(coordinate),
        multicast=multicast,
        address=address,
        size=length,
        local=local if 0 <= local < L1_SIZE else -1,
        last=_place(coordinate >> _CORNER_BITS) if multicast else _place(coordinate),
        tag=tag,
        answered=bool(control & _ANSWERED) or kind == READ,
        channel=control >> _CHANNEL & 7 if control & _STATIC else -1,
        by_column=bool(control & _BY_COLUMN),
    )


class Initiators:
    """Registers of the initiators of a tile, as its cores store to them.

    Args:
        words: uint32 [2, 4, 14]: their values when the recording begins.
        are_known: they are those before the first row. Without: a request is known when all that it needs was stored.
    """

    def __init__(self, words: Any, *, are_known: bool = True) -> None:
        self._words = np.array(words, "u4")
        self._are_known = np.full(self._words.shape, are_known)

    def store(self, row: list[int]) -> Request | None:
        """A core has stored to a network interface; gives the request that it starts by that.

        Args:
            row: of core_columns.py, with an address from BASES[0] to END - 1.
        """
        noc, offset = divmod(row[column.ADDRESS] - BASES[0], STEP)
        initiator, offset = divmod(offset, niu.INITIATOR_BYTES)
        if noc > 1 or initiator >= niu.INITIATORS:
            return None
        words = self._words[noc, initiator]
        if offset // 4 < niu.INITIATOR_WORDS:
            words[offset // 4] = row[column.VALUE] & 0xFFFFFFFF
            self._are_known[noc, initiator, offset // 4] = True
        elif offset == niu.CMD_CTRL and self._are_known[noc, initiator, _NEEDED].all():
            return decode(words, noc, row[column.ROUND], row[column.WHO] & 7, row[column.CODE] & 0xFFFFFFFF)
        return None


def is_store(code: int) -> bool:
    """The instruction of a row's CODE stores an integer register."""
    return code >> 32 & 0x7F == _STORE


def requests(part: Part) -> Iterator[Request]:
    """The requests of a part, in order. Registers that were stored before the recording have their values then."""
    initiators = Initiators(part.initiators)
    rows = part.log.rows
    kinds = rows[:, column.WHO] >> 4 & 0xF
    opcode = rows[:, column.CODE] >> 32 & 0x7F
    address = rows[:, column.ADDRESS]
    in_niu = (address >= BASES[0]) & (address < END)
    for row in rows[(kinds == column.DEVICE) & (opcode == _STORE) & in_niu].tolist():
        found = initiators.store(row)
        if found is not None:
            yield found
