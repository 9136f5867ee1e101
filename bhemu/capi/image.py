"""A chip after reset as data, and the tables of the machine that its C runtime has."""

from __future__ import annotations

import ctypes
import hashlib
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from bhemu.capi.attach import chosen_tiles
from bhemu.chip.coordinates import NODES, RAW_ROWS, TENSIX_TILES, TILES, Place, tile_place
from bhemu.chip.device import Device
from bhemu.chip.nodes.kinds import DRAM, ETHERNET, TENSIX
from bhemu.chip.pcie.pci import BARS, DEVICE_STRIDE
from bhemu.chip.state import CHIP
from bhemu.cluster.failures import tile_of_end
from bhemu.cluster.join import join
from bhemu.cluster.topology import ALONE_TOPOLOGY, End, Topology
from bhemu.machine.codegen import toolchain
from bhemu.machine.faults import FAULTS, Fault
from bhemu.machine.state import TILE, offset_of
from bhemu.timed.chip import new_chip_time
from bhemu.timed.observer import new_tile_time

IN_CHIP: Final = -1
IN_EACH_TILE: Final = -2
IN_CHIP_TIME: Final = -3
IN_TILE_TIME: Final = -4
"""The buffers of timed mode (bhemu/timed), of a chip and of each of its tiles."""
IN_EACH_CHIP: Final = -1
CHIP_POINTERS: Final = (
    *("address", "tiles", "zeros", "page", "host_read", "host_write", "make_tile"),
    *("frame_first", "frame_last", "sent_first", "sent_last", "observer"),
)
"""Fields of the chip's record that hold addresses of a process."""
TILE_POINTERS: Final = ("handlers",)
"""Those of a tile's."""
_GAP: Final = 16
"""Runs of bytes that are as close as this become one."""

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Links = dict[tuple[End, End], tuple[int, int]]


@dataclass(frozen=True)
class Run:
    """Bytes of the image.

    Attributes:
        tile: number of the tile, IN_EACH_TILE, IN_CHIP, or that of a buffer of timed mode.
        at: offset in the record, or in the buffer.
        content: the bytes.
        chip: number of the chip, or IN_EACH_CHIP.
    """

    tile: int
    at: int
    content: bytes
    chip: int = IN_EACH_CHIP


@dataclass(frozen=True)
class Machine:
    """What the runtime knows of the machine beside its code.

    Attributes:
        image: what is not zero in the chips after reset, in an order in which it can be written.
        topology: the chips.
        links: numbers of the tiles at both ends among the Ethernet tiles of their chips, by the ends.
        layout: hash of the records' fields.
        toolchain: of the compiled code.
        faults: by their codes; a fault's category as the interface names it is the C side's.
        nodes: kind of node by physical place.
        tiles: physical places of the tiles with cores.
        shows: uint8 [x, y]: TENSIX, DRAM or ETHERNET at these coordinates of a window, 0: something else.
        recorded: indices of the Tensix tiles of the first chip by translated coordinates, as recordings name them.
    """

    image: tuple[Run, ...]
    topology: Topology
    links: Links
    layout: str
    toolchain: tuple[object, ...]
    faults: dict[int, Fault]
    nodes: dict[tuple[int, int], str]
    tiles: tuple[tuple[int, int], ...]
    shows: Bytes
    recorded: dict[Place, int]


def layout() -> str:
    """Hash of the records' fields: of one layout, a record of one process is a record of another."""
    return hashlib.sha256(f"{CHIP!r} {TILE!r}".encode()).hexdigest()[:48]


def _runs(tile: int, content: Bytes, wanted: np.ndarray[Any, np.dtype[np.bool_]]) -> list[Run]:
    """Runs that have the wanted bytes of a record."""
    places = np.flatnonzero(wanted)
    if not len(places):
        return []
    pieces = np.split(places, np.flatnonzero(np.diff(places) > _GAP) + 1)
    return [Run(tile, int(piece[0]), content[piece[0] : piece[-1] + 1].tobytes()) for piece in pieces]


def _without_pointers(records: np.ndarray[Any, Any], names: tuple[str, ...]) -> Bytes:
    """uint8 [count, size] of a copy in which these fields are 0."""
    memory = records.view(np.ndarray).view(np.uint8)  # a copy of records leaves what is between fields undefined
    copied = memory.reshape(len(records), -1).copy()
    for name in names:
        at = offset_of(records.dtype, name)
        copied[:, at : at + records.dtype[name].itemsize] = 0
    return copied


