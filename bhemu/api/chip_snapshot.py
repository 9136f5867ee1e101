"""A copy of a whole chip, in memory or in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from bhemu.api import plain_file
from bhemu.checks import checked
from bhemu.chip.coordinates import Harvesting, Place
from bhemu.chip.snapshot import DeviceState, Pages
from bhemu.loader import boot
from bhemu.loader.elf import parse_elf

_MAGIC: Final = b"bhemu chip 3\n"
_PICKLED: Final = b"bhemu chip 1\n"
Programs = Mapping[Place, Sequence[boot.Placement]]


@checked
class ChipSnapshot:
    """A copy of a whole chip, from `Chip.snapshot`; its size is what the chip has touched, not what it could hold.

    Copies can be compared (by what the chip holds), pickled, and kept in files. Memory of the host is not part of them.

    Attributes:
        state: what the chip holds.
        programs: of the cores, by tile.
    """

    def __init__(self, state: DeviceState, programs: Programs | None = None) -> None:
        self.state = state
        self.programs = {} if programs is None else {place: list(known) for place, known in programs.items()}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChipSnapshot) and self.state == other.state

    __hash__ = None  # type: ignore[assignment]

    def save(self, path: str | Path) -> None:
        """Write the copy to a file, whole or not at all.

        Raises:
            ProgramError: the file cannot be written.
        """
        plain_file.save(path, _MAGIC, self.plain())

    def plain(self) -> dict[str, Any]:
        """The copy as plain values, for files."""
        state = {field.name: getattr(self.state, field.name) for field in fields(DeviceState)}
        harvesting, tiles = self.state.harvesting, self.state.tiles
        state["harvesting"] = (harvesting.columns, harvesting.dram, harvesting.ethernet)
        state["tiles"] = (tiles.numbers, tiles.content)
        state["card"] = (self.state.card.numbers, self.state.card.content)
        files: dict[tuple[str, bytes], int] = {}
        programs = {}
        for place, placements in self.programs.items():
            programs[place] = tuple(
                (
                    known.core,
                    files.setdefault((str(known.executable.path), known.executable.content), len(files)),
                    bool(known.pieces),
                )
                for known in placements
            )
        return {"state": state, "programs": programs, "files": tuple(files)}

    @staticmethod
    def load(path: str | Path) -> ChipSnapshot:
        """Read a copy from a file.

        Raises:
            ProgramError: the file cannot be read, or is not such a copy.
        """
        return plain_file.load(path, _MAGIC, snapshot_of, what="copy of a chip", earlier=_PICKLED)


def snapshot_of(content: dict[str, Any]) -> ChipSnapshot:
    """The copy that `ChipSnapshot.plain` has made plain values of."""
    state = dict(content["state"])
    columns, dram, ethernet = state["harvesting"]
    state["harvesting"] = Harvesting(columns, dram, ethernet)
    state["tiles"], state["card"] = Pages(*state["tiles"]), Pages(*state["card"])
    executables = [parse_elf(elf, name) for name, elf in content["files"]]
    programs = {
        place: [
            boot.place(executables[number], core) if placed else boot.Placement(core, executables[number], ())
            for core, number, placed in placements
        ]
        for place, placements in content["programs"].items()
    }
    return ChipSnapshot(DeviceState(**state), programs)
