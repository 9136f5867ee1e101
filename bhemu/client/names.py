"""Names for the code in L1 of a running client: its ELF files, found by their contents, where they are."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bhemu.api.tile_programs import TilePrograms
from bhemu.debugger.breakpoints import DebugError
from bhemu.loader.boot import Placement, core_number
from bhemu.loader.by_content import CodeIndex, Moved
from bhemu.loader.elf import Executable, SourceLine
from bhemu.loader.symbols import SymbolTable
from bhemu.machine.agents import CORES
from bhemu.report.names import find_files, kernel_name

_CORE_OF_FILE: Final = {"brisc": "B", "ncrisc": "NC", "trisc0": "T0", "trisc1": "T1", "trisc2": "T2"}
"""Which core the files of tt-metal are for, by the beginning of their names."""


class MovedExecutable(Executable):
    """An executable whose code is in memory at another address than it was linked for; its data are where they were.

    Args:
        moved: the file, and where it is.

    Attributes:
        moved: the same.
    """

    def __init__(self, moved: Moved) -> None:
        file, distance = moved.executable, moved.distance
        segments = tuple(replace(s, address=s.address + distance) if s.executable else s for s in file.segments)
        code = [range(s.address, s.address + s.size) for s in segments if s.executable]
        symbols = [
            replace(s, address=s.address + distance) if any(s.address + distance in part for part in code) else s
            for s in file.symbols
        ]
        table = SymbolTable([(s, True) for s in symbols], [], [(part.start, part.stop) for part in code])
        super().__init__(file.path, file.entry + distance, segments, table, file.attributes, file.content)
        self.moved = moved

    def line_at(self, address: int) -> SourceLine | None:
        """The source line of an address in memory."""
        return self.moved.line_at(address)

    def inlined_copies(self, name: str) -> list[int]:
        """Where inlined copies of a function begin in memory."""
        return [address + self.moved.distance for address in self.moved.executable.inlined_copies(name)]

    def addresses_of_line(self, file: str, line: int) -> list[int]:
        """Where the code of a source line begins in memory."""
        found = self.moved.executable.addresses_of_line(file, line)
        return [address + self.moved.distance for address in found]


def core_of(file: Executable) -> int | None:
    """The core that a file of tt-metal is for; None: nothing says."""
    for beginning, core in _CORE_OF_FILE.items():
        if file.path.name.startswith(beginning):
            return core_number(core)
    return None


def _placed(moved: Moved) -> list[Placement]:
    """The programs that a file may be of: of one core, or of each where nothing says."""
    core, file = core_of(moved.executable), MovedExecutable(moved)
    return [Placement(number, file, ()) for number in (range(CORES) if core is None else (core,))]


class CodeNames:
    """Finds the files whose code tiles hold.

    Args:
        about: of the client; see `bhemu.report.names.find_files`.
    """

    def __init__(self, about: dict[str, Any]) -> None:
        self._about = about
        self._more: list[Path] = []
        self._files: list[Path] = []
        self._index = CodeIndex([])
        self._seen: dict[int, tuple[int, int]] = {}

    def _up_to_date(self) -> CodeIndex:
        try:
            files = find_files([self._about], self._more)
        except OSError:  # the client is just compiling: a file has gone between being found and being looked at
            return self._index
        if files != self._files:
            self._files, self._index = files, CodeIndex(files)
        return self._index

    def refresh(self, number: int, l1: Any, programs: TilePrograms) -> bool:
        """Give a tile's programs the names of what its L1 holds now; False when that is as before.

        Args:
            number: of the tile.
            l1: its bytes.
            programs: get the names.
        """
        index = self._up_to_date()
        seen = zlib.crc32(l1), len(index)
        if self._seen.get(number) == seen:
            return False
        self._seen[number] = seen
        found = index.find(0, l1.tobytes())
        programs.placements = [placed for moved in reversed(found) for placed in _placed(moved)]
        return True

    def add(self, path: Path, l1: Any) -> None:
        """Look for code of a file, too.

        Raises:
            DebugError: it cannot be read, or the tile's L1 does not hold its code.
        """
        index = CodeIndex([path]) if path.is_file() else CodeIndex([])
        if not len(index):
            raise DebugError(f"{path} is not an ELF file for the cores", remedy="name one that the client has loaded")
        if not index.find(0, l1.tobytes()):
            raise DebugError(
                f"{path} does not match L1: this tile does not hold its code",
                remedy="name the file that was loaded, on the tile where it runs; `files` shows what was found",
            )
        self._more.append(path)

    def knows(self, name: str) -> bool:
        """Some file has this text in it: the name of a function or of a source file."""
        self._up_to_date()
        text = name.encode()
        return any(text in content for content in _contents(self._files))

    @staticmethod
    def describe(programs: TilePrograms) -> str:
        """Which files a tile holds code of, and how GDB reads them."""
        lines: dict[Path, str] = {}
        for core, file in programs.executables:
            assert isinstance(file, MovedExecutable)
            moved = file.moved
            who = core if core_of(file) is not None else "?"
            lines[file.path] = (
                f"{who:2} {moved.first:#07x} to {moved.end:#07x} {kernel_name(moved.path)}: "
                f"add-symbol-file {moved.path} -o {moved.distance & 0xFFFFFFFF:#x}"
            )
        return "\n".join(lines.values()) or "no ELF file was found whose code this tile holds; `file PATH` names one"


def _contents(files: Iterable[Path]) -> Iterable[bytes]:
    for path in files:
        try:
            yield path.read_bytes()
        except OSError:
            continue
