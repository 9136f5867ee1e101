"""NoC requests of a tile, from what its cores have stored to its network interfaces (tile N13, N14)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bhemu.chip.coordinates import NODES, WIDTH, Kind, Place
from bhemu.isa import niu
from bhemu.isa.memory_map import region
from bhemu.recording import core_columns as column
from bhemu.recording.parts import Part

_BASES: Final = (region("niu0").base, region("niu1").base)
_PAGES: Final = niu.INITIATORS * niu.INITIATOR_BYTES
_STORE: Final = 0x23
_ATOMIC, _WRITE, _INLINE, _MULTICAST = 1, 2, 8, 0x20
_X_BITS: Final = 0x3F


@dataclass(frozen=True)
class Request:
    """A NoC request.

    Attributes:
        round: in which it was started.
        core, pc: that started it.
        noc: 0 or 1.
        kind: `read`, `write`, `inline write` or `atomic`.
        other: what software wrote as the coordinates of the other end, (x, y); of a multicast one of its corners.
        multicast: it goes to several tiles.
        address: at the other end.
        size: bytes.
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


def _request(words: Any, noc: int, at: int, core: int, pc: int) -> Request:
    control = int(words[niu.CTRL // 4])
    length = int(words[niu.LENGTH // 4])
    if control & _ATOMIC:
        kind, coordinate, address, length = "atomic", words[niu.TARGET_HI // 4], words[niu.TARGET_LO // 4], 4
    elif control & _WRITE and control & _INLINE:
        kind, coordinate, address, length = "inline write", words[niu.TARGET_HI // 4], words[niu.TARGET_LO // 4], 4
    elif control & _WRITE:
        kind, coordinate, address = "write", words[niu.RETURN_HI // 4], words[niu.RETURN_LO // 4]
    else:
        kind, coordinate, address = "read", words[niu.TARGET_HI // 4], words[niu.TARGET_LO // 4]
    end = int(coordinate)
    other = end & _X_BITS, end >> 6 & _X_BITS
    return Request(at, core, pc, noc, kind, other, bool(control & _MULTICAST), int(address), length)


def requests(part: Part) -> Iterator[Request]:
    """The requests of a part, in order. Registers that were stored before the recording have their values then."""
    words = part.initiators.astype("u4").copy()
    rows = part.log.rows
    kinds = rows[:, column.WHO] >> 4 & 0xF
    opcode = rows[:, column.CODE] >> 32 & 0x7F
    address = rows[:, column.ADDRESS]
    in_niu = (address >= _BASES[0]) & (address < _BASES[1] + _PAGES)
    for row in rows[(kinds == column.DEVICE) & (opcode == _STORE) & in_niu].tolist():
        offset = row[column.ADDRESS] - _BASES[0]
        noc, offset = divmod(offset, _BASES[1] - _BASES[0])
        initiator, offset = divmod(offset, niu.INITIATOR_BYTES)
        if noc > 1 or initiator >= niu.INITIATORS:
            continue
        if offset // 4 < niu.INITIATOR_WORDS:
            words[noc, initiator, offset // 4] = row[column.VALUE] & 0xFFFFFFFF
        elif offset == niu.CMD_CTRL:
            core, pc = row[column.WHO] & 7, row[column.CODE] & 0xFFFFFFFF
            yield _request(words[noc, initiator], noc, row[column.ROUND], core, pc)


def end_name(translation: dict[Place, Place], place: Place, noc: int) -> str:
    """`DRAM 17-12` or `tile 1-2`, for coordinates in a request.

    Args:
        translation: physical coordinates by translated ones.
    """
    physical = translation.get(place)
    if physical is None:
        x, y = place
        physical = (WIDTH - 1 - x, 11 - y) if noc else (x, y)
    node = NODES.get(physical)
    if node is None:
        return f"{place[0]}-{place[1]}"
    if node.kind is Kind.DRAM:
        return f"DRAM {place[0]}-{place[1]}"
    return f"{'tile' if node.kind is Kind.TENSIX else node.kind.value} {place[0]}-{place[1]}"
