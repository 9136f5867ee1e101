"""Positions of configuration fields for the packer's stages.

A position is (word, least significant bit, mask) as int64: Python integers would be literals to the compiler, which
then compiles each reader of fields once for each field.
"""

from __future__ import annotations

import numpy as np

from bhemu.isa import registers

Position = tuple[np.int64, np.int64, np.int64]


def config(name: str) -> Position:
    """Position of a Config field."""
    word, lsb, mask = registers.config(name)
    return np.int64(word), np.int64(lsb), np.int64(mask)


def thread(name: str) -> Position:
    """Position of a ThreadConfig field."""
    entry, lsb, mask = registers.thread(name)
    return np.int64(entry), np.int64(lsb), np.int64(mask)
