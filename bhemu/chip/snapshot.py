"""A copy of a whole chip: the part of its tiles' memory that is not zero, and the state of everything else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from bhemu.chip.coordinates import Harvesting
from bhemu.chip.state import CHIP
from bhemu.errors import ConfigurationError
from bhemu.machine.state import PAGE, TILE

Array = np.ndarray[Any, Any]

_WORDS: Final = PAGE // 8
_FIELDS: Final = [(name, str(field[0]), field[1]) for name, field in (TILE.fields or {}).items()]
CARD: Final = ("pci_config", "dma", "iatu", "window_words", "pcie_device_control", "arc")
"""Fields of the chip's record that are neither time nor addresses of this process."""
LAYOUT: Final = hashlib.sha256(repr((_FIELDS, [CHIP[name] for name in CARD])).encode()).hexdigest()
"""Of the records. Copies of another version of bhemu do not fit."""


class Pages:
    """The pages of the tiles' memory that are not zero.

    Attributes:
        numbers: int64 [n], rising.
        content: uint64 [n, 512].
    """

    def __init__(self, numbers: Array, content: Array) -> None:
        self.numbers = numbers
        self.content = content

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Pages)
            and np.array_equal(self.numbers, other.numbers)
            and np.array_equal(self.content, other.content)
        )

    __hash__ = None  # type: ignore[assignment]


def _all_pages(tiles: Array) -> Array:
    return tiles.view(np.ndarray).view(np.uint64).reshape(-1, _WORDS)


def _used(pages: Array) -> Array:
    return np.flatnonzero(np.bitwise_or.reduce(pages, axis=1))


def copy_pages(tiles: Array) -> Pages:
    """What the records of the tiles hold, but for the addresses of this process."""
    handlers = tiles["handlers"].copy()
    tiles["handlers"] = 0
    try:
        pages = _all_pages(tiles)
        used = _used(pages)
        return Pages(used, pages[used])
    finally:
        tiles["handlers"] = handlers


def put_pages(tiles: Array, copy: Pages) -> None:
    """Give the records the contents of a copy; untouched pages stay untouched, and `allow_open` is kept."""
    kept = {name: tiles[name].copy() for name in ("handlers", "allow_open")}
    pages = _all_pages(tiles)
    pages[np.setdiff1d(_used(pages), copy.numbers, assume_unique=True)] = 0
    pages[copy.numbers] = copy.content
    for name, values in kept.items():
        tiles[name] = values


def _card_pages(chip: Array) -> Array:
    """The fields CARD of a chip's record, filled up to whole pages."""
    content = b"".join(chip[name].tobytes() for name in CARD)
    content += bytes(-len(content) % PAGE)
    return np.frombuffer(content, np.uint64).reshape(-1, _WORDS)


def copy_card(chip: Array) -> Pages:
    """What a chip's record holds of PCI, ARC and PCIe tiles."""
    pages = _card_pages(chip)
    used = _used(pages)
    return Pages(used, pages[used])


def put_card(chip: Array, copy: Pages) -> None:
    """Give the record the contents of a copy."""
    pages = np.zeros_like(_card_pages(chip))
    pages[copy.numbers] = copy.content
    content, at = pages.tobytes(), 0
    for name in CARD:
        size = chip[name].nbytes
        chip[name] = np.frombuffer(content[at : at + size], chip[name].dtype).reshape(chip[name].shape)
        at += size
    chip["window_kind"] = 0  # compiled code decodes the windows again


@dataclass(frozen=True)
class DeviceState:
    """The state of a chip.

    Attributes:
        layout: of the records.
        harvesting: of the chip.
        simulator_order: of the chip: its tiles' queues are others then.
        tiles: their records.
        clocks: as `Clocks.snapshot` has it.
        dram: by channel.
        card: what is not zero of the fields CARD of the chip's record.
    """

    layout: str
    harvesting: Harvesting
    simulator_order: bool
    tiles: Pages
    clocks: Any
    dram: tuple[dict[int, bytes], ...]
    card: Pages

    def check(self, harvesting: Harvesting, simulator_order: bool) -> None:
        """Refuse a copy of something else.

        Raises:
            ConfigurationError: the copy is of a chip with other harvesting or order of words, or of another version of
                bhemu.
        """
        if self.layout != LAYOUT:
            raise ConfigurationError(
                "the copy was made by a version of bhemu that keeps other state", remedy="make it with this version"
            )
        if self.harvesting != harvesting:
            raise ConfigurationError(
                f"the copy is of a chip with {self.harvesting}, and this one has {harvesting}",
                remedy="make the chip with the same board or harvesting",
            )
        if self.simulator_order != simulator_order:
            raise ConfigurationError(
                f"the copy is of a chip with simulator_order={self.simulator_order}, "
                f"and this one has simulator_order={simulator_order}",
                remedy="make the chip with the same simulator_order",
            )
