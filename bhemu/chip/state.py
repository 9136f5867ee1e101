"""The record of a chip for compiled code; each of its tiles has a record of its own."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any, Final

import numpy as np
from numba.np.numpy_support import from_dtype

from bhemu.chip.coordinates import ETHERNET_TILES, WIDTH, X_LSB
from bhemu.chip.nodes.kinds import CLOCKED
from bhemu.chip.nodes.state import ARC_TILE, CHANNELS, PAGE, PAGES
from bhemu.chip.pcie.windows import WINDOWS
from bhemu.ethernet.failures import link_faults
from bhemu.machine.codegen import JIT, record_of
from bhemu.machine.share import SHARE_FIELDS
from bhemu.machine.state import TILE, TILE_TYPE
from bhemu.machine.types import Int

ZEROS: Final = np.zeros(PAGE, np.uint8)
"""What an unwritten page of DRAM holds."""
PLACES: Final = 32
"""Translated coordinates are smaller."""

CHIP: Final[np.dtype[Any]] = np.dtype(
    [
        ("address", "i8"),  # of this record
        ("tiles", "i8"),  # address of the first tile's record
        # --- time (chip/clock/run.py) ---------------------------------------------------------------------------------
        ("time", "i8"),  # clocks that have passed, or that of the tile which the host serves
        ("end", "i8"),  # of the clocks that were asked for
        ("quantum", "i8"),  # clocks that tiles may run ahead of each other, at most
        ("run_ahead", "i8"),  # rounds that a core may be ahead of its tile's other agents, at most (chip/clock/run.py)
        ("last_message", "i8"),  # when another tile or the host last changed a tile that moves
        ("current", "i8"),  # tile that the host must serve
        ("active_count", "i8"),
        ("lone_core", "i8"),  # the only one that runs in the only tile that moves, + 1; 0: not known
        ("order", "i8", (len(CLOCKED),)),  # the active tiles, in the order of their numbers
        ("active", "u1", (len(CLOCKED),)),
        ("touched", "u1", (len(CLOCKED),)),  # another tile or the host may have changed it since it moved
        ("runs", "u1", (len(CLOCKED),)),  # an agent in it could move when it was left
        ("waiting", "u1", (len(CLOCKED),)),  # a NoC request has to wait for another tile: it tries again in each clock
        ("status", "u1", (len(CLOCKED),)),  # why it stopped in the middle of a clock; 0: it did not
        ("local", "i8", (len(CLOCKED),)),  # clocks that it has completed
        ("stop_round", "i8", (len(CLOCKED),)),  # round in which it stopped in the middle of a clock
        ("unmade", "u1", (len(CLOCKED),)),  # the C library has not filled in its record yet (chip/clock/tiles.py)
        ("make_tile", "i8"),  # address of the function that does
        ("observer", "i8", (len(CLOCKED),)),  # address of the buffer of the observer (tile/observer.py), 0: none
        # --- tiles on several threads ---------------------------------------------------------------------------------
        *SHARE_FIELDS,
        ("share_goal", "i8"),  # clock up to which tiles of the share run
        # --- what the host sees (chip/pcie/direct.py) -----------------------------------------------------------------
        ("fault_code", "i8"),  # why an access was refused; 0: a tile's record says it (chip/faults.py)
        ("fault_value", "i8", (4,)),
        ("host_read", "i8"),  # address of a function that reads the host's memory (machine/process_memory.py), 0: none
        ("host_write", "i8"),  # and of one that writes it
        ("buffer", "u1", (4096,)),  # bytes in flight
        ("pci_config", "u4", (16,)),  # PCI configuration space (chip/pcie/pci.py)
        ("dma", "u4", (43,)),  # registers of the DMA channel (chip/pcie/dma.py)
        ("iatu", "u4", (16, 9)),  # [region, register] of outbound translation (chip/pcie/iatu.py)
        ("translated", "i8"),  # address that it has translated last
        ("window_words", "u4", (WINDOWS, 3)),
        ("window_kind", "u1", (WINDOWS,)),  # UNKNOWN, ... of chip/pcie/direct.py
        ("window_index", "i8", (WINDOWS,)),  # tile or channel
        ("window_base", "i8", (WINDOWS,)),  # address there of the window's first byte
        # --- the grid -------------------------------------------------------------------------------------------------
        ("noc_end", "i8"),  # tile whose register a NoC request has accessed last
        ("noc_unsound", "i8"),  # why a NoC request was left to Python (tile/noc/soundness.py, noc/multicast.py)
        ("noc_first", "i8"),  # place of the first receiver of a multicast, -1 none
        ("noc_bad", "i8"),  # place in its rectangle that takes no multicasts, -1 none
        ("named", "u1"),  # 1: NoC requests name nodes by the chip's table, not by their tile's (N8)
        ("place", "i4", (PLACES, PLACES)),  # [x, y translated]: physical x << X_LSB | y, -1: nothing is there
        ("place_kind", "u1", (WIDTH << X_LSB,)),  # [physical place]: what it holds (chip/nodes/kinds.py)
        ("place_index", "i8", (WIDTH << X_LSB,)),  # number of a tile's record, or of the node among its kind
        ("node_id", "i8", (WIDTH << X_LSB, 2)),  # [physical place, NoC]: identity registers (chip/nodes/identity.py)
        ("endpoint_id", "i8", (WIDTH << X_LSB, 2)),
        ("logical", "i8", (WIDTH << X_LSB,)),
        ("interface", "i8", (WIDTH << X_LSB,)),  # address of the registers of the network interfaces
        # --- nodes without emulated cores -----------------------------------------------------------------------------
        ("zeros", "i8"),  # address of a DRAM page of zeros
        ("page", "i8", (CHANNELS, PAGES)),  # addresses of DRAM pages, 0: unwritten
        ("pcie_device_control", "u4"),
        ("arc", ARC_TILE),
        # --- links of its Ethernet tiles, by channel (chip/links/) ----------------------------------------------------
        ("links", "i8"),  # how many of them have a partner
        ("latency", "i8"),  # clocks that a frame takes
        ("goal", "i8"),  # of the clocks that were asked for; `end` is before it when a frame arrives
        ("peer_number", "i8", (ETHERNET_TILES,)),  # of the chip at the other end, in the system
        ("peer_channel", "i8", (ETHERNET_TILES,)),  # channel there
        ("frame_first", "i8", (ETHERNET_TILES,)),  # addresses of frames in flight to it, 0 none
        ("frame_last", "i8", (ETHERNET_TILES,)),
        ("sent", "i8"),  # frames have left it that the partners do not have yet (cluster/clock.py)
        ("sent_first", "i8", (ETHERNET_TILES,)),  # their addresses, by channel, 0 none
        ("sent_last", "i8", (ETHERNET_TILES,)),
        ("fault", link_faults(ETHERNET_TILES)),  # what is wrong with them
    ],
    align=True,
)
CHIP_TYPE: Final = from_dtype(CHIP)
_TILE_BYTES: Final = TILE.itemsize

PLAIN_TILES: Final[weakref.WeakValueDictionary[int, Any]] = weakref.WeakValueDictionary()
"""Tiles by the address of the first, for plain Python."""


def new_chip() -> np.ndarray[Any, Any]:
    """The record of a chip, as an array of one; chip/boot.py fills it in."""
    memory = np.zeros(1, CHIP).view(np.recarray)
    memory["address"] = memory.ctypes.data
    memory["zeros"] = ZEROS.ctypes.data
    return memory


def connect_tiles(chip: np.ndarray[Any, Any], tiles: np.ndarray[Any, Any]) -> None:
    """Say in a chip's record where the records of its tiles are."""
    chip["tiles"] = tiles.ctypes.data
    if not JIT:
        PLAIN_TILES[tiles.ctypes.data] = tiles


if JIT:
    tile_at = record_of(TILE_TYPE)
    """The tile's record at an address."""
    chip_at = record_of(CHIP_TYPE)
    """The chip's record at an address."""

else:

    def tile_at(address: Int) -> Any:
        """The tile's record at an address."""
        first, tiles = next(
            (first, tiles) for first, tiles in PLAIN_TILES.items() if 0 <= address - first < tiles.nbytes
        )
        return tiles[(address - first) // _TILE_BYTES]

    def chip_at(address: Int) -> Any:
        """The chip's record at an address."""
        memory: Any = (ctypes.c_uint8 * CHIP.itemsize).from_address(int(address))
        return np.frombuffer(memory, CHIP).view(np.recarray)[0]
