"""Why a chip refuses a NoC request: reasons and remedies (tile N4, N14 to N22).

transfer.py decides in compiled code whether a request to Tensix tiles and DRAM is sound; the checks here name what is
wrong, and decide for the other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from bhemu.chip.coordinates import Kind, Node, Place, tile_place
from bhemu.chip.noc.multicast import DESTINATIONS, EXCLUDES, STRIDES
from bhemu.chip.nodes.identity import describe
from bhemu.chip.nodes.kinds import KINDS
from bhemu.errors import MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.machine.kernel import plain
from bhemu.tile.noc import niu_registers as r
from bhemu.tile.noc import request as q

_NIU: Final = range(region("niu0").base, region("niu1").end)
_REGISTERS: Final = region("tdma").base
_64_BITS: Final = (1 << 64) - 1
_can_split = plain(q.can_split)


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
    end: Place
    start: Place

    @classmethod
    def of(cls, tile: int, record: Any) -> Request:
        """The request of a record of tile number `tile`."""
        words = {name: int(record[name]) for name in ("noc", "control", "kind", "exclude", "other")}
        words |= {name: int(record[name]) & _64_BITS for name in ("source", "target", "result", "length")}
        words |= {"size": int(record["byte_count"]) & _64_BITS, "data": int(record["operand"])}
        end, start = (int(record[name]) for name in ("end", "start"))
        return cls(tile, **words, end=(end & 63, end >> 6 & 63), start=(start & 63, start >> 6 & 63))

    @property
    def multicast(self) -> bool:
        """Goes to the tiles of a rectangle."""
        return bool(self.control & q.MULTICAST_BIT)

    @property
    def masked(self) -> bool:
        """A write of selected bytes to memory."""
        return self.kind == q.WRITE and bool(self.control & q.BYTE_ENABLES) and not is_register(self.target)

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


def is_register(address: int) -> bool:
    """True for an address of a tile's memory-mapped registers."""
    return q.MMIO_FIRST <= address < 1 << 32


def check_multicast(
    request: Request, corners: tuple[Node, Node], places: tuple[Place, Place], bad: Node | None
) -> None:
    """Refuse a multicast that cannot reach all nodes of its rectangle (N21).

    Args:
        request: a multicast that is not a read.
        corners: the nodes of its second and its first corner.
        places: their coordinates on the request's own NoC.
        bad: the first node of the rectangle that takes no multicasts.
    """
    for node in corners:
        if node.kind is not Kind.TENSIX:
            raise UndefinedBehavior(
                f"corner {node.place[0]}-{node.place[1]} of the rectangle is not a Tensix tile ({node.kind.value})",
                remedy="let both corners be Tensix tiles",
            )
    if request.exclude & (STRIDES | DESTINATIONS):
        raise Unimplemented(
            f"BRCST_EXCLUDE is {request.exclude:#x}: no source says what its bits 0 to 7 and 24 to 31 do",
            remedy="set them to 0: bits 8 to 22 can leave out a quadrant",
        )
    end, start = places
    if request.exclude & EXCLUDES and (start[0] > end[0] or start[1] > end[1]):
        raise Unimplemented(
            "BRCST_EXCLUDE with a rectangle that wraps around the edge of the NoC: no source says what is left out",
            remedy="send one multicast on each side of the edge",
        )
    if bad is not None:
        raise UndefinedBehavior(
            f"the rectangle holds the {bad.kind.value} node {bad.place[0]}-{bad.place[1]}",
            remedy="leave bits of columns and rows without Tensix tiles set in ROUTER_CFG_1 and 3",
        )


def check_request(request: Request, own: Node, end: Node | None, *, allow_open: bool) -> None:
    """Refuse a request that is not sound (N17 to N19, N22).

    Args:
        own: the tile that has started it.
        end: the other end, or the first receiver of a multicast; None when no tile receives it.
        allow_open: the tile may use recommended choices where no source settles what silicon does.
    """
    if request.kind == q.ATOMIC:
        _check_atomic(request, own, end)
    elif request.kind == q.INLINE:
        _check_inline(request, end, allow_open)
    elif request.kind == q.READ:
        assert end is not None  # a read cannot be a multicast
        _check_copy(request, end, request.source, own, request.target)
    elif end is not None:
        source, target = request.source, request.target
        if request.masked:
            source, target = source & -q.BLOCK, target & -q.BLOCK
        _check_copy(request, own, source, end, target)


