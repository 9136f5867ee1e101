"""How long instructions of the RISC-V cores take: `data/riscv_timing.toml`, loaded once and given types.

The model of `recording/core_figures.py` counts with these figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bhemu.isa.tables import content


@dataclass(frozen=True, slots=True)
class TimingClass:
    """Instructions that take the same time.

    Attributes:
        key: constant that the model knows the class by.
        name: as reports print it.
        latency: cycles from entering EX1 until the result can be used, at least.
        grade: "at least", or "unknown" where no source has a figure.
        number: place in the table, by which logs count.
    """

    key: str
    name: str
    latency: int
    grade: str
    number: int


_CONTENT: Final = content("riscv_timing.toml")

CLASSES: Final = tuple(TimingClass(**entry, number=number) for number, entry in enumerate(_CONTENT["class"]))
"""Every class, in the order of its number."""

NUMBER: Final[Mapping[str, int]] = MappingProxyType({entry.key: entry.number for entry in CLASSES})
"""Number of each class by key."""

FACTS: Final[Mapping[str, int]] = MappingProxyType({name: fact["value"] for name, fact in _CONTENT["facts"].items()})
"""Further cycles, by name."""
