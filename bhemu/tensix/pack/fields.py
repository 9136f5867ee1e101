"""Positions of configuration fields for the packer's stages.

A position is (word, least significant bit, mask) as int64: Python integers would be literals to the compiler, which
then compiles each reader of fields once for each field.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bhemu.isa import registers

Position = tuple[np.int64, np.int64, np.int64]
Positions = np.ndarray[Any, np.dtype[np.int64]]

NO_FIELD: Final = (0, 0, 0)
"""A field that a register group does not have: reads as 0."""


def config(name: str) -> Position:
    """Position of a Config field."""
    word, lsb, mask = registers.config(name)
    return np.int64(word), np.int64(lsb), np.int64(mask)


def thread(name: str) -> Position:
    """Position of a ThreadConfig field."""
    entry, lsb, mask = registers.thread(name)
    return np.int64(entry), np.int64(lsb), np.int64(mask)


def positions(names: list[str]) -> Positions:
    """int64[len(names), 3]: positions of Config fields, `NO_FIELD` where the register map has no such name."""
    known = registers.CONFIG_FIELDS
    return np.array([registers.config(name) if name in known else NO_FIELD for name in names], np.int64)
