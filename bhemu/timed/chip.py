"""The timed mode of a chip as the host has it: its Tensix tiles are timed, and NoC requests take time."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from bhemu.chip.clock.clocks import QUANTUM
from bhemu.chip.coordinates import X_LSB, tile_place
from bhemu.chip.device import Device
from bhemu.chip.nodes.kinds import TENSIX
from bhemu.chip.state import CHIP_TYPE
from bhemu.errors import ConfigurationError
from bhemu.isa.silicon import figure
from bhemu.machine.compiler import JIT, Entry, compile_entry
from bhemu.machine.kernel import plain
from bhemu.timed import net_layout as at
from bhemu.timed.chip_clock import clock_timed_entry
from bhemu.timed.observer import SiliconTime, TimedReport
from bhemu.timed.routes import raw_node


@dataclass(frozen=True, slots=True)
class ChipTimeReport:
    """What a timed run of a chip was made of.

    Attributes:
        tiles: by physical place, of tiles in which something ran.
        requests: NoC requests that took time.
        bytes: that they moved.
        waited: cycles for which packets waited for links, network interfaces and DRAM banks.
        at_once: requests that took no time: to registers, and what is not modelled.
    """

    tiles: dict[tuple[int, int], TimedReport]
    requests: int
    bytes: int
    waited: int
    at_once: int

    @property
    def guessed_share(self) -> float:
        """Share of guessed cycles among all of the tiles, 0 to 1."""
        total = sum(one.busy + one.core_busy for one in self.tiles.values())
        return sum(one.guessed + one.core_guessed for one in self.tiles.values()) / total if total else 0.0


@functools.cache
def timed_clock() -> Entry:
    """The compiled clock of timed chips."""
    return compile_entry("chip_clock_timed", clock_timed_entry, arguments=3, record=CHIP_TYPE)


def new_chip_time() -> np.ndarray[Any, np.dtype[np.int64]]:
    """The buffer of net_layout.py of a chip in which nothing has happened yet; ADDRESS and DATA are to be set."""
    net = np.zeros(at.SIZE, np.int64)
    for name, place in at.FIGURES.places.items():
        net[place] = round(figure(name).value * at.PART)
    for index in range(at.TILES):
        x, y = tile_place(index)
        net[at.PLACE + index] = x << X_LSB | y
        for noc in range(2):
            net[at.NODE + noc * at.TILES + index] = plain(raw_node)(x << X_LSB | y, noc)
    net[at.FREE : at.FREE + at.EVENTS] = at.EVENT + at.EVENT_WORDS * np.arange(at.EVENTS)[::-1]
    net[at.FREE_COUNT] = at.EVENTS
    net[at.FREE_BLOCKS : at.FREE_BLOCKS + at.BLOCKS] = np.arange(at.BLOCKS)[::-1]
    net[at.BLOCKS_FREE] = at.BLOCKS
    return net


def ensure_no_quantum(quantum: int) -> None:
    """Raise ConfigurationError for timed mode when a quantum has been chosen."""
    if quantum != QUANTUM:
        raise ConfigurationError(
            f"a quantum of {quantum} clocks for timed mode, in which tiles run as far ahead of each other as nothing "
            "can reach them",
            remedy="leave quantum out",
        )


class ChipTime:
    """Puts a chip into timed mode.

    Raises:
        ConfigurationError: a tile is observed, words are in the order of the official simulator, or the chip has links.
    """

    def __init__(self, device: Device) -> None:
        if device.record.links:
            raise ConfigurationError(
                "a chip that has links already cannot be put into timed mode", remedy="time the whole cluster"
            )
        self._data = np.zeros(at.BLOCKS * at.BLOCK_BYTES, np.uint8)
        self._net = new_chip_time()
        self._net[at.ADDRESS], self._net[at.DATA] = self._net.ctypes.data, self._data.ctypes.data
        self._entry = timed_clock()
        self._tiles: dict[tuple[int, int], SiliconTime] = {}
        kinds = device.record.place_kind
        for index in range(len(device.tiles)):
            x, y = tile_place(index)
            if kinds[x << X_LSB | y] == TENSIX:
                time = self._tiles[x, y] = SiliconTime()
                time.attach(_WithCores(device, index))
        device.clocks.replace_clock(self._clock)

    def _clock(self, target: Any, table: Any, clocks: int) -> int:
        """As the compiled function that it takes the place of; the chip's clocks keep it, and so the buffers."""
        net: Any = int(self._net.ctypes.data) if JIT else self._net
        return int(self._entry.call(target, table, clocks, net))

    @property
    def net(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The buffer of net_layout.py."""
        return self._net

    @property
    def address(self) -> int:
        """Of that buffer."""
        return int(self._net.ctypes.data)

    @property
    def is_quiet(self) -> bool:
        """No request or answer is on its way over the NoC."""
        return not self._net[at.HEAP_COUNT]

    def busy(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """64ths of a cycle for which each link, network interface and DRAM bank has been busy (net_layout.py, BUSY)."""
        return self._net[at.BUSY : at.PARKED].copy()

    def tile_buffer(self, index: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The buffer of layout.py of a Tensix tile, by its number."""
        return self._tiles[tile_place(index)].buffer

    def report(self) -> ChipTimeReport:
        """What the cycles so far were made of."""
        net = self._net
        tiles = {place: time.report() for place, time in self._tiles.items()}
        return ChipTimeReport(
            tiles={place: one for place, one in tiles.items() if one.busy or one.core_busy},
            requests=int(net[at.REQUESTS]),
            bytes=int(net[at.BYTES]),
            waited=int(net[at.WAITED]) // at.PART,
            at_once=int(net[at.AT_ONCE]),
        )


class _WithCores:
    """A tile of a chip, as `SiliconTime.attach` takes it."""

    def __init__(self, device: Device, index: int) -> None:
        self.cores = device.clocks.cores(index)
