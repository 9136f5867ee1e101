"""Accesses to nodes without emulated cores, a line for each kind. Tiles with cores: noc/transfer.py, pcie/bars.py."""

from __future__ import annotations

from typing import Any

from bhemu.chip.nodes.arc import read_arc, write_arc
from bhemu.chip.nodes.dram import access_dram
from bhemu.chip.nodes.identity import access_interface
from bhemu.chip.nodes.kinds import ARC, DRAM, PCIE
from bhemu.chip.nodes.pcie import access_pcie
from bhemu.machine.kernel import kernel
from bhemu.machine.types import ChipRecord, Int


@kernel
def access_node(chip: ChipRecord, place: Int, noc: Int, address: Int, pointer: Int, size: Int, writes: Int) -> Any:
    """Status of an access to the node at a physical place; the reason for a refusal is in the chip's record.

    Args:
        noc: through which the access comes.
        address: in the node, 64 bits as a signed number.
        pointer: address in this process where bytes go to or come from.
        writes: 1 for a write, 0 for a read.
    """
    kind = chip.place_kind[place]
    if kind == DRAM:
        return access_dram(chip, place, address, pointer, size, writes)
    if kind == PCIE:
        return access_pcie(chip, place, noc, address, pointer, size, writes)
    if kind == ARC and writes:
        return write_arc(chip, place, address, pointer, size)
    if kind == ARC:
        return read_arc(chip, place, address, pointer, size)
    return access_interface(chip, place, noc, address, pointer, size, writes)
