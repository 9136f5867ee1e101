"""State that Ethernet tiles have besides cores, network interfaces and streams (ethernet 2), and what kind a tile is.

Both kinds of tiles have the same record. Cores ERISC0 and ERISC1 are in the places of B and NC, which have as much
local RAM; the other cores and the coprocessor stay in reset.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa.memory_map import region
from bhemu.machine.agents import CORE_NAMES, ETHERNET_CORES, NC, B
from bhemu.machine.section import section

# `tile_kind`
TENSIX_TILE: Final = 0
ETHERNET_TILE: Final = 1

ERISC0: Final = B
ERISC1: Final = NC
"""Places of an Ethernet tile's cores among those of machine/agents.py."""

QUEUES: Final = region("eth_txq").size // region("eth_txq").step
QUEUE_WORDS: Final = 0x88 // 4
HEADERS: Final = region("eth_header").size // region("eth_header").step

ETHERNET: Final[np.dtype[Any]] = section(
    (
        ("transmit", "u4", (QUEUES, QUEUE_WORDS)),  # registers of the transmit queues, by offset / 4
        ("receive_control", "u4", (QUEUES,)),
        ("address_routing", "u4", ()),
        ("header", "u4", (HEADERS, 2)),  # MAC_DA_LO, MAC_DA_HI
        ("linked", "i4", ()),  # 1: another chip's tile is at the other end
    )
)

ETHERNET_FIELDS: list[tuple[str, str | np.dtype[Any], tuple[int, ...]]] = [
    ("tile_kind", "i4", ()),
    ("l1_end", "i8", ()),  # bytes of L1
    ("ethernet", ETHERNET, ()),
]


def core_names(record: Any) -> dict[int, str]:
    """Names of the cores that a tile has, by number."""
    return dict(ETHERNET_CORES) if record.tile_kind == ETHERNET_TILE else dict(enumerate(CORE_NAMES))