def _check_place(node: Node, address: int, size: int, *, writes: bool) -> None:
    """Refuse bytes that a node does not have (N4, N18); other nodes than tiles and DRAM do so themselves."""
    kind = KINDS[node.kind]
    if kind.tile and is_register(address):
        if size != q.WORD or address % q.WORD:
            raise UndefinedBehavior(
                f"{size} bytes of the register {address:#x} of {describe(node)}",
                remedy="registers are accessed as aligned words of 4 bytes",
            )
        if writes and address in _NIU and address % r.INITIATOR_BYTES == r.CMD_CTRL:
            raise Unimplemented(
                f"a store to CMD_CTRL of a network interface ({address:#x}) would start another request",
                remedy="start requests from a core",
            )
    elif kind.memory is not None and address + size > kind.memory:
        raise MemoryError_(
            f"{size} bytes at {address:#x} of {describe(node)}, whose memory ends at {kind.memory:#x}",
            remedy=f"stay inside; registers of a Tensix tile begin at {_REGISTERS:#x}, addresses of tiles have 32 bits",
        )


def _check_copy(request: Request, source: Node, first: int, to: Node, address: int) -> None:
    """Refuse a read or write whose length, ends or alignment are not sound (N17 to N19)."""
    size = request.size
    if size == 0:
        raise UndefinedBehavior("no bytes", remedy="set AT_LEN_BE to the number of bytes")
    if not _can_split(first, address, size):
        raise UndefinedBehavior(
            f"{size} bytes between {first:#x} and {address:#x}: what hardware splits begins at multiples of 64",
            remedy=f"align both addresses to 64 bytes, or send at most {q.LONGEST_PACKET} bytes at once",
        )
    _check_place(source, first, size, writes=False)
    _check_place(to, address, size, writes=True)
    if any(KINDS[node.kind].tile and is_register(at) for node, at in ((source, first), (to, address))):
        modulus = q.WORD
    else:
        modulus = KINDS[source.kind].read_alignment
    if (first - address) % modulus:
        raise UndefinedBehavior(
            f"the addresses {first:#x} and {address:#x} differ modulo {modulus}",
            remedy="they are equal modulo 64 in a read from DRAM, modulo 16 otherwise; registers are aligned words",
        )


def _check_inline(request: Request, end: Node | None, allow_open: bool) -> None:
    tile = end is None or KINDS[end.kind].tile
    if tile and is_register(request.target):
        if end is not None:
            _check_place(end, request.target, q.WORD, writes=True)
        return
    if end is not None:
        _check_place(end, request.target & -q.BLOCK, q.BLOCK, writes=True)
    if tile and not allow_open:
        raise NonContractualBehavior(
            f"an inline write to L1 ({request.target:#x}) is not safe on Blackhole (hardware bug)",
            remedy="write from a staged block in L1, or allow open choices to have the enabled bytes written",
        )


def _check_atomic(request: Request, own: Node, end: Node | None) -> None:
    kind = Kind.TENSIX if end is None else end.kind
    if not KINDS[kind].tile or is_register(request.target) or request.target % q.WORD:
        raise UndefinedBehavior(
            f"an atomic works on an aligned word of L1, not at {request.target:#x} of a {kind.value} node",
            remedy="atomics work in the L1 of Tensix and Ethernet tiles",
        )
    answers = bool(request.control & q.RESPONSE)
    if answers and (is_register(request.result) or request.result % q.WORD):
        raise UndefinedBehavior(
            f"the result of an atomic goes to {request.result:#x}, which is not an aligned word of L1",
            remedy="set RET_ADDR to an aligned word of the initiator's own L1",
        )
    if end is not None:
        _check_place(end, request.target & -q.BLOCK, q.BLOCK, writes=True)
    if answers:
        _check_place(own, request.result, q.WORD, writes=True)
