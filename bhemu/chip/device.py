"""A Blackhole chip as its host sees it: PCI accesses and clocks in, bytes and exceptions out (tile H)."""

from __future__ import annotations

import weakref
from typing import Any, Final

import numpy as np

from bhemu.chip import faults
from bhemu.chip.boot import boot
from bhemu.chip.clock.clocks import QUANTUM, Clocks, in_tile
from bhemu.chip.coordinates import (
    NODES,
    RAW_ROWS,
    SIMULATOR,
    TENSIX_COLUMNS,
    TILES,
    WIDTH,
    X_LSB,
    Harvesting,
    Node,
    translation,
)
from bhemu.chip.entries import chip_entry
from bhemu.chip.links.send import drop_frames
from bhemu.chip.noc.network import Network
from bhemu.chip.noc.translation_tables import program_tables
from bhemu.chip.nodes.dram import copy_pages as copy_channel
from bhemu.chip.nodes.dram import free_pages
from bhemu.chip.nodes.dram import put_pages as put_channel
from bhemu.chip.nodes.kinds import DRAM_CHANNEL
from bhemu.chip.pcie.host_memory import HostCalls, HostMemory
from bhemu.chip.snapshot import LAYOUT, DeviceState, copy_card, copy_pages, put_card, put_pages
from bhemu.chip.state import connect_tiles, new_chip
from bhemu.errors import BhemuError, ConfigurationError, MemoryError_, UndefinedBehavior
from bhemu.ethernet.boot import ALONE, Identity
from bhemu.machine.faults import DONE, REFUSED
from bhemu.machine.state import new_tiles
from bhemu.tile.cores import Cores


