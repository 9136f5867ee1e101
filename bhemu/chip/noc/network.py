"""NoC requests that compiled code has not carried out to their end (tile N16 to N27).

transfer.py carries requests out. Python refuses requests, with reasons (refusals.py), and compiles what is missing to
carry them out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bhemu.chip import faults
from bhemu.chip.coordinates import HEIGHT, NODES, WIDTH, X_LSB, Y_MASK, Node, Place, tile_place
from bhemu.chip.noc.multicast import READ_TO_MANY
from bhemu.chip.noc.refusals import Request, refuse_multicast, refuse_request
from bhemu.chip.noc.transfer import LEFT
from bhemu.chip.pcie.host_memory import HostCalls
from bhemu.chip.state import PLACES
from bhemu.errors import BhemuError, UndefinedBehavior, Unimplemented
from bhemu.machine.dispatch import NOT_COMPILED
from bhemu.machine.faults import DONE, WAIT
from bhemu.tile.cores import Cores
from bhemu.tile.noc import request as q
from bhemu.tile.noc.soundness import INLINE_L1

Transfer = Callable[[int, int, bool], int]
"""`transfer(tile, request, in_turn)` is `carry_out_entry` of transfer.py; returns its status."""


class Network:
    """Both NoCs of a chip.

    Args:
        chip: record of the chip.
        tiles: those of its Tensix tiles.
        calls: functions of the host, which may have raised something.
        cores: the cores of a Tensix tile.
        transfer: carries out what compiled code can.
        named: the node that a coordinate names by the chip's fixed table, always and on both NoCs, as in the official
            simulator (N8, N9). None: each tile's tables say that, while its NIU_CFG_0 asks for it (N5, N6).
    """

    def __init__(
        self,
        chip: Any,
        tiles: np.ndarray[Any, Any],
        calls: HostCalls,
        cores: Callable[[int], Cores],
        transfer: Transfer,
        named: Callable[[Place], Node] | None,
    ) -> None:
        self._chip = chip
        self._tiles = tiles
        self._calls = calls
        self._cores = cores
        self._transfer = transfer
        self._named = named

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
            self._refuse(request, int(self._chip.noc_unsound))
            record.responses = 0  # a multicast that no tile receives
            return DONE
        while status not in (DONE, WAIT):
            status = self._at_register(request, status, number, in_turn)
        if status == WAIT and record.responses:
            x, y = tile_place(int(self._chip.noc_end))
            raise Unimplemented(
                f"the register of tile {x}-{y} makes a multicast wait that has reached others",
                remedy="send multicasts to registers that take every store at once",
            )
        return status

    def _at_register(self, request: Request, status: int, number: int, in_turn: bool) -> int:
        """Continue after a node or a register that has refused it, or needs a function that is not compiled yet."""
        if self._chip.fault_code:
            refusal = faults.recorded(self._chip)
            raise self._calls.take_error() or refusal
        index = int(self._chip.noc_end)
        cores = self._cores(index)
        try:
            if status != NOT_COMPILED:
                raise cores.coprocessor.recorded()
            cores.coprocessor.supply()
        except BhemuError as error:
            x, y = tile_place(index)
            error.message = f"at tile {x}-{y}: {error.message}"
            raise
        return self._transfer(request.tile, number, in_turn)

    # --- places -------------------------------------------------------------------------------------------------------

    def _refuse(self, request: Request, wrong: int) -> None:
        """Say why a request is not sound. What is wrong at the end of a multicast that no tile receives is not."""
        if wrong == READ_TO_MANY:
            raise UndefinedBehavior("a read cannot be a multicast", remedy="clear bit 5 of CTRL")
        end = self._node(request, request.other, request.end)
        if request.multicast:
            start = self._node(request, request.other >> q.CORNER_LSB, request.start)
            bad, first = (int(place) for place in (self._chip.noc_bad, self._chip.noc_first))
            refuse_multicast(wrong, request, (end, start), _node_at(bad))
            receiver = _node_at(first)
            if receiver is None and request.kind != q.ATOMIC and wrong != INLINE_L1:
                return
            end = receiver or end
        refuse_request(wrong, request, NODES[tile_place(request.tile)], end)

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


def _node_at(place: int) -> Node | None:
    """The node at a place of the chip's record; None for -1."""
    return None if place < 0 else NODES[place >> X_LSB, place & Y_MASK]


def _mirrored(place: Place, noc: int) -> Place:
    """Physical coordinates of raw ones of a NoC, and back (N1)."""
    return (WIDTH - 1 - place[0], HEIGHT - 1 - place[1]) if noc else place
