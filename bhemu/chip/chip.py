"""A Blackhole chip as its host sees it: PCI accesses and clocks in, bytes and exceptions out (tile H)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import numpy as np

from bhemu.chip.coordinates import NODES, SIMULATOR, Harvesting, Kind, Node, translation
from bhemu.chip.memory import Dram
from bhemu.chip.pci import BAR0, BAR0_SIZE, BAR2, BAR2_SIZE, BAR4, BAR4_SIZE, ConfigSpace
from bhemu.chip.windows import ENTRY_BYTES, FIRST_LARGE, LARGE_BITS, SMALL_BITS, WINDOWS, Window, decode
from bhemu.errors import ConfigurationError, MemoryError_, NonContractualBehavior, UndefinedBehavior, Unimplemented
from bhemu.machine.core_state import RUNNING
from bhemu.machine.state import L1_SIZE, new_tiles
from bhemu.tensix.coprocessor import Coprocessor
from bhemu.tile.cores import Cores

TENSIX_TILES: Final = 140
WINDOW_CONFIG: Final = BAR0 + 0x1FC00000
SMALL_WINDOWS_END: Final = BAR0 + (FIRST_LARGE << SMALL_BITS)
PCIE_NIU: Final = (BAR0 + 0x1FD04000, BAR0 + 0x1FD14000)
NODE_ID: Final = 0x44
NIU_CFG_0: Final = 0x100
TRANSLATES: Final = 1 << 14
IATU: Final = BAR2 + 0x1000
IATU_END: Final = BAR2 + 0x3000
MMIO: Final = 0xFF000000
"""Addresses of a Tensix tile from here on are registers."""


class Chip:
    """One card.

    Args:
        harvesting: what it does not have; by default the coordinate table of the official simulator (N8).
        simulator_order: queue the coprocessors' words as the official simulator does, so that runs take the same number
            of clocks (E43).
        allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
    """

    def __init__(
        self, harvesting: Harvesting = SIMULATOR, *, simulator_order: bool = False, allow_open: bool = False
    ) -> None:
        self.translation = translation(harvesting)
        self.tiles = new_tiles(TENSIX_TILES)
        self.tiles["simulator_order"] = int(simulator_order)
        self.tiles["allow_open"] = int(allow_open)
        self.pci = ConfigSpace()
        self.dram = [Dram(channel) for channel in range(8)]
        self.time = 0
        self._window_words = np.zeros((WINDOWS, 3), np.uint32)
        self._iatu: dict[int, int] = {}
        self._cores: dict[int, Cores] = {}
        self._active: set[int] = set()

    @property
    def open_choices(self) -> list[int]:
        """Fault codes of the open cases in which a tile used the recommended choice."""
        return sorted({int(code) for code in self.tiles["open_used"].flat if code})

    # --- time ---------------------------------------------------------------------------------------------------------

    def clock(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
        """
        self.time += clocks
        for index in sorted(self._active):
            record = self.tiles[index]
            self._catch_up(index)
            if record.tensix_state != RUNNING and not (record.core_state == RUNNING).any():
                self._active.discard(index)  # until the host, or another tile, touches it

    def cores(self, index: int) -> Cores:
        """The cores of a Tensix tile."""
        cores = self._cores.get(index)
        if cores is None:
            cores = self._cores[index] = Cores(Coprocessor(self.tiles, index))
        return cores

    def _catch_up(self, index: int) -> Cores:
        """Bring a tile to the chip's time; nothing moves in those that are not active."""
        cores = self.cores(index)
        behind = self.time - int(cores.record.clock)
        if behind > 0:
            cores.advance(behind)
        return cores

    # --- nodes --------------------------------------------------------------------------------------------------------

    def node(self, place: tuple[int, int]) -> Node:
        """The node at translated coordinates (N7).

        Raises:
            UndefinedBehavior: nothing is there.
        """
        if place not in self.translation:
            raise UndefinedBehavior(
                f"coordinates {place[0]}-{place[1]} name no tile",
                remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23",
            )
        return NODES[self.translation[place]]

    def read_node(self, node: Node, address: int, size: int) -> bytes:
        """Bytes of a tile's memory, or one of its registers."""
        if node.kind is Kind.DRAM:
            return self.dram[node.index].read(address, size)
        if node.kind is not Kind.TENSIX:
            raise _no_memory(node, address)
        if address + size <= L1_SIZE:
            return self.tiles[node.index].l1[address : address + size].tobytes()  # type: ignore[no-any-return]
        _check_register(node, address, size)
        cores = self._catch_up(node.index)
        self._active.add(node.index)
        return struct.pack("<I", cores.load(address))

    def write_node(self, node: Node, address: int, content: bytes) -> None:
        """Bytes into a tile's memory, or into one of its registers."""
        if node.kind is Kind.DRAM:
            self.dram[node.index].write(address, content)
            return
        if node.kind is not Kind.TENSIX:
            raise _no_memory(node, address)
        self._active.add(node.index)
        if address + len(content) <= L1_SIZE:
            self._catch_up(node.index)
            self.tiles[node.index].l1[address : address + len(content)] = np.frombuffer(content, np.uint8)
            return
        _check_register(node, address, len(content))
        self._catch_up(node.index).store(address, struct.unpack("<I", content)[0])

    # --- PCI memory ---------------------------------------------------------------------------------------------------

    def read(self, paddr: int, size: int) -> bytes:
        """Bytes at a physical address inside a BAR (H5)."""
        if size <= 0:
            raise UndefinedBehavior(f"a read of {size} bytes", remedy="read at least one byte")
        number, offset = _window_at(paddr, size)
        if number is not None:
            window = self._window(number)
            if window.multicast:
                raise UndefinedBehavior(f"a read through multicast window {number}", remedy="read from one tile")
            return self.read_node(self.node(window.end), window.base + offset, size)
        if paddr >= WINDOW_CONFIG and paddr + size <= WINDOW_CONFIG + WINDOWS * ENTRY_BYTES:
            start = paddr - WINDOW_CONFIG
            return self._window_words.tobytes()[start : start + size]
        _check_word(paddr, size)
        for noc, page in enumerate(PCIE_NIU):
            if paddr == page + NIU_CFG_0:
                return struct.pack("<I", TRANSLATES)
            if paddr == page + NODE_ID:
                x, y = (2, 0) if noc == 0 else (14, 11)
                return struct.pack("<I", x | y << 6 | 17 << 12 | 12 << 19 | (1 - noc) << 28)
        if IATU <= paddr < IATU_END:
            return struct.pack("<I", self._iatu.get(paddr - IATU, 0))
        raise _nothing_there(paddr)

    def write(self, paddr: int, content: bytes) -> None:
        """Bytes to a physical address inside a BAR (H5)."""
        size = len(content)
        if size == 0:
            raise UndefinedBehavior("a write of 0 bytes", remedy="write at least one byte")
        number, offset = _window_at(paddr, size)
        if number is not None:
            window = self._window(number)
            nodes = self._rectangle(window) if window.multicast else iter((self.node(window.end),))
            for node in nodes:
                self.write_node(node, window.base + offset, content)
            return
        _check_word(paddr, size)
        value = struct.unpack("<I", content)[0]
        if WINDOW_CONFIG <= paddr < WINDOW_CONFIG + WINDOWS * ENTRY_BYTES:
            self._window_words.reshape(-1)[(paddr - WINDOW_CONFIG) // 4] = value
        elif IATU <= paddr < IATU_END:
            self._iatu[paddr - IATU] = value
        else:
            raise _nothing_there(paddr)

    def _window(self, number: int) -> Window:
        """A window's entry, checked as it is used (H9)."""
        words = self._window_words[number]
        window = decode((int(words[0]), int(words[1]), int(words[2])), number >= FIRST_LARGE)
        if window.others or window.ordering == 3:
            raise Unimplemented(
                f"window {number} asks for linked, static-channel or counted accesses",
                remedy="use ordering 0 to 2 and clear the bits above",
            )
        return window

    def _rectangle(self, window: Window) -> Iterator[Node]:
        """The Tensix tiles of a multicast window (H11)."""
        corners = [self.node(place) for place in (window.start, window.end)]
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
    if BAR0 <= paddr < SMALL_WINDOWS_END:
        number, bits = (paddr - BAR0) >> SMALL_BITS, SMALL_BITS
        offset = (paddr - BAR0) & ((1 << bits) - 1)
    elif BAR4 <= paddr < BAR4 + BAR4_SIZE:
        number, bits = FIRST_LARGE + ((paddr - BAR4) >> LARGE_BITS), LARGE_BITS
        offset = (paddr - BAR4) & ((1 << bits) - 1)
    else:
        return None, 0
    if offset + size > 1 << bits:
        raise NonContractualBehavior(
            f"{size} bytes at {paddr:#x} reach over the end of window {number}", remedy="split the access"
        )
    return number, offset


def _check_word(paddr: int, size: int) -> None:
    if size != 4 or paddr % 4:
        raise UndefinedBehavior(
            f"an access of {size} bytes at {paddr:#x}, where there are registers of 4 bytes",
            remedy="access registers as aligned words",
        )


def _check_register(node: Node, address: int, size: int) -> None:
    x, y = node.place
    if address < MMIO:
        raise MemoryError_(
            f"{size} bytes at {address:#x} of Tensix tile {x}-{y}: L1 ends at {L1_SIZE:#x}",
            remedy="stay inside L1, or use registers from 0xffb11000 on",
        )
    _check_word(address, size)


def _no_memory(node: Node, address: int) -> Exception:
    x, y = node.place
    return Unimplemented(
        f"an access to {address:#x} of the {node.kind.value} node {x}-{y}",
        remedy="Tensix tiles and DRAM can be accessed so far",
    )


def _nothing_there(paddr: int) -> Exception:
    inside = BAR0 <= paddr < BAR0 + BAR0_SIZE or BAR2 <= paddr < BAR2 + BAR2_SIZE
    kind = ConfigurationError if inside else UndefinedBehavior
    return kind(f"nothing is built at PCI address {paddr:#x}", remedy="see tile H5 for the map of the BARs")
