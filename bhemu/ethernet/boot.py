"""Ethernet tiles: what their records hold after a boot, without and with a link (tile N29, E33; ethernet 2, 3).

Base firmware is not emulated: L1 has what it leaves, and a word that it
would count (`count_heartbeat`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.checks import checked
from bhemu.ethernet.queues import ENABLED, RECEIVES, SEL_HW, SEL_SW
from bhemu.ethernet.reset import BOTH_HELD, HOLDS_ERISC1
from bhemu.isa.memory_map import ETHERNET_L1
from bhemu.machine.core_state import IN_RESET
from bhemu.machine.ethernet_state import ERISC0, ETHERNET_TILE
from bhemu.machine.kernel import kernel
from bhemu.machine.types import Int, TileRecord

POST_CODE: Final = 0x7CC00
PORT_STATUS: Final = 0x7CC04
HEARTBEAT: Final = 0x7CC70
FIRMWARE_VERSION: Final = 0x7CFBC
FUNCTIONS: Final = {0x7CF00: 0x71574, 0x7CF04: 0x759AC, 0x7CF08: 0x75414}
"""Pointers to functions of base firmware, each of which returns at once."""
_RETURN: Final = 0x00008067
TRAIN_STATUS: Final = 0x7CC08
RETRAIN_COUNT: Final = 0x7CE00
LINK_UP: Final = 0x7CE04
OWN: Final = 0x7CFC0
PARTNER: Final = 0x7CFE0
"""What base firmware knows of its own port, and of its partner's."""
_LOCATION, _CHANNEL, _LOGICAL_CHANNEL = 1, 2, 3
_BOARD_ID, _ASIC_ID = 0x4, 0x14
"""Offsets of bytes, and of pairs of words, high half first."""
PORT_UP: Final = 1
TRAINED: Final = 2
_BOOTED: Final = 0xC0DEA000
PORT_DOWN: Final = 2
_VERSION_1_6_0: Final = 1 << 16 | 6 << 8
_ENABLED_QUEUES: Final = 2
_ENTRIES_OF_QUEUE_1: Final = ((SEL_SW, 0x111), (SEL_HW, 0x1))
"""Header table entries that queue 1 names at reset."""
_ADDRESS_ROUTING: Final = 0xA00
_HEADERS: Final = ((0xFFFFFFFF, 0xFFFF), (0x00000001, 0x0100))


@checked
@dataclass(frozen=True)
class Identity:
    """What a chip says about itself in telemetry, and to its partners over links (ethernet 3, 5).

    Attributes:
        board_id: high and low half.
        asic_id: low half; the high half is 0.
        asic_location: which chip of its board it is.
        pcie_usage: 1: an endpoint of its host; 4: not one.
    """

    board_id: tuple[int, int] = (0x400, 1)
    asic_id: int = 1
    asic_location: int = 0
    pcie_usage: int = 1


ALONE: Final = Identity()
"""A P150."""


def boot(tile: Any) -> None:
    """Make a tile's record that of an Ethernet tile, and leave in it what firmware does that found no partner."""
    tile.tile_kind = ETHERNET_TILE
    tile.l1_end = ETHERNET_L1
    tile.soft_reset = BOTH_HELD
    state = tile.ethernet
    for queue in range(_ENABLED_QUEUES):
        state.transmit[queue, 0] = ENABLED
        state.receive_control[queue] = RECEIVES
    for offset, value in _ENTRIES_OF_QUEUE_1:
        state.transmit[1, offset // 4] = value
    state.address_routing = _ADDRESS_ROUTING
    state.header[: len(_HEADERS)] = _HEADERS
    words = tile.l1_u32
    words[POST_CODE // 4] = _BOOTED
    words[PORT_STATUS // 4] = PORT_DOWN
    words[FIRMWARE_VERSION // 4] = _VERSION_1_6_0
    for pointer, function in FUNCTIONS.items():
        words[pointer // 4] = function
        words[function // 4] = _RETURN


def boot_link(tile: Any, own: tuple[Identity, int], partner: tuple[Identity, int]) -> None:
    """Leave in a tile's record what firmware does that found a partner; it runs on core ERISC0, which is out of reset.

    Args:
        own: the chip, and the tile's channel.
        partner: the same of the other end.
    """
    tile.ethernet.linked = 1
    tile.soft_reset = HOLDS_ERISC1
    for address, value in ((PORT_STATUS, PORT_UP), (TRAIN_STATUS, TRAINED), (LINK_UP, 1)):
        tile.l1_u32[address // 4] = value
    for at, (identity, channel), logical in ((OWN, own, 0), (PARTNER, partner, partner[1])):
        tile.l1[at + _LOCATION] = identity.asic_location
        tile.l1[at + _CHANNEL] = channel
        tile.l1[at + _LOGICAL_CHANNEL] = logical
        words = (*identity.board_id, 0, identity.asic_id)
        for offset, value in zip((_BOARD_ID, _BOARD_ID + 4, _ASIC_ID, _ASIC_ID + 4), words, strict=True):
            tile.l1_u32[(at + offset) // 4] = value


@kernel
def count_heartbeat(t: TileRecord, address: Int, size: Int) -> None:
    """After the host has read L1: base firmware counts a word while core ERISC0 is its own."""
    if address <= HEARTBEAT and address + size > HEARTBEAT and t.core_state[ERISC0] == IN_RESET:
        t.l1_u32[HEARTBEAT >> 2] = np.uint32(np.int64(t.l1_u32[HEARTBEAT >> 2]) + 1)
