"""What the host reaches through the BARs: windows into the NoC, their entries, DMA, translation (tile H5 to H12)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np

from bhemu.chip.coordinates import NODES, PCIE, Kind, Node
from bhemu.chip.nodes.identity import NIU_CFG_0, NODE_ID, TRANSLATES, node_id
from bhemu.chip.pcie.dma import END as DMA_END
from bhemu.chip.pcie.dma import FIRST as DMA_FIRST
from bhemu.chip.pcie.dma import HostMemory, ReadChannel
from bhemu.chip.pcie.iatu import SIZE as IATU_SIZE
from bhemu.chip.pcie.iatu import Iatu
from bhemu.chip.pcie.pci import BAR0, BAR0_SIZE, BAR2, BAR2_SIZE
from bhemu.chip.pcie.windows import (
    ENTRY_BYTES,
    FIRST_LARGE,
    ORDERINGS,
    SMALL_WINDOWS_END,
    WINDOW_CONFIG,
    WINDOW_CONFIG_END,
    Window,
    decode,
    window_at,
)
from bhemu.errors import ConfigurationError, NonContractualBehavior, UndefinedBehavior, Unimplemented

PCIE_NIU: Final = (BAR0 + 0x1FD04000, BAR0 + 0x1FD14000)
DMA: Final = BAR2 + DMA_FIRST
IATU: Final = BAR2 + 0x1000


class Nodes(Protocol):
    """The chip behind the windows."""

    def node(self, place: tuple[int, int], noc: int = 0) -> Node:
        """The node at translated coordinates."""

    def read_node(self, node: Node, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of a node."""

    def write_node(self, node: Node, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes to a node."""


class Bars:
    """The decoder of PCI memory accesses.

    Args:
        nodes: the chip.
        host: memory of the host, for DMA.
        iatu: the address translation unit.
        words: uint32 [windows, 3]: the windows' entries.
        kinds: uint8 [windows]: set to 0 when an entry changes; chip/pcie/direct.py then looks at it again.
    """

    def __init__(
        self,
        nodes: Nodes,
        host: HostMemory,
        iatu: Iatu,
        words: np.ndarray[Any, Any],
        kinds: np.ndarray[Any, Any],
    ) -> None:
        self._nodes = nodes
        self._iatu = iatu
        self._dma = ReadChannel(host, self._write_small_window)
        self._words = words
        self._kinds = kinds

    def snapshot(self) -> tuple[bytes, dict[int, int]]:
        """The windows' entries, and the registers of DMA."""
        return self._words.tobytes(), self._dma.snapshot()

    def restore(self, state: tuple[bytes, dict[int, int]]) -> None:
        """Put both back."""
        self._words[:] = np.frombuffer(state[0], np.uint32).reshape(self._words.shape)
        self._kinds[:] = 0
        self._dma.restore(state[1])

    def read(self, paddr: int, size: int) -> bytes:
        """Bytes at a physical address inside a BAR."""
        if size <= 0:
            raise UndefinedBehavior(f"a read of {size} bytes", remedy="read at least one byte")
        number, offset = _window_at(paddr, size)
        if number is not None:
            window = self._window(number)
            if window.multicast:
                raise UndefinedBehavior(f"a read through multicast window {number}", remedy="read from one tile")
            node = self._nodes.node(window.end, window.noc)
            return self._nodes.read_node(node, window.base + offset, size, window.noc)
        _check_word(paddr, size)
        return struct.pack("<I", self._read_word(paddr))

    def _read_word(self, paddr: int) -> int:
        if WINDOW_CONFIG <= paddr < WINDOW_CONFIG_END:
            return int(self._words.reshape(-1)[(paddr - WINDOW_CONFIG) // 4])
        for noc, page in enumerate(PCIE_NIU):
            if paddr == page + NIU_CFG_0:
                return TRANSLATES
            if paddr == page + NODE_ID:
                return node_id(PCIE[0], noc)
        if DMA <= paddr < BAR2 + DMA_END:
            return self._dma.read(paddr - BAR2)
        if IATU <= paddr < IATU + IATU_SIZE:
            return self._iatu.read(paddr - IATU)
        raise _nothing_there(paddr)

    def write(self, paddr: int, content: bytes) -> None:
        """Bytes to a physical address inside a BAR."""
        size = len(content)
        if size == 0:
            raise UndefinedBehavior("a write of 0 bytes", remedy="write at least one byte")
        number, offset = _window_at(paddr, size)
        if number is not None:
            window = self._window(number)
            nodes = self._rectangle(window) if window.multicast else (self._nodes.node(window.end, window.noc),)
            for node in nodes:
                self._nodes.write_node(node, window.base + offset, content, window.noc)
            return
        _check_word(paddr, size)
        value = struct.unpack("<I", content)[0]
        if WINDOW_CONFIG <= paddr < WINDOW_CONFIG_END:
            self._words.reshape(-1)[(paddr - WINDOW_CONFIG) // 4] = value
            self._kinds[(paddr - WINDOW_CONFIG) // ENTRY_BYTES] = 0
        elif DMA <= paddr < BAR2 + DMA_END:
            self._dma.write(paddr - BAR2, value)
        elif IATU <= paddr < IATU + IATU_SIZE:
            self._iatu.write(paddr - IATU, value)
        else:
            raise _nothing_there(paddr)

    def _write_small_window(self, offset: int, content: bytes) -> None:
        """Bytes that DMA delivers to an offset in the area of the 2 MiB windows."""
        if BAR0 + offset >= SMALL_WINDOWS_END:
            raise UndefinedBehavior(
                f"a DMA to {offset:#x} is outside of the 2 MiB windows",
                remedy="the device address is an offset in the first 202 windows of BAR0",
            )
        self.write(BAR0 + offset, content)

    def _window(self, number: int) -> Window:
        """A window's entry, checked as it is used (H9)."""
        words = self._words[number]
        window = decode(number, (int(words[0]), int(words[1]), int(words[2])))
        if window.others or window.ordering >= ORDERINGS:
            raise Unimplemented(
                f"window {number} asks for linked, static-channel, strided or counted accesses",
                remedy="use ordering 0 to 2 and clear the bits above",
            )
        if window.multicast and number >= FIRST_LARGE:
            raise Unimplemented(f"4 GiB window {number} is a multicast", remedy="use a 2 MiB window")
        if not window.multicast and window.start != (0, 0):
            raise UndefinedBehavior(
                f"window {number} has a start corner {window.start[0]}-{window.start[1]} but is not a multicast",
                remedy="clear the start corner, or set the multicast bit",
            )
        return window

    def _rectangle(self, window: Window) -> Iterator[Node]:
        """The Tensix tiles of a multicast window (H11); on NoC 1, which runs the other way, corners are swapped."""
        first, last = (window.start, window.end) if window.noc == 0 else (window.end, window.start)
        corners = [self._nodes.node(place, window.noc) for place in (first, last)]
        if any(corner.kind is not Kind.TENSIX for corner in corners):
            raise UndefinedBehavior("a multicast over tiles that are not Tensix", remedy="choose Tensix corners")
        (x0, y0), (x1, y1) = (corner.place for corner in corners)
        if x0 > x1 or y0 > y1:
            raise UndefinedBehavior(f"a multicast from {x0}-{y0} to {x1}-{y1}", remedy="start at the upper left corner")
        for y in range(y0, y1 + 1):
            for x in range(x0, x1 + 1):
                node = NODES[x, y]
                if node.kind is Kind.TENSIX:
                    yield node


def _window_at(paddr: int, size: int) -> tuple[int | None, int]:
    """(number of the window that holds a range or None, offset in it)."""
    found = window_at(paddr)
    if found is None:
        return None, 0
    number, offset, window_bytes = found
    if offset + size > window_bytes:
        raise NonContractualBehavior(
            f"{size} bytes at {paddr:#x} reach past the end of window {number}", remedy="split the access"
        )
    return number, offset


def _check_word(paddr: int, size: int) -> None:
    if size != 4 or paddr % 4:
        raise UndefinedBehavior(
            f"an access of {size} bytes at {paddr:#x}, where there are registers of 4 bytes",
            remedy="access registers as aligned words",
        )


def _nothing_there(paddr: int) -> Exception:
    inside = BAR0 <= paddr < BAR0 + BAR0_SIZE or BAR2 <= paddr < BAR2 + BAR2_SIZE
    kind = ConfigurationError if inside else UndefinedBehavior
    return kind(f"nothing is built at PCI address {paddr:#x}", remedy="see tile H5 for the map of the BARs")