class Device:
    """The chip as its host drives it: the device behind PCI.

    Args:
        harvesting: what it does not have; by default the coordinate table of the official simulator (N8).
        simulator_order: queue the coprocessors' words as the official simulator does, so that runs take the same number
            of clocks (E43), and translate the coordinates of NoC requests by its fixed table (N8).
        host: memory of the host, for accesses of the chip to it.
        allow_open: use the recommended choice where no source settles what silicon does, instead of refusing.
        quantum: clocks that tiles may run ahead of each other, at most (chip/clock/run.py); 1: none.
        threads: of the host, that tiles run on. Results are the same for any number.
        identity: what it says about itself in telemetry.

    Attributes:
        partners: the chips of its system, with itself; none: it has no links.
    """

    partners: tuple[Device, ...] = ()

    def __init__(
        self,
        harvesting: Harvesting = SIMULATOR,
        *,
        simulator_order: bool = False,
        allow_open: bool = False,
        host: HostMemory | None = None,
        quantum: int = QUANTUM,
        threads: int = 1,
        identity: Identity = ALONE,
    ) -> None:
        self.translation = translation(harvesting)
        self.tiles = new_tiles(TILES)
        program_tables(self.tiles, self.translation, tuple(TENSIX_COLUMNS[n] for n in harvesting.columns))
        self.tiles["simulator_order"] = int(simulator_order)
        self.tiles["allow_open"] = int(allow_open)
        self._chip: Any = new_chip()
        self.record: Any = self._chip[0]
        connect_tiles(self._chip, self.tiles)
        boot(self.record, self.tiles, self.translation, harvesting, identity, named=simulator_order)
        weakref.finalize(self, free_memory, self._chip)
        self._harvesting = harvesting
        self._identity = identity
        self._simulator_order = simulator_order
        self.host = host or HostMemory()
        self._host_calls = HostCalls(self.host)
        self.record.host_read, self.record.host_write = self._host_calls.addresses()
        self.clocks = Clocks(self._chip, self.tiles, self._carry_out, quantum=quantum, threads=threads)
        self._network = Network(
            self.record,
            self.tiles,
            self._host_calls,
            self.clocks.cores,
            self.clocks.transfer,
            self.node if simulator_order else None,
        )

    @property
    def harvesting(self) -> Harvesting:
        """What the chip does not have."""
        return self._harvesting

    def _carry_out(self, index: int, number: int, in_turn: bool) -> None:
        """Carry out a NoC request of a tile that compiled code has left."""
        self._network.carry_out(index, number, in_turn)

    @property
    def open_choices(self) -> list[int]:
        """Fault codes of the open cases in which a tile used the recommended choice."""
        return sorted({int(code) for code in self.tiles["open_used"].flat if code})

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def time(self) -> int:
        """Clocks that have passed."""
        return self.clocks.time

    def clock(self, clocks: int) -> None:
        """Let clocks pass.

        Raises:
            BhemuError: an instruction was refused.
        """
        self.clocks.advance(clocks)

    def cores(self, index: int) -> Cores:
        """The cores of a tile, by the number of its record, as they are now; the host may change them."""
        return self.clocks.touch(index)

    def touch(self, index: int) -> Cores:
        """Before a tile is changed: bring it to the chip's time; it moves from then on."""
        return self.clocks.touch(index)

    # --- nodes --------------------------------------------------------------------------------------------------------

    def node(self, place: tuple[int, int], noc: int = 0) -> Node:
        """The node at translated coordinates (N7).

        They are the same on both NoCs, except that x of the top two rows is that of the NoC itself.

        Raises:
            UndefinedBehavior: nothing is there.
        """
        if place not in self.translation:
            raise UndefinedBehavior(
                f"coordinates {place[0]}-{place[1]} name no tile",
                remedy="Tensix tiles are x 1 to 7 and 10 to 16, y 2 to 11; DRAM x 17 and 18, y 12 to 23",
            )
        x, y = self.translation[place]
        return NODES[(WIDTH - 1 - x, y) if noc and place[1] < RAW_ROWS else (x, y)]

    def read_node(self, node: Node, address: int, size: int, noc: int = 0) -> bytes:
        """Bytes of a node's memory, or one of its registers.

        Args:
            noc: through which the access comes.
        """
        content = _buffer(size)
        self._access_node(node, address, content, noc, writes=False)
        return bytes(content)

    def write_node(self, node: Node, address: int, content: bytes, noc: int = 0) -> None:
        """Bytes into a node's memory, or into one of its registers; see `read_node`."""
        self._access_node(node, address, np.frombuffer(content, np.uint8), noc, writes=True)

    def _access_node(self, node: Node, address: int, content: Any, noc: int, *, writes: bool) -> None:
        place = node.place[0] << X_LSB | node.place[1]
        what = place | noc << 16 | int(writes) << 17 | len(content) << 18
        self._access("node_access", what, _signed(address), content.ctypes.data)

    def _access(self, name: str, *arguments: int) -> None:
        """Call a compiled function through which the host reaches the chip.

        Raises:
            BhemuError: the access was refused.
        """
        call = chip_entry(name).call
        while (status := call(self.clocks.target, *arguments)) != DONE:
            if status == REFUSED:
                raise self.refusal()
            index = int(self.record.noc_end)
            try:
                self.clocks.cores(index).coprocessor.supply()  # then the access is made again
            except BhemuError as error:
                raise in_tile(index, error) from None

    def refusal(self) -> BaseException:
        """Why an access was refused, as the records have it; they have it no longer then."""
        if self.record.fault_code:
            refusal = faults.recorded(self.record)
            return self._host_calls.take_error() or refusal
        index = int(self.record.noc_end)
        return in_tile(index, self.clocks.cores(index).coprocessor.recorded())

    # --- PCI ----------------------------------------------------------------------------------------------------------

    def read_config(self, bdf: int, offset: int) -> int:
        """A word of PCI configuration space; all ones for a device that is not there (H4)."""
        word = int(chip_entry("config_read").call(self.clocks.target, bdf, offset))
        if word < 0:
            raise self.refusal()
        return word

    def write_config(self, bdf: int, offset: int, value: int) -> None:
        """Write a word of PCI configuration space (H4)."""
        self._access("config_write", bdf << 32 | offset, value)

    def read(self, paddr: int, size: int) -> bytes:
        """Bytes at a physical address inside a BAR (H5)."""
        content = _buffer(size)
        self._access("host_read", _signed(paddr), content.ctypes.data, size)
        return bytes(content)

    def write(self, paddr: int, content: bytes) -> None:
        """Bytes to a physical address inside a BAR (H5)."""
        data = np.frombuffer(content, np.uint8)
        self._access("host_write", _signed(paddr), data.ctypes.data, len(data))

    # --- copies -------------------------------------------------------------------------------------------------------

    def snapshot(self) -> DeviceState:
        """A copy of everything that the chip holds; memory of the host is not part of it.

        Raises:
            ConfigurationError: the chip has links: what is on its way there belongs to two chips.
        """
        if self.record.links:
            raise ConfigurationError("a chip of a cluster with links has no copy of its own", remedy="copy the cluster")
        return self.state()

    def state(self) -> DeviceState:
        """The same but for frames on their way; see `bhemu.cluster.snapshot`."""
        return DeviceState(
            layout=LAYOUT,
            harvesting=self._harvesting,
            simulator_order=self._simulator_order,
            tiles=copy_pages(self.tiles),
            clocks=self.clocks.snapshot(),
            dram=tuple(copy_channel(pages) for pages in self.record.page),
            card=copy_card(self._chip),
        )

    def restore(self, state: DeviceState) -> None:
        """Put the chip back into the state of a copy.

        Raises:
            ConfigurationError: the copy is of a chip with other harvesting or order of words, or of another version of
                bhemu.
        """
        state.check(self._harvesting, self._simulator_order)
        put_pages(self.tiles, state.tiles)
        for channel, pages in zip(self.record.page, state.dram, strict=True):
            put_channel(channel, pages)
        put_card(self._chip, state.card)
        self.clocks.restore(state.clocks)

    def __getstate__(self) -> tuple[dict[str, Any], DeviceState]:
        """What `copy` and `pickle` take: how the card was made, and its state."""
        settings = {
            "harvesting": self._harvesting,
            "simulator_order": self._simulator_order,
            "allow_open": bool(self.tiles["allow_open"][0]),
            "host": self.host,
            "quantum": int(self.record.quantum),
            "threads": self.clocks.threads,
            "identity": self._identity,
        }
        return settings, self.snapshot()

    def __setstate__(self, state: tuple[dict[str, Any], DeviceState]) -> None:
        settings, content = state
        Device.__init__(self, **settings)
        self.restore(content)


_SIGN: Final = 1 << 63


def _signed(address: int) -> int:
    """A 64-bit address as compiled code takes it."""
    return (address + _SIGN & 2 * _SIGN - 1) - _SIGN


def _buffer(size: int) -> Any:
    """Room for what is read; a wrong size is refused where the access is."""
    if size > DRAM_CHANNEL:
        raise MemoryError_(f"{size} bytes, more than any node has", remedy="read at most 4 GiB")
    return np.empty(max(size, 0), np.uint8)


def free_memory(chip: np.ndarray[Any, Any]) -> None:
    """Give back the pages of DRAM, and frames in flight, of a chip that has ended."""
    for pages in chip["page"][0]:
        free_pages(pages)
    drop_frames(chip[0])
