"""Where a node is and what it is: the registers of its network interfaces that clients ask for (tile N10 to N12).

These are the interfaces of nodes without emulated cores; those of Tensix tiles are bhemu/tile/noc/niu.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import HEIGHT, WIDTH, Node, Place
from bhemu.chip.faults import refuse
from bhemu.chip.nodes.kinds import KINDS
from bhemu.errors import UndefinedBehavior, Unimplemented
from bhemu.isa.memory_map import region
from bhemu.isa.tile_registers import bit_of, offset_of
from bhemu.machine.faults import DONE, REFUSED, fault
from bhemu.machine.kernel import kernel
from bhemu.machine.process_memory import store_u32
from bhemu.machine.types import ChipRecord, Int

NODE_ID: Final = offset_of("niu", "NODE_ID")
ENDPOINT_ID: Final = offset_of("niu", "ENDPOINT_ID")
NIU_CFG_0: Final = offset_of("niu", "NIU_CFG_0")
ID_LOGICAL: Final = offset_of("niu", "ID_LOGICAL")
TRANSLATES: Final = 1 << bit_of("niu", "NIU_CFG_0", "TRANSLATE")
"""Bit of NIU_CFG_0: coordinates are translated (N5)."""
PAGE: Final = region("niu0").size

NOT_A_WORD: Final = fault(
    "node.word",
    UndefinedBehavior,
    "{0:node}: {1} bytes at {2:#x}, where there are registers of 4 bytes",
    remedy="access registers as aligned words",
    rule="tile N18",
)
NO_IDENTITY: Final = fault(
    "node.identity",
    Unimplemented,
    "{0:node}: register {2:#x} of the interface to NoC {1} is not built",
    remedy=f"NODE_ID {NODE_ID:#x}, ENDPOINT_ID {ENDPOINT_ID:#x}, NIU_CFG_0 {NIU_CFG_0:#x} and "
    f"ID_LOGICAL {ID_LOGICAL:#x} are",
    rule="tile N10, N12",
)
READ_ONLY: Final = fault(
    "node.identity-write",
    Unimplemented,
    "{0:node}: a write to register {2:#x} of the interface to NoC {1}",
    remedy="network interfaces of nodes other than Tensix tiles can only be read",
    rule="tile N10, N12",
)
NOTHING_ELSE: Final = fault(
    "node.interface",
    Unimplemented,
    "{0:node}: an access to {1:#x}",
    remedy="Tensix, DRAM, Ethernet and ARC tiles and the first PCIe tile can be accessed",
    rule="tile N28",
)


def node_id(place: Place, noc: int) -> int:
    """NODE_ID of a node: its coordinates as this NoC counts them, and the size of the grid (N10)."""
    x, y = place if noc == 0 else (WIDTH - 1 - place[0], HEIGHT - 1 - place[1])
    return x | y << 6 | WIDTH << 12 | HEIGHT << 19 | (1 - noc) << 28


def endpoint_id(node: Node, noc: int) -> int:
    """ENDPOINT_ID: number of the tile among its kind, kind, NoC (N12)."""
    return node.index | KINDS[node.kind].endpoint_type << 8 | noc << 24


def describe(node: Node) -> str:
    """`ARC tile 8-0`."""
    x, y = node.place
    return f"{node.kind.value} tile {x}-{y}"


@kernel
def is_word(chip: ChipRecord, place: Int, address: Int, size: Int) -> bool:
    """True for one aligned word; refuses what is not."""
    if size != 4 or address & 3:
        refuse(chip, NOT_A_WORD, place, size, address)
        return False
    return True


@kernel
def read_identity(chip: ChipRecord, place: Int, noc: Int, offset: Int, to: Int) -> Any:
    """Status of a read of a word at an offset in the page of the interface of NoC 0 or 1, to an address."""
    if offset == NODE_ID:
        store_u32(to, np.int64(chip.node_id[place, noc]))
    elif offset == ENDPOINT_ID:
        store_u32(to, np.int64(chip.endpoint_id[place, noc]))
    elif offset == NIU_CFG_0:
        store_u32(to, np.int64(TRANSLATES))
    elif offset == ID_LOGICAL:
        store_u32(to, np.int64(chip.logical[place]))
    else:
        return refuse(chip, NO_IDENTITY, place, noc, offset)
    return DONE


@kernel
def refuse_identity_write(chip: ChipRecord, place: Int, noc: Int, offset: Int) -> Int:
    """Network interfaces of these nodes can only be read."""
    return refuse(chip, READ_ONLY, place, noc, offset)


@kernel
def access_interface(chip: ChipRecord, place: Int, noc: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access to a node that has only the registers of its network interfaces.

    They are those of the NoC through which the access comes, at the addresses that tt-exalens reads.
    """
    offset = address - np.int64(chip.interface[place])
    if offset < 0 or offset >= PAGE:
        return refuse(chip, NOTHING_ELSE, place, address)
    if not is_word(chip, place, address, size):
        return REFUSED
    if writes:
        return refuse_identity_write(chip, place, noc, offset)
    return read_identity(chip, place, noc, offset, pointer)


def identity_words(node: Node, logical: Place) -> tuple[list[int], list[int], int]:
    """(NODE_ID on both NoCs, ENDPOINT_ID on both NoCs, ID_LOGICAL) of a node.

    Args:
        node: whose.
        logical: its translated coordinates.
    """
    ids, endpoints = [node_id(node.place, noc) for noc in range(2)], [endpoint_id(node, noc) for noc in range(2)]
    return ids, endpoints, logical[0] | logical[1] << 6
