"""Agents that access memory: the five RISC-V cores, in the order in which a tile steps them (tile T34), and others."""

from __future__ import annotations

from typing import Final

from bhemu.machine.kernel import kernel
from bhemu.machine.types import Bool, Int

B: Final = 0
T0: Final = 1
T1: Final = 2
T2: Final = 3
NC: Final = 4
CORES: Final = 5
NOC: Final = 5
"""The host or another tile, over the NoC."""
TENSIX: Final = 6
"""The coprocessor's scalar unit, packer and configuration unit."""
THREADS: Final = 3
"""Of the coprocessor; they are not agents of their own."""

CORE_NAMES: Final = ("B", "T0", "T1", "T2", "NC")
AGENT_NAMES: Final = (*CORE_NAMES, "HOST", "TENSIX")
AGENTS: Final = {name: "the host" if name == "HOST" else f"core {name}" for name in AGENT_NAMES} | {
    "TENSIX": "the coprocessor"
}
"""How messages call each."""


ETHERNET_CORES: Final = {B: "ERISC0", NC: "ERISC1"}
"""Names of an Ethernet tile's cores, by their places among those of a Tensix tile (ethernet 1)."""


@kernel
def is_t_core(agent: Int) -> Bool:
    """True for T0, T1 and T2."""
    return agent >= T0 and agent <= T2
