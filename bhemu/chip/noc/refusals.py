"""Why a chip refuses a NoC request: reasons and remedies (tile N4, N14 to N22).

Compiled code decides whether a request is sound (tile/noc/soundness.py, multicast.py) and leaves a number; the texts
for each are here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from bhemu.chip.coordinates import Kind, Node, Place, tile_place
from bhemu.chip.noc.multicast import BAD_NODE, CORNER, OVER_THE_EDGE, UNKNOWN_BITS
from bhemu.chip.nodes.identity import describe
from bhemu.chip.nodes.kinds import KINDS, READ_ALIGNMENT, holds
from bhemu.errors import MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.machine.kernel import plain
from bhemu.tile.noc import request as q
from bhemu.tile.noc.soundness import (
    DIFFER,
    INLINE_L1,
    NO_BYTES,
    NOT_A_WORD,
    OUTSIDE,
    RESULT,
    RESULT_NOT_A_WORD,
    SOURCE,
    SPLIT,
    STARTS,
    WIDTH,
    WRONG,
    modulus,
)

_REGISTERS: Final = region("tdma").base
_64_BITS: Final = (1 << 64) - 1
_modulus = plain(modulus)


@dataclass(frozen=True)
class Request:
    """A request of a tile's record (machine/noc_state.py), with addresses and length as unsigned numbers."""

    tile: int
    noc: int
    control: int
    kind: int
    source: int
    target: int
    result: int
    length: int
    size: int
    data: int
    exclude: int
    other: int
    masked: bool
    end: Place
    start: Place
    modulus: Callable[[Node], int]

    @classmethod
    def of(cls, tile: int, record: Any) -> Request:
        """The request of a record of tile number `tile`."""
        words = {name: int(record[name]) for name in ("noc", "control", "kind", "exclude", "other")}
        words |= {name: int(record[name]) & _64_BITS for name in ("source", "target", "result", "length")}
        words |= {"size": int(record["byte_count"]) & _64_BITS, "data": int(record["operand"])}
        end, start = (int(record[name]) for name in ("end", "start"))
        return cls(
            tile,
            **words,
            masked=bool(record["masked"]),
            end=(end & 63, end >> 6 & 63),
            start=(start & 63, start >> 6 & 63),
            modulus=lambda end: int(_modulus(record, KINDS[end.kind].tile, READ_ALIGNMENT[holds(end)])),
        )

    @property
    def multicast(self) -> bool:
        """Goes to the tiles of a rectangle."""
        return bool(self.control & q.MULTICAST_BIT)

    @property
    def away(self) -> int:
        """Address at the other end."""
        return self.source if self.kind == q.READ else self.target

    @property
    def here(self) -> int:
        """Address at the own end, of those that have one."""
        return {q.READ: self.target, q.WRITE: self.source}.get(self.kind, self.result)

    def __str__(self) -> str:
        x, y = tile_place(self.tile)
        if self.kind >= len(q.KINDS):
            return f"frame of {self.size} bytes from tile {x}-{y}"
        end = f"{self.other & 63}-{self.other >> 6 & 63}"
        if self.multicast:
            end = f"the rectangle {self.other >> 12 & 63}-{self.other >> 18 & 63} to {end}"
        size = f" of {self.size} bytes" if self.kind in (q.READ, q.WRITE) else ""
        own = "" if self.kind == q.INLINE else f" {self.here:#x}"
        kind = ("multicast " if self.multicast else "") + q.KINDS[self.kind]
        return f"NoC {self.noc} {kind}{size} between tile {x}-{y}{own} and {end} {self.away:#x}"


