"""Refusals that several parts of the tile raise."""

from __future__ import annotations

from typing import Final

from bhemu.errors import UndefinedBehavior
from bhemu.machine.faults import fault

MOP_FROM_B: Final = fault(
    "core.b-mop",
    UndefinedBehavior,
    "core B pushes MOP {0:#010x}: its words enter behind the MOP expander",
    remedy="push MOP words from the thread's own core",
    rule="tile K3",
)
