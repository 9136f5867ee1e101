"""A set of tt-metal firmware: its five files, and what a host puts into a tile's L1 before it starts (tile B1 to B12).

Where a build of the firmware keeps things is data: `data/firmware_layouts.toml`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import bhemu.checks as checks
from bhemu.errors import MemoryError_, ProgramError
from bhemu.loader import boot
from bhemu.loader.elf import Executable, load_elf
from bhemu.loader.firmware_layout import CORE_ORDER, FirmwareLayout, read_layouts
from bhemu.machine.state import L1_SIZE

FOLDERS: Final = {"B": "brisc", "NC": "ncrisc", "T0": "trisc0", "T1": "trisc1", "T2": "trisc2"}
"""Where a firmware directory has each core's file: `brisc/brisc.elf` and so on."""
WORMHOLE: Final = "xtttensixwh"
"""In the ELF attribute of a Wormhole set's T cores (tile B5)."""
INIT: Final = 0x40
"""Value of the go signal before the boot (tile B4)."""

_COLUMN_BYTES: Final = 20
_DRAM_TABLE: Final = "dram_bank_to_noc_xy"
_L1_TABLE: Final = "l1_bank_to_noc_xy"
"""Arrays of core B, uint16 [2 NoCs, banks], that the start-up code copies from the bank tables (B12)."""
_DRAM_PLACES: Final = tuple((x, y) for x in (17, 18) for y in (12, 15, 18, 21))
"""First port of each bank, translated (N7); of seven banks the last one is not there."""
_DRAM_PORTS: Final = ((2, 1), (0, 1), (0, 1), (0, 1), (2, 1), (2, 1), (2, 1), (2, 1))
"""The port by which each NoC reaches a bank; all show the same memory (N4)."""


@dataclass(frozen=True)
class Grid:
    """What firmware is told of the chip around its tile.

    Attributes:
        columns, rows: translated x and y by logical column and row (N2, N7).
        banks: DRAM banks that the chip has; 0: the bank tables are left empty.
    """

    columns: tuple[int, ...] = (*range(1, 8), *range(10, 17))
    rows: tuple[int, ...] = tuple(range(2, 12))
    banks: int = 0


LONE_TILE: Final = Grid()
"""Of a tile that belongs to no chip."""