def chip_memory(device: Device) -> np.ndarray[Any, Any]:
    """The record of a chip, as an array of one."""
    memory = (ctypes.c_uint8 * CHIP.itemsize).from_address(int(np.ravel(device.record["address"])[0]))
    return np.frombuffer(memoryview(memory), CHIP)


def take_image(device: Device) -> tuple[Run, ...]:
    """What a chip holds beside zeros and addresses."""
    chip = _without_pointers(chip_memory(device), CHIP_POINTERS)[0]
    runs = _runs(IN_CHIP, chip, chip != 0)
    first = _without_pointers(device.tiles[:1], TILE_POINTERS)[0]
    runs += _runs(IN_EACH_TILE, first, first != 0)
    for index in range(1, len(device.tiles)):
        tile = _without_pointers(device.tiles[index : index + 1], TILE_POINTERS)[0]
        runs += _runs(index, tile, tile != first)
    return tuple(runs)


def _time_image() -> tuple[Run, ...]:
    """What the buffers of timed mode hold beside zeros."""
    runs = []
    for buffer, content in ((IN_CHIP_TIME, new_chip_time()), (IN_TILE_TIME, new_tile_time())):
        memory = content.view(np.uint8)
        runs += _runs(buffer, memory, memory != 0)
    return tuple(runs)


def _differences(number: int, alone: Device, device: Device) -> list[Run]:
    """What a chip of a system has otherwise than a chip alone."""
    own, base = (_without_pointers(chip_memory(chip), CHIP_POINTERS)[0] for chip in (device, alone))
    runs = _runs(IN_CHIP, own, own != base)
    first = TENSIX_TILES if device.harvesting == alone.harvesting else 0
    for index in range(first, TILES):
        tile, other = (_without_pointers(chip.tiles[index : index + 1], TILE_POINTERS)[0] for chip in (device, alone))
        runs += _runs(index, tile, tile != other)
    return [replace(run, chip=number) for run in runs]


def new_devices(topology: Topology, **settings: Any) -> list[Device]:
    """The chips of a system as a host finds them: joined, each with BARs of its own.

    Args:
        settings: of each; see `Device`.
    """
    devices = [Device(chip.harvesting, identity=chip.identity, **settings) for chip in topology.chips]
    join(devices, topology)
    for number, device in enumerate(devices):
        give_bars(device, number)
    return devices


def give_bars(device: Device, number: int) -> None:
    """Give a chip the BARs of the device of a number."""
    for bar in BARS:
        device.record.pci_config[bar // 4 + 1] += number * (DEVICE_STRIDE >> 32)


def _system_image(topology: Topology) -> tuple[tuple[Run, ...], Links]:
    """The image of the chips of a system, and `Machine.links`."""
    alone = Device(simulator_order=True)
    image = take_image(alone) + _time_image()
    if topology == ALONE_TOPOLOGY:
        return image, {}
    devices = new_devices(topology, simulator_order=True)
    links = {(a, b): (_number(devices, a), _number(devices, b)) for a, b in topology.links}
    runs: list[Run] = []
    for number, device in enumerate(devices):
        runs += _differences(number, alone, device)
    return (*image, *runs), links


def _number(devices: list[Device], end: End) -> int:
    return tile_of_end(devices[end.chip], end).index


def describe_machine(topology: Topology = ALONE_TOPOLOGY) -> Machine:
    """The machine, from new chips in the order of the official simulator."""
    image, links = _system_image(topology)
    return Machine(
        image=image,
        topology=topology,
        links=links,
        layout=layout(),
        toolchain=toolchain(),
        faults=dict(FAULTS),
        nodes={place: node.kind.value for place, node in NODES.items()},
        tiles=tuple(tile_place(index) for index in range(TILES)),
        shows=_shown_memory(Device(simulator_order=True)),
        recorded=chosen_tiles(Device(topology.chips[0].harvesting), []),
    )


def _shown_memory(device: Device) -> Bytes:
    """See `Machine.shows`."""
    places = device.record["place"]
    kinds = np.where(places >= 0, device.record["place_kind"][places], 0)
    kinds[:, :RAW_ROWS] = 0
    return np.where(np.isin(kinds, (TENSIX, DRAM, ETHERNET)), kinds, 0).astype(np.uint8)
