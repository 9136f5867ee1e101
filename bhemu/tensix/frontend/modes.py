"""Fidelity of the words that the expanders consume; they have no handlers, for they never reach the back end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bhemu.tensix.instruction import VERIFIED, Mode

EXPANDED: Final[Mapping[str, tuple[Mode, ...]]] = {
    "MOP": (
        Mode("template 0 (z-mask)", VERIFIED, vectors="frontend:mop0", rule="math Y7"),
        Mode("template 1 (double loop)", VERIFIED, vectors="frontend:mop1", rule="math Y8"),
    ),
    "MOP_CFG": (Mode("upper z-mask bits", VERIFIED, vectors="frontend:zmask_hi", rule="math Y5"),),
    "REPLAY": (
        Mode("play", VERIFIED, vectors="frontend:preset_buffer", rule="math Y9"),
        Mode("record", VERIFIED, vectors="frontend:load_only", rule="math Y9"),
        Mode("record and execute", VERIFIED, vectors="frontend:load_execute", rule="math Y9"),
    ),
}
"""Modes by mnemonic."""
