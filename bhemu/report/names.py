"""Names for what was executed: which ELF file the code of a part is from, and what tt-metal calls it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bhemu.errors import ProgramError
from bhemu.files import files_below
from bhemu.loader.by_content import CodeIndex, Moved
from bhemu.loader.elf import SourceLine
from bhemu.recording.core_log import Names
from bhemu.recording.parts import Part
from bhemu.report.tensors import inspector_logs

FIRMWARE: Final = "firmware"
UNKNOWN: Final = "(no ELF file)"
_MOVED: Final = ".xip.elf"
"""Ends the name of tt-metal's copy of a kernel's file that runs at any address."""
_CACHES: Final = ("tt-metal-cache*", "cache")


def _elf_files(place: Path) -> Iterator[Path]:
    """ELF files in a directory, or the file itself; of two forms of a kernel the one that is loaded."""
    if place.is_file():
        yield place
        return
    files = list(files_below(place, ".elf"))
    loaded = {str(path).removesuffix(_MOVED) for path in files if path.name.endswith(_MOVED)}
    yield from (path for path in files if path.name.endswith(_MOVED) or str(path) not in loaded)


def _places(about: Iterable[dict[str, Any]], more: Iterable[Path]) -> Iterator[Path]:
    """Where the ELF files of a recording may be."""
    yield from more
    for told in about:
        environment = told.get("environment", {})
        yield from map(Path, told.get("elf", []))
        yield from map(Path, filter(None, environment.get("BHEMU_ELF", "").split(":")))
        if "TT_METAL_CACHE" in environment:
            yield Path(environment["TT_METAL_CACHE"])
        elif told.get("chip") == "the C library":
            yield from (Path.home() / ".cache").glob(_CACHES[0])
        for name in ("TT_METAL_RUNTIME_ROOT", "TT_METAL_HOME"):
            if name in environment:
                yield from (Path(environment[name]) / part for part in ("tt_metal/pre-compiled",))


def find_files(about: Iterable[dict[str, Any]], more: Iterable[Path] = ()) -> list[Path]:
    """The ELF files that a recording's code may be from, the latest last.

    Args:
        about: of the recording.
        more: files and directories that the user names.

    Raises:
        ProgramError: one of `more` is not there.
    """
    for path in more:
        if not path.exists():
            raise ProgramError(f"{path}: no such file or directory", remedy="name an ELF file or a directory with some")
    changed = {}
    for file in (file for place in _places(about, more) if place.exists() for file in _elf_files(place)):
        with suppress(FileNotFoundError):  # a client that runs beside has removed it
            changed[file] = file.stat().st_mtime
    return sorted(changed, key=lambda file: (changed[file], str(file)))


def kernel_name(path: Path) -> str:
    """`reader_bmm` for `.../kernels/reader_bmm/1234/brisc/brisc.elf`, `firmware`, or the name of the file."""
    parts = path.parts
    if "kernels" in parts and len(parts) - parts.index("kernels") > 3:
        return parts[parts.index("kernels") + 1]
    if FIRMWARE in parts or "pre-compiled" in parts:
        return FIRMWARE
    return path.name.removesuffix(_MOVED).removesuffix(".elf")


@dataclass
class Inspector:
    """What the logs of tt-metal's inspector say.

    Attributes:
        sources: source file of a kernel, by the directory of its ELF files.
    """

    sources: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, about: Iterable[dict[str, Any]]) -> Inspector:
        """The logs of a client; empty where there are none."""
        sources: dict[str, str] = {}
        for text in inspector_logs(about, "kernels.yaml", "programs_log.yaml"):
            found = re.findall(r"^ +path: (.+)\n +source: (.+)$", text, re.MULTILINE)
            sources |= {str(Path(directory)): source for directory, source in found}
        return cls(sources)

    def source_of(self, path: Path) -> str | None:
        """The source file of the kernel that an ELF file is of."""
        return self.sources.get(str(path.parent.parent))


def operation_of(source: str) -> str | None:
    """`matmul` for `ttnn/cpp/ttnn/operations/matmul/device/kernels/...`."""
    found = re.search(r"operations/(.+?)/device/", source)
    return None if found is None else found[1].rpartition("/")[2]


class PartNames:
    """Names of the code of one part.

    Args:
        part: with its code.
        index: of ELF files.

    Attributes:
        pieces: of ELF files that its code is from.
    """

    def __init__(self, part: Part, index: CodeIndex, known: dict[bytes, list[Moved]]) -> None:
        self.pieces: list[Moved] = []
        for address, content in part.code:
            key = address.to_bytes(4, "little") + content
            if key not in known:
                known[key] = index.find(address, content)
            self.pieces += known[key]
        self.names = Names(lambda _, pc: self.at(pc))  # type: ignore[arg-type]

    def at(self, pc: int) -> Moved | None:
        """The file that an instruction is from."""
        return next((piece for piece in self.pieces if piece.first <= pc < piece.end), None)

    def kernel(self, pc: int) -> str:
        """Name of the kernel that an instruction is from."""
        piece = self.at(pc)
        return UNKNOWN if piece is None else kernel_name(piece.path)

    def line(self, pc: int) -> SourceLine | None:
        """Its source line."""
        piece = self.at(pc)
        return None if piece is None else piece.line_at(pc)

    def place(self, pc: int) -> str:
        """`kernel.c:12`, or the function, or the address."""
        line = self.line(pc)
        if line is not None:
            return f"{line.file.rpartition('/')[2]}:{line.line}"
        name = self.names.place(0, pc)
        return name or f"{pc:#x}"
