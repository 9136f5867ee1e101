"""NoC requests between the nodes of a chip (tile N16 to N27).

A request takes no time (N26): the store that starts it returns when the data have moved and both ends have counted.
Compiled code has checked what does not depend on where the request goes, and has translated the coordinates
(tile/noc/transfer.py); afterwards it moves the counters of the initiator. What is refused here has changed nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bhemu.chip.carry import CORNER_LSB, DRAM_READ_ALIGNMENT, INCLUDE_SOURCE
from bhemu.chip.coordinates import HEIGHT, NODES, WIDTH, Kind, Node, Place, tensix_place
from bhemu.chip.ethernet import L1_BYTES
from bhemu.chip.identity import describe
from bhemu.chip.memory import CHANNEL_BYTES
from bhemu.chip.nodes import Nodes
from bhemu.chip.rectangle import excluded, places
from bhemu.chip.state import PLACES
from bhemu.errors import BhemuError, MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.machine.device_state import ROUTER_CFG_1, ROUTER_CFG_3
from bhemu.machine.faults import DONE, WAIT
from bhemu.machine.state import L1_SIZE
from bhemu.tile.noc import niu_registers as r
from bhemu.tile.noc import request as q
from bhemu.tile.noc.transfer import FLIT

_WORD: Final = 4
_TILES: Final = (Kind.TENSIX, Kind.ETHERNET)
_SIZES: Final = {Kind.TENSIX: L1_SIZE, Kind.ETHERNET: L1_BYTES, Kind.DRAM: CHANNEL_BYTES}
_ALIGNMENT: Final = {Kind.DRAM: DRAM_READ_ALIGNMENT, Kind.PCIE: 1, Kind.ARC: 4}
"""What both addresses of a read must agree modulo, by the kind of its source, where it is not 16 (N19).