@dataclass(frozen=True)
class Firmware:
    """A set of firmware files.

    Attributes:
        directory: where they were.
        executables: by core.
        layout: where this build keeps things.
    """

    directory: Path
    executables: dict[str, Executable]
    layout: FirmwareLayout

    def image(self, grid: Grid = LONE_TILE) -> tuple[tuple[int, bytes], ...]:
        """What a host writes to L1 of every tile before the boot: (address, bytes), in the order of writing (tile B6).

        Raises:
            MemoryError_: a file does not fit into L1.
            ProgramError: the set is for a chip with more DRAM banks.
        """
        layout = self.layout
        parts = [part for core in CORE_ORDER for part in self._program(core)]
        parts.append((0, boot.jump_to(layout.entry["B"])))
        for region in (layout.zero_page, layout.bank_tables, layout.coordinate_map):
            if region is not None:
                parts.append((region[0], bytes(region[1])))
        parts.append((layout.launch_messages, bytes(layout.launch_size * layout.launch_count)))
        parts += [(at, bytes(4)) for at in (layout.subordinate_sync, layout.launch_read_pointer, layout.go_index)]
        parts.append((layout.go_messages, _word(INIT << (8 * layout.go_signal))))
        if layout.coordinate_map is not None:
            at = layout.coordinate_map[0]
            parts += [(at, bytes(grid.columns)), (at + _COLUMN_BYTES, bytes(grid.rows))]
        if layout.core_info is not None:
            offset, value = layout.core_magic
            parts.append((layout.core_info + offset, _word(value)))
        if grid.banks:
            parts.append((layout.bank_tables[0], self._bank_tables(grid)))
        return tuple(parts)

    def _program(self, core: str) -> list[tuple[int, bytes]]:
        """Text at its address, the image of local data where the start-up code takes it from (tile B5)."""
        executable, parts = self.executables[core], []
        for number, segment in enumerate(executable.segments):
            address = segment.address
            if address >= boot.LOCAL_RAM:
                address = self.layout.image[core] + address - boot.LOCAL_RAM
            if address + len(segment.content) > L1_SIZE:
                raise MemoryError_(
                    f"{executable.path}: segment {number} at {segment.address:#010x} goes to {address:#x}, "
                    f"{len(segment.content):#x} bytes long, and L1 ends at {L1_SIZE:#x}",
                    remedy="fix the layout",
                )
            if segment.content:
                parts.append((address, bytes(segment.content)))
        return parts

    def table_banks(self, name: str) -> int:
        """How many banks an array of core B has room for; 0 when the file does not name it."""
        sizes = [symbol.size for symbol in self.executables["B"].symbols if symbol.name == name]
        return sizes[0] // 4 if sizes else 0

    def _bank_tables(self, grid: Grid) -> bytes:
        """Where the banks of DRAM and L1 are, for each NoC; translated coordinates are the same on both (N7)."""
        dram, l1 = self.table_banks(_DRAM_TABLE), self.table_banks(_L1_TABLE)
        if dram > grid.banks:
            raise ProgramError(
                f"{self.directory} is for a chip with {dram} DRAM banks, and this one has {grid.banks} [tile B12]",
                remedy=f"use a set whose {_DRAM_TABLE} has room for fewer banks",
            )
        places = [
            (x, y + _DRAM_PORTS[bank][noc]) for noc in range(2) for bank, (x, y) in enumerate(_DRAM_PLACES[:dram])
        ]
        tiles = [(x, y) for y in grid.rows for x in grid.columns]
        places += 2 * [tiles[bank % len(tiles)] for bank in range(l1)]
        return b"".join((y << 6 | x).to_bytes(2, "little") for x, y in places)


def _word(value: int) -> bytes:
    return struct.pack("<I", value)


def load_firmware(directory: str | Path, *, layout_file: str | Path | None = None) -> Firmware:
    """Load a directory of firmware: brisc/brisc.elf, ncrisc/ncrisc.elf, trisc0 to trisc2.

    Args:
        directory: as the `ttnn` wheel has them in tt_metal/pre-compiled.
        layout_file: TOML file with the layout of another build; see data/firmware_layouts.toml.

    Raises:
        ProgramError: a file is missing or damaged, the set is for another chip, or its build is unknown.
    """
    folder = checks.path(directory, "directory")
    if not folder.is_dir():
        raise ProgramError(f"{folder}: no such directory", remedy="name a directory with brisc/brisc.elf and so on")
    executables = {core: load_elf(folder / name / f"{name}.elf") for core, name in FOLDERS.items()}
    layouts = read_layouts(layout_file)
    entry = executables["B"].entry
    for core, executable in executables.items():
        if WORMHOLE in (executable.attributes or ""):
            raise ProgramError(
                f"{folder} is a set for Wormhole: {executable.path.name} of core {core} is compiled for "
                f"{executable.attributes}, and B's entry is {entry:#x} [tile B5]",
                remedy="use a Blackhole set; in the ttnn wheel those whose brisc.elf has the entry 0x3ae0",
            )
    for layout in layouts:
        if layout.entry["B"] == entry:
            break
    else:
        known = ", ".join(f"{layout.entry['B']:#x} ({layout.name})" for layout in layouts)
        raise ProgramError(
            f"{folder}: no layout is known for firmware with B's entry {entry:#x}; known entries: {known}",
            remedy="describe the build in a TOML file and give it with --layout (bhemu/loader/data has the known ones)",
        )
    for core, executable in executables.items():
        if executable.entry != layout.entry[core]:
            raise ProgramError(
                f"{executable.path}: the entry is {executable.entry:#x}, and {layout.entry[core]:#x} in the build "
                f"{layout.name!r}, which B's entry says it is",
                remedy="use five files of one build, or describe this one with --layout",
            )
    return Firmware(folder, executables, layout)