def refuse_multicast(wrong: int, request: Request, corners: tuple[Node, Node], bad: Node | None) -> None:
    """Refuse a multicast that cannot reach all nodes of its rectangle (N21).

    Args:
        wrong: reason of multicast.py; others are not refused here.
        request: the multicast.
        corners: the nodes of its second and its first corner.
        bad: the first node of the rectangle that takes no multicasts.
    """
    if wrong == CORNER:
        node = next(node for node in corners if node.kind is not Kind.TENSIX)
        raise UndefinedBehavior(
            f"corner {node.place[0]}-{node.place[1]} of the rectangle is not a Tensix tile ({node.kind.value})",
            remedy="let both corners be Tensix tiles",
        )
    if wrong == UNKNOWN_BITS:
        raise Unimplemented(
            f"BRCST_EXCLUDE is {request.exclude:#x}: no source says what its bits 0 to 7 and 24 to 31 do",
            remedy="set them to 0: bits 8 to 22 can leave out a quadrant",
        )
    if wrong == OVER_THE_EDGE:
        raise Unimplemented(
            "BRCST_EXCLUDE with a rectangle that wraps around the edge of the NoC: no source says what is left out",
            remedy="send one multicast on each side of the edge",
        )
    if wrong == BAD_NODE:
        assert bad is not None
        raise UndefinedBehavior(
            f"the rectangle holds the {bad.kind.value} node {bad.place[0]}-{bad.place[1]}",
            remedy="leave bits of columns and rows without Tensix tiles set in ROUTER_CFG_1 and 3",
        )


def refuse_request(wrong: int, request: Request, own: Node, end: Node) -> NoReturn:
    """Refuse a request that is not sound (N17 to N19, N22).

    Args:
        wrong: reason of tile/noc/soundness.py.
        request: what is refused.
        own: the tile that has started it.
        end: the other end, or the first receiver of a multicast; a corner of its rectangle when no tile receives it.
    """
    source, target, size = request.source, request.target, request.size
    from_node, to_node = (end, own) if request.kind == q.READ else (own, end)
    if wrong == NO_BYTES:
        raise UndefinedBehavior("no bytes", remedy="set AT_LEN_BE to the number of bytes")
    if wrong == SPLIT:
        raise UndefinedBehavior(
            f"{size} bytes between {source:#x} and {target:#x}: what hardware splits begins at multiples of 64",
            remedy=f"align both addresses to 64 bytes, or send at most {q.LONGEST_PACKET} bytes at once",
        )
    if wrong == DIFFER:
        raise UndefinedBehavior(
            f"the addresses {source:#x} and {target:#x} differ modulo {request.modulus(end)}",
            remedy="they are equal modulo 64 in a read from DRAM, modulo 16 otherwise; registers are aligned words",
        )
    if wrong == INLINE_L1:
        raise NonContractualBehavior(
            f"an inline write to L1 ({target:#x}) is not safe on Blackhole (hardware bug)",
            remedy="write from a staged block in L1, or allow open choices to have the enabled bytes written",
        )
    if wrong == NOT_A_WORD:
        raise UndefinedBehavior(
            f"an atomic works on an aligned word of L1, not at {target:#x} of a {end.kind.value} node",
            remedy="atomics work in the L1 of Tensix and Ethernet tiles",
        )
    if wrong == RESULT_NOT_A_WORD:
        raise UndefinedBehavior(
            f"the result of an atomic goes to {request.result:#x}, which is not an aligned word of L1",
            remedy="set RET_ADDR to an aligned word of the initiator's own L1",
        )
    at = wrong & RESULT
    if at == RESULT:
        _refuse_place(wrong & WRONG, own, request.result, q.WORD)
    if request.masked:
        source, target = source & -q.BLOCK, target & -q.BLOCK
    elif request.kind == q.ATOMIC or (request.kind == q.INLINE and wrong & WRONG == OUTSIDE):
        target, size = target & -q.BLOCK, q.BLOCK
    elif request.kind == q.INLINE:
        size = q.WORD
    _refuse_place(wrong & WRONG, *((from_node, source) if at == SOURCE else (to_node, target)), size)


def _refuse_place(wrong: int, node: Node, address: int, size: int) -> NoReturn:
    """Refuse bytes that a node does not have (N4, N18)."""
    if wrong == WIDTH:
        raise UndefinedBehavior(
            f"{size} bytes of the register {address:#x} of {describe(node)}",
            remedy="registers are accessed as aligned words of 4 bytes",
        )
    if wrong == STARTS:
        raise Unimplemented(
            f"a store to CMD_CTRL of a network interface ({address:#x}) would start another request",
            remedy="start requests from a core",
        )
    raise MemoryError_(
        f"{size} bytes at {address:#x} of {describe(node)}, whose memory ends at {KINDS[node.kind].memory:#x}",
        remedy=f"stay inside; registers of a Tensix tile begin at {_REGISTERS:#x}, addresses of tiles have 32 bits",
    )