For the host's memory one source says 64 and another does not look at it.
"""
_NIU: Final = range(region("niu0").base, region("niu1").end)
_REGISTERS: Final = region("tdma").base


@dataclass(frozen=True)
class Request:
    """What an initiator's registers say.

    Attributes:
        tile: number of the Tensix tile that has started it.
        noc, control, kind: the NoC; CTRL; READ, WRITE, INLINE or ATOMIC.
        target, back: the 64-bit addresses TARG_ADDR and RET_ADDR.
        length: AT_LEN_BE, 64 bits: bytes, a byte mask or an atomic's code.
        data: AT_DATA.
        exclude: BRCST_EXCLUDE.
        there: coordinate field of the other end as software wrote it, for a multicast of both corners.
        raw: coordinates on this NoC that it has been translated to: of the end, of a multicast's first corner.
    """

    tile: int
    noc: int
    control: int
    kind: int
    target: int
    back: int
    length: int
    data: int
    exclude: int
    there: int
    raw: tuple[Place, Place]

    @property
    def away(self) -> int:
        """Address at the other end."""
        return self.back if self.kind == q.WRITE else self.target

    @property
    def here(self) -> int:
        """Address at the own end, of those that have one."""
        return self.target if self.kind == q.WRITE else self.back

    @property
    def multicast(self) -> bool:
        """Goes to the tiles of a rectangle."""
        return bool(self.control & q.MULTICAST_BIT)

    @property
    def masked(self) -> bool:
        """A write of selected bytes to memory."""
        return self.kind == q.WRITE and bool(self.control & q.BYTE_ENABLES) and not _is_register(self.back)

    @property
    def size(self) -> int:
        """Bytes that a read or write touches."""
        if self.masked:
            return q.ENABLED_BYTES
        return _WORD if self.kind == q.WRITE and self.control & q.BYTE_ENABLES else self.length

    def __str__(self) -> str:
        x, y = tensix_place(self.tile)
        end = f"{self.there & 63}-{self.there >> 6 & 63}"
        if self.multicast:
            end = f"the rectangle {self.there >> 12 & 63}-{self.there >> 18 & 63} to {end}"
        size = f" of {self.size} bytes" if self.kind in (q.READ, q.WRITE) else ""
        own = "" if self.kind == q.INLINE else f" {self.here:#x}"
        kind = ("multicast " if self.multicast else "") + q.KINDS[self.kind]
        return f"NoC {self.noc} {kind}{size} between tile {x}-{y}{own} and {end} {self.away:#x}"


def _request(tile: Any, index: int, noc: int, initiator: int) -> Request:
    """The request that an initiator of a tile's record holds."""
    words = tile["niu_initiator"][noc, initiator].tolist()

    def word(offset: int) -> int:
        return int(words[offset // _WORD])

    control = word(r.CTRL)
    if control & q.ATOMIC_BIT:
        kind = q.ATOMIC
    elif control & q.WRITE_BIT:
        kind = q.INLINE if control & q.INLINE_BIT else q.WRITE
    else:
        kind = q.READ
    raw = tuple((words[n] & 63, words[n] >> 6 & 63) for n in (q.END, q.START))
    return Request(
        tile=index,
        noc=noc,
        control=control,
        kind=kind,
        target=word(r.TARGET_MID) << 32 | word(r.TARGET_LO),
        back=word(r.RETURN_MID) << 32 | word(r.RETURN_LO),
        length=word(r.LENGTH_HIGH) << 32 | word(r.LENGTH),
        data=word(r.DATA),
        exclude=word(r.EXCLUDE),
        there=word(r.RETURN_HI if kind == q.WRITE else r.TARGET_HI),
        raw=(raw[0], raw[1]),
    )


class Noc:
    """Both NoCs of a chip.

    Args:
        nodes: what the nodes hold.
        named: the node that a coordinate names by the chip's fixed table, always and on both NoCs, as in the official
            simulator (N8, N9). None: each tile's tables say that, while its NIU_CFG_0 asks for it (N5, N6).
    """

    def __init__(self, nodes: Nodes, named: Callable[[Place], Node] | None) -> None:
        self._nodes = nodes
        self._named = named

    def carry_out(self, index: int, noc: int, initiator: int) -> tuple[int, int]:
        """Carry out the request that an initiator of a tile holds.

        Returns:
            (status, how many tiles have answered). WAIT: a register makes the access wait, nothing was changed.

        Raises:
            BhemuError: the request is refused; nothing was changed.
        """
        request = _request(self._nodes.tiles[index], index, noc, initiator)
        try:
            ends = self._receivers(request) if request.multicast else [self._node(request, request.there, 0)]
            return self._serve(request, ends), len(ends)
        except BhemuError as error:
            error.message = f"{request}: {error.message}"
            raise

    # --- places -------------------------------------------------------------------------------------------------------

    def _raw(self, request: Request, coordinate: int, corner: int) -> Place:
        """Place on the request's own NoC: of the end (0), or of a multicast's first corner (1)."""
        if self._named is None:
            return request.raw[corner]
        return _mirrored(self._named((coordinate & 63, coordinate >> 6 & 63)).place, request.noc)

    def _node(self, request: Request, coordinate: int, corner: int) -> Node:
        place = _mirrored(self._raw(request, coordinate, corner), request.noc)
        named = max(coordinate & 63, coordinate >> 6 & 63) < PLACES  # tables would take 5 bits and go on
        if place not in NODES or not named:
            raise UndefinedBehavior(
                f"coordinates {coordinate & 63}-{coordinate >> 6 & 63} name no node",
                remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23; PCIe 19-24",
            )
        return NODES[place]

    def _receivers(self, request: Request) -> list[Node]:
        """Tiles that a multicast reaches in the order of their numbers (N21).

        Which columns and rows take no multicasts is read in the sender's registers, as the official simulator does;
        firmware writes the same to all.
        """
        if request.kind == q.READ:
            raise UndefinedBehavior("a read cannot be a multicast", remedy="clear bit 5 of CTRL")
        corners = request.there, request.there >> CORNER_LSB
        for corner, coordinate in enumerate(corners):
            node = self._node(request, coordinate, corner)
            if node.kind is not Kind.TENSIX:
                raise UndefinedBehavior(
                    f"corner {node.place[0]}-{node.place[1]} of the rectangle is no Tensix tile ({node.kind.value})",
                    remedy="let both corners be Tensix tiles",
                )
        end, start = (self._raw(request, c, n) for n, c in enumerate(corners))
        config = self._nodes.tiles[request.tile]["niu_config"][request.noc]
        closed_columns, closed_rows = int(config[ROUTER_CFG_1]), int(config[ROUTER_CFG_3])
        found = []
        for x, y in places(start, end, excluded(request.exclude)):
            if closed_columns >> x & 1 or closed_rows >> y & 1:
                continue
            node = NODES[_mirrored((x, y), request.noc)]
            if node.kind is not Kind.TENSIX:
                raise UndefinedBehavior(
                    f"the rectangle holds the {node.kind.value} node {node.place[0]}-{node.place[1]}",
                    remedy="leave bits of columns and rows without Tensix tiles set in ROUTER_CFG_1 and 3",
                )
            if node.index != request.tile or request.control & INCLUDE_SOURCE:
                found.append(node)
        return sorted(found, key=lambda node: node.index)

    # --- transfers ----------------------------------------------------------------------------------------------------

    def _serve(self, request: Request, ends: list[Node]) -> int:
        own = NODES[tensix_place(request.tile)]
        if request.kind == q.ATOMIC:
            return self._atomic(request, own, ends)
        if request.kind == q.INLINE:
            return self._inline(request, own, ends)
        if request.kind == q.READ:
            return self._read(request, own, ends[0])
        return self._write(request, own, ends)

    def _check(self, request: Request, node: Node, address: int, size: int) -> None:
        """Refuse bytes that a node does not have (N4, N18); other nodes than tiles and DRAM do so themselves."""
        if _has_registers(node) and _is_register(address):
            if size != _WORD or address % _WORD:
                raise UndefinedBehavior(
                    f"{size} bytes of the register {address:#x} of {describe(node)}",
                    remedy="registers are accessed as aligned words of 4 bytes",
                )
            if address in _NIU and address % r.INITIATOR_BYTES == r.CMD_CTRL and request.kind != q.READ:
                raise Unimplemented(
                    f"a store to CMD_CTRL of a network interface ({address:#x}) would start another request",
                    remedy="start requests from a core",
                )
        elif node.kind in _SIZES and address + size > _SIZES[node.kind]:
            raise MemoryError_(
                f"{size} bytes at {address:#x} of {describe(node)}, whose memory ends at {_SIZES[node.kind]:#x}",
                remedy=f"stay inside; registers of a Tensix tile begin at {_REGISTERS:#x}, "
                "addresses of tiles have 32 bits",
            )

    def _check_copy(self, request: Request, source: Node, first: int, to: Node, address: int) -> None:
        """Refuse a read or write whose length, ends or alignment are not sound (N17 to N19)."""
        size = request.size
        if size == 0:
            raise UndefinedBehavior("no bytes", remedy="set AT_LEN_BE to 1 to 16384")
        if size > q.LONGEST_PACKET:
            raise Unimplemented(
                f"splitting into packets of {q.LONGEST_PACKET} bytes is not built",
                remedy="split the transfer in software",
            )
        self._check(request, source, first, size)
        self._check(request, to, address, size)
        if any(_has_registers(node) and _is_register(at) for node, at in ((source, first), (to, address))):
            modulus = _WORD
        else:
            modulus = _ALIGNMENT.get(source.kind, q.BLOCK)
        if (first - address) % modulus:
            raise UndefinedBehavior(
                f"the addresses {first:#x} and {address:#x} differ modulo {modulus}",
                remedy="they are equal modulo 64 in a read from DRAM, modulo 16 otherwise; registers are aligned words",
            )

    def _read(self, request: Request, own: Node, end: Node) -> int:
        self._check_copy(request, end, request.target, own, request.back)
        content = self._nodes.read(end, request.target, request.size, request.tile, request.noc)
        if content is None or not self._nodes.write(own, request.back, content, request.tile, request.noc):
            return WAIT
        self._count(request, end)
        return DONE

    def _write(self, request: Request, own: Node, ends: list[Node]) -> int:
        first, to = request.target, request.back
        if request.masked:
            first, to = first & -q.BLOCK, to & -q.BLOCK
        for end in ends[:1]:  # the receivers of a multicast are alike
            self._check_copy(request, own, first, end, to)
        content = self._nodes.read(own, first, request.size, request.tile, request.noc)
        if content is None:
            return WAIT
        parts = _selected(content, request.length) if request.masked else [(0, content)]
        return self._deliver(request, ends, to, parts)

    def _inline(self, request: Request, own: Node, ends: list[Node]) -> int:
        """AT_DATA to a register; in memory, to those of 16 bytes that a half of AT_LEN_BE selects (N16)."""
        content = struct.pack("<I", request.data)
        kind = ends[0].kind if ends else Kind.TENSIX
        if kind in _TILES and _is_register(request.target):
            for end in ends[:1]:
                self._check(request, end, request.target, _WORD)
            return self._deliver(request, ends, request.target, [(0, content)])
        first = request.target & -q.BLOCK
        for end in ends[:1]:
            self._check(request, end, first, q.BLOCK)
        if kind in _TILES and not self._nodes.open_choice(own.index, q.INLINE_TO_L1):
            raise NonContractualBehavior(
                f"an inline write to L1 ({request.target:#x}) is not safe on Blackhole (hardware bug)",
                remedy="write from a staged block in L1, or allow open choices to have the enabled bytes written",
            )
        mask = (request.length | request.length >> q.BLOCK) & 0xFFFF
        return self._deliver(request, ends, first, _selected(content * (q.BLOCK // _WORD), mask))

    def _deliver(self, request: Request, ends: list[Node], to: int, parts: list[tuple[int, bytes]]) -> int:
        """Write (offset, bytes) behind an address of each end."""
        for count, end in enumerate(ends):
            for offset, content in parts:
                if not self._nodes.write(end, to + offset, content, request.tile, request.noc):
                    if count:
                        raise Unimplemented(
                            f"the register of tile {end.place[0]}-{end.place[1]} makes a multicast wait that has "
                            "reached others",
                            remedy="send multicasts to registers that take every store at once",
                        )
                    return WAIT
            self._count(request, end)
        return DONE

    def _atomic(self, request: Request, own: Node, ends: list[Node]) -> int:
        """Each tile performs it; the word that it had is delivered when an answer is wanted (N22, N23).

        Of a multicast all answers go to the same word. They come in the order of the tiles' numbers; which one is last
        on silicon depends on the ways through the NoC.
        """
        kind = ends[0].kind if ends else Kind.TENSIX
        if kind not in _TILES or _is_register(request.target) or request.target % _WORD:
            raise UndefinedBehavior(
                f"an atomic works on an aligned word of L1, not at {request.target:#x} of a {kind.value} node",
                remedy="atomics work in the L1 of Tensix and Ethernet tiles",
            )
        answers = bool(request.control & q.RESPONSE)
        if answers and (_is_register(request.back) or request.back % _WORD):
            raise UndefinedBehavior(
                f"the result of an atomic goes to {request.back:#x}, which is no aligned word of L1",
                remedy="set RET_ADDR to a word of the own L1",
            )
        for end in ends[:1]:
            self._check(request, end, request.target & -q.BLOCK, q.BLOCK)
        if answers:
            self._check(request, own, request.back, _WORD)
        for end in ends:
            code = request.length & 0xFFFFFFFF
            old = self._nodes.atomic(end, request.target, code, request.data, request.tile, request.noc)
            if answers:
                self._nodes.write(own, request.back, struct.pack("<I", old), request.tile, request.noc)
            self._count(request, end)
        return DONE

    def _count(self, request: Request, end: Node) -> None:
        """Move the counters of a tile that has served a request (N20)."""
        if end.kind is not Kind.TENSIX:
            return
        counters = self._nodes.tiles[end.index]["niu_counter"][request.noc]
        flits = -(-request.size // FLIT) if request.kind in (q.READ, q.WRITE) else 1
        answers = bool(request.control & q.RESPONSE)
        for counter, words in _SERVED[request.kind, answers or request.kind == q.READ].items():
            counters[counter] = int(counters[counter]) + (flits if words else 1) & 0xFFFFFFFF


_WRITTEN: Final = {
    True: {r.WRITES_BEGUN: 0, r.WRITES_RECEIVED: 0, r.WRITE_WORDS_RECEIVED: 1, r.ACKNOWLEDGEMENTS_SENT: 0},
    False: {r.POSTED_WRITES_BEGUN: 0, r.POSTED_WRITES_RECEIVED: 0, r.POSTED_WRITE_WORDS_RECEIVED: 1},
}
_SERVED: Final = {
    (q.READ, True): {r.REQUESTS_ACCEPTED: 0, r.READS_RECEIVED: 0, r.READ_RESPONSES_SENT: 0, r.READ_WORDS_SENT: 1},
    (q.ATOMIC, True): {r.REQUESTS_ACCEPTED: 0, r.ATOMICS_RECEIVED: 0, r.ATOMIC_RESPONSES_SENT: 0},
    (q.ATOMIC, False): {r.REQUESTS_ACCEPTED: 0, r.POSTED_ATOMICS_RECEIVED: 0},
    (q.WRITE, True): _WRITTEN[True],
    (q.WRITE, False): _WRITTEN[False],
    (q.INLINE, True): _WRITTEN[True],
    (q.INLINE, False): _WRITTEN[False],
}
"""Counters that a request moves at its other end, by kind and whether an answer is wanted: 1 counts 64-byte words."""


def _has_registers(node: Node) -> bool:
    return node.kind in _TILES


def _is_register(address: int) -> bool:
    return q.MMIO_FIRST <= address < 1 << 32


def _mirrored(place: Place, noc: int) -> Place:
    """Physical coordinates of raw ones of a NoC, and back (N1)."""
    return (WIDTH - 1 - place[0], HEIGHT - 1 - place[1]) if noc else place


def _selected(content: bytes, mask: int) -> list[tuple[int, bytes]]:
    """(offset, bytes) of each run of bytes that a mask selects."""
    parts = []
    i = 0
    while i < len(content):
        if mask >> i & 1:
            end = i
            while end < len(content) and mask >> end & 1:
                end += 1
            parts.append((i, content[i:end]))
            i = end
        else:
            i += 1
    return parts
