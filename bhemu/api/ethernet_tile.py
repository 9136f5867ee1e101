"""An Ethernet tile of a chip: memory, registers, and its two cores (ethernet 1, 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import bhemu.checks as checks
from bhemu.api.blocked import explain_all
from bhemu.api.node_memory import NodeMemory
from bhemu.checks import checked
from bhemu.chip.coordinates import Place
from bhemu.chip.device import Device
from bhemu.errors import MemoryError_, UndefinedBehavior
from bhemu.ethernet.reset import BOTH_HELD, HOLDS_ERISC0, HOLDS_ERISC1
from bhemu.isa.memory_map import ETHERNET_L1
from bhemu.isa.tile_registers import address_of
from bhemu.machine.agents import ETHERNET_CORES, T0
from bhemu.machine.core_state import IN_RESET
from bhemu.tile.cores import Cores

_SOFT_RESET: Final = address_of("control", "SOFT_RESET_0")
_RESET_PC: Final = {
    "ERISC0": address_of("eth_risc", "IERISC_RESET_PC"),
    "ERISC1": address_of("eth_risc", "SUBORDINATE_IERISC_RESET_PC"),
}
_HOLDS: Final = {"ERISC0": HOLDS_ERISC0, "ERISC1": HOLDS_ERISC1}


class EthernetCores(NodeMemory):
    """An Ethernet tile whose cores a host starts and holds, as one does over the NoC (ethernet 2.1)."""

    @checked
    def start(self, core: str, pc: int) -> None:
        """Start a core at an address of L1, as a host does: its reset pc, then its reset bit (ethernet 2.1).

        Args:
            core: `ERISC0` or `ERISC1`; one that runs starts anew.
            pc: where; a multiple of 4, and not 0.

        Raises:
            UndefinedBehavior: the tile has no such core.
            MemoryError_: no instruction can be there.
        """
        bit = self._bit(core)
        if checks.integer(pc, "pc") % 4 or not 0 < pc < ETHERNET_L1:
            raise MemoryError_(
                f"core {core} cannot start at {pc:#x}", remedy=f"use a multiple of 4 below {ETHERNET_L1:#x}"
            )
        self.hold(core)
        self.write_word(_RESET_PC[core], pc)
        self.write_word(_SOFT_RESET, self.read_word(_SOFT_RESET) & ~bit & BOTH_HELD)

    @checked
    def hold(self, core: str) -> None:
        """Put a core into reset."""
        self.write_word(_SOFT_RESET, self.read_word(_SOFT_RESET) | self._bit(core))

    def _bit(self, core: str) -> int:
        if checks.text(core, "core") not in _HOLDS:
            raise UndefinedBehavior(f"core {core!r} does not exist", remedy=f"use one of {', '.join(_HOLDS)}")
        return _HOLDS[core]


class EthernetTile(EthernetCores):
    """An Ethernet tile of a `bhemu.Chip`: `chip.ethernet[4]`.

    Example:
        >>> import bhemu
        >>> tile = bhemu.Chip("p150").ethernet[4]
        >>> tile, tile.read_word(0x7CC04)
        (<Ethernet tile 24-25: ERISC0 in reset, ERISC1 in reset>, 2)

    Attributes:
        channel: its number among those that the product has.
        place: translated coordinates (x, y).
        node: the same place in physical coordinates, and the tile's number in the full grid.
    """

    _device: Device

    def __init__(self, device: Device, place: Place, channel: int, expose: Callable[[int], None]) -> None:
        self._device = device
        self._expose = expose
        self.place = place
        self.channel = channel
        self.node = device.node(place)

    def touch(self) -> Cores:
        """The cores, before the host changes something in the tile: brings the tile to the chip's time."""
        return self._device.touch(self.node.tile)

    @property
    def cores(self) -> Cores:
        """The cores: `tile.cores["ERISC0"]` is a `CoreView`. The chip's clock moves them."""
        self._expose(self.node.tile)
        return self.touch()

    @property
    def state(self) -> Any:
        """The record, for reading only."""
        return self._device.tiles[self.node.tile]

    @property
    def is_running(self) -> bool:
        """A core is out of reset."""
        return bool((self.state.core_state != IN_RESET).any())

    def explain(self) -> str:
        """Who does what or waits for what."""
        return explain_all(self.state, lambda _, pc: f"{pc:#07x}", lambda _: "", lambda thread, _: T0 + thread)

    def __repr__(self) -> str:
        cores = self.touch()
        states = ", ".join(f"{name} {cores[number].state}" for number, name in ETHERNET_CORES.items())
        return f"<Ethernet tile {self.place[0]}-{self.place[1]}: {states}>"
