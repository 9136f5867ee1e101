"""Both NoCs of a chip, as far as compiled code leaves requests to Python (tile N16 to N27).

A request takes no time (N26): the store that starts it ends when the data have moved and both ends have counted. What
ends in Tensix tiles and DRAM is carried out by transfer.py. Python refuses requests (refusals.py), provides what is
missing to carry them out, and serves the nodes that it alone has. A request that is refused has changed nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.chip.coordinates import HEIGHT, NODES, WIDTH, Kind, Node, Place, tensix_place
from bhemu.chip.noc.refusals import Request, check_multicast, check_request, is_register
from bhemu.chip.noc.transfer import LEFT
from bhemu.chip.nodes.dram import Dram
from bhemu.chip.nodes.kinds import KINDS, NodeModel
from bhemu.chip.state import PLACES, X_LSB
from bhemu.errors import BhemuError, UndefinedBehavior, Unimplemented
from bhemu.machine.agents import NOC
from bhemu.machine.dispatch import DEVICE_LOAD, DEVICE_STORE, NOT_COMPILED
from bhemu.machine.faults import DONE, WAIT, note_open_choice
from bhemu.machine.kernel import plain
from bhemu.machine.state import new_tiles
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores
from bhemu.tile.noc import request as q

Transfer = Callable[[int, int, bool], int]
"""`transfer(tile, request, in_turn)` is `carry_out_entry` of transfer.py; returns its status."""

_note_open_choice = plain(note_open_choice)


class Network:
    """Both NoCs of a chip.

    Args:
        chip: record of the chip.
        tiles: those of its Tensix tiles.
        dram: its channels.
        memory: what a node that is neither holds.
        cores: the cores of a Tensix tile.
        transfer: carries out what compiled code can.
        named: the node that a coordinate names by the chip's fixed table, always and on both NoCs, as in the official
            simulator (N8, N9). None: each tile's tables say that, while its NIU_CFG_0 asks for it (N5, N6).
    """

    def __init__(
        self,
        chip: Any,
        tiles: np.ndarray[Any, Any],
        dram: list[Dram],
        memory: Callable[[Node], NodeModel],
        cores: Callable[[int], Cores],
        transfer: Transfer,
        named: Callable[[Place], Node] | None,
    ) -> None:
        self._chip = chip
        self._tiles = tiles
        self._dram = dram
        self._memory = memory
        self._cores = cores
        self._transfer = transfer
        self._named = named
        self._scratch: Cores | None = None

    def carry_out(self, index: int, number: int, in_turn: bool) -> None:
        """Carry out request `number` of a tile, and set its `status` and `responses`.

        Args:
            in_turn: in the turn of one of the tile's agents; else between two clocks.

        Raises:
            BhemuError: the request is refused; nothing was changed.
        """
        record = self._tiles[index].noc_request[number]
        status = self._transfer(index, number, in_turn)
        if status in (DONE, WAIT) and not (status == WAIT and record.responses):
            record.status = status
            return
        request = Request.of(index, record)
        try:
            record.status = self._go_on(request, record, status, number, in_turn)
        except BhemuError as error:
            error.message = f"{request}: {error.message}"
            raise

    def _go_on(self, request: Request, record: Any, status: int, number: int, in_turn: bool) -> int:
        """Status of a request that compiled code has not carried out to its end."""
        if status == LEFT:
            end = self._check(request)
            if end is None:
                record.responses = 0  # a multicast that nobody receives
                return DONE
            if not KINDS[end.kind].compiled:
                record.responses = 1
                return self._serve(request, end)
            if end.kind is Kind.DRAM and request.kind != q.READ:
                self._provide(request, end)
            status = self._transfer(request.tile, number, in_turn)
            assert status != LEFT, f"{request} is sound and was not carried out"
        while status not in (DONE, WAIT):
            status = self._at_register(request, status, number, in_turn)
        if status == WAIT and record.responses:
            x, y = tensix_place(int(self._chip.noc_end))
            raise Unimplemented(
                f"the register of tile {x}-{y} makes a multicast wait that has reached others",
                remedy="send multicasts to registers that take every store at once",
            )
        return status

    def _provide(self, request: Request, end: Node) -> None:
        """Make the pages of DRAM that a request is going to write."""
        to, size = request.target, request.size
        if request.masked or request.kind == q.INLINE:
            to &= -q.BLOCK
            size = q.BLOCK if request.kind == q.INLINE else size
        self._dram[end.index].provide(to, size)

    def _at_register(self, request: Request, status: int, number: int, in_turn: bool) -> int:
        """Go on behind the access to a register that has refused it, or needs a function that is not compiled yet."""
        index = int(self._chip.noc_end)
        cores = self._cores(index)
        try:
            if status != NOT_COMPILED:
                raise cores.coprocessor.recorded()
            cores.coprocessor.supply()
        except BhemuError as error:
            x, y = tensix_place(index)
            error.message = f"at tile {x}-{y}: {error.message}"
            raise
        return self._transfer(request.tile, number, in_turn)

    # --- places -------------------------------------------------------------------------------------------------------

    def _check(self, request: Request) -> Node | None:
        """Refuse a request that is not sound; returns its other end, or the first of a multicast, if there is one."""
        end: Node | None
        if request.multicast:
            end = self._first_receiver(request)
        else:
            end = self._node(request, request.other, request.end)
        tile = self._tiles[request.tile]
        check_request(request, NODES[tensix_place(request.tile)], end, allow_open=bool(tile["allow_open"]))
        return end

    def _first_receiver(self, request: Request) -> Node | None:
        if request.kind == q.READ:
            raise UndefinedBehavior("a read cannot be a multicast", remedy="clear bit 5 of CTRL")
        ends = ((request.other, request.end), (request.other >> q.CORNER_LSB, request.start))
        corners = [self._node(request, *end) for end in ends]
        places = [_mirrored(node.place, request.noc) for node in corners]
        bad, first = (int(place) for place in (self._chip.noc_bad, self._chip.noc_first))
        check_multicast(request, (corners[0], corners[1]), (places[0], places[1]), _node_at(bad))
        return _node_at(first)

    def _node(self, request: Request, coordinate: int, raw: Place) -> Node:
        """The node that a coordinate names, which the tile's tables have translated to `raw`."""
        named = (coordinate & 63, coordinate >> 6 & 63)
        if self._named is not None:
            return self._named(named)
        place = _mirrored(raw, request.noc)
        if place not in NODES or max(named) >= PLACES:  # tables would take 5 bits and go on
            raise UndefinedBehavior(
                f"coordinates {named[0]}-{named[1]} name no node",
                remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23; PCIe 19-24",
            )
        return NODES[place]

    # --- nodes that only Python has -----------------------------------------------------------------------------------

    def _serve(self, request: Request, end: Node) -> int:
        memory = self._memory(end)
        if request.kind == q.ATOMIC:
            return self._atomic(request, memory)
        if request.kind == q.READ:
            content = memory.read(request.source, request.size, request.noc)
            return self._write_own(request.tile, request.target, content)
        to, mask = request.target, request.length
        if request.kind == q.WRITE:
            first = request.source & -q.BLOCK if request.masked else request.source
            own = self._read_own(request.tile, first, request.size)
            if own is None:
                return WAIT
            content = own
        else:
            content = struct.pack("<I", request.data)
        if request.kind == q.INLINE and not (KINDS[end.kind].tile and is_register(to)):
            if KINDS[end.kind].tile:
                _note_open_choice(self._tiles[request.tile], q.INLINE_TO_L1)
            content, mask = content * (q.BLOCK // q.WORD), (mask | mask >> q.BLOCK) & 0xFFFF
        elif not request.masked:
            memory.write(to, content, request.noc)
            return DONE
        for offset, part in _selected(content, mask):
            memory.write((to & -q.BLOCK) + offset, part, request.noc)
        return DONE

    def _atomic(self, request: Request, memory: NodeModel) -> int:
        """An atomic in the L1 of a tile (N22)."""
        if self._scratch is None:
            self._scratch = Cores(Coprocessor(new_tiles(1)))
        first = request.target & -q.BLOCK
        block = self._scratch.record.l1[: q.BLOCK]
        block[:] = np.frombuffer(memory.read(first, q.BLOCK, request.noc), np.uint8)
        old = self._scratch.noc_atomic(request.target % q.BLOCK, request.length & 0xFFFFFFFF, request.data)
        memory.write(first, block.tobytes(), request.noc)
        if request.control & q.RESPONSE:
            self._write_own(request.tile, request.result, struct.pack("<I", old))
        return DONE

    def _read_own(self, index: int, address: int, size: int) -> bytes | None:
        """Bytes of the own L1, or a register; None when the access has to wait."""
        tile = self._tiles[index]
        if not is_register(address):
            return tile.l1[address : address + size].tobytes()  # type: ignore[no-any-return]
        if self._own_register(index, DEVICE_LOAD, address) == WAIT:
            return None
        return struct.pack("<I", int(tile.device_value))

    def _write_own(self, index: int, address: int, content: bytes) -> int:
        """Status of bytes to the own L1, or into a register."""
        tile = self._tiles[index]
        if is_register(address):
            tile.device_value = struct.unpack("<I", content)[0]
            return self._own_register(index, DEVICE_STORE, address)
        tile.l1[address : address + len(content)] = np.frombuffer(content, np.uint8)
        return DONE

    def _own_register(self, index: int, place: int, address: int) -> int:
        try:
            return self._cores(index).attempt(place, NOC, address, now=False)
        except BhemuError as error:
            x, y = tensix_place(index)
            error.message = f"at tile {x}-{y}: {error.message}"
            raise


def _node_at(place: int) -> Node | None:
    """The node at a place of the chip's record; None for -1."""
    return None if place < 0 else NODES[place >> X_LSB, place & (1 << X_LSB) - 1]


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
